// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine under a scheduler, and the plan of a program for it.

use perch_machine::{Host, Machine};

use super::News;
use crate::error::SchedulerError;
use crate::fits::Fits;
use crate::intent::Intent;
use crate::kernel::{Kernel, UnableError};
use crate::site::{Site, isolated};
use crate::stats::About;
use crate::tree::Tree;
use perch_plan::Plan;
use perch_plan::settings::{Settings, SettingsError};

/// A kernel and its machine.
pub(super) struct Ground<'a> {
    pub kernel: &'a Kernel,
    /// The description that replaces the one of its /sys.
    pub described: Option<&'a Machine>,
}

/// What is to be loaded.
pub(super) struct Planned {
    pub plan: Plan,
    pub about: About,
    /// The rules of the tasks that are the program's; none: all are.
    pub rules: Vec<Fits>,
    /// What the settings ask for and do not get.
    pub notes: Vec<String>,
    /// The CPUs that are isolated, ascending.
    pub isolated: Vec<u32>,
}

impl Ground<'_> {
    /// Looks at the machine and plans a program for it.
    ///
    /// # Errors
    /// [`SchedulerError`] when the machine cannot be told, or when the settings ask for more than it
    /// may hold.
    pub fn plan(
        &self,
        settings: &Settings,
        tell: &mut dyn FnMut(News),
    ) -> Result<Planned, SchedulerError> {
        let mut site = self.site()?;
        site.split_llcs(settings.split_llc()).map_err(SettingsError::Split)?;
        let intent = Intent::new(self.kernel, &site, settings);
        let tree = Tree::new("/".as_ref());
        let plan = intent.plan(&tree)?;
        let mut about = About::new(&site.whole, self.kernel.version(), intent.modes);
        about.band = settings.band_in_words();
        about.partial = settings.partial_in_words();
        site.notes().into_iter().for_each(|note| tell(News::Note(note)));
        let notes = intent.notes;
        let rules = settings.partial().iter().map(|rule| {
            Fits::of(rule, &tree).map_err(|source| SettingsError::Rule {
                key: "partial",
                rule: rule.to_string(),
                source,
            })
        });
        let rules = rules.collect::<Result<_, _>>()?;
        Ok(Planned { plan, about, rules, notes, isolated: site.isolated })
    }

    /// The machine as it is now, or as it is described.
    fn site(&self) -> Result<Site, SchedulerError> {
        let root = "/".as_ref();
        let host = Host::detect(root).map_err(UnableError::Machine)?;
        match self.described {
            None => Ok(Site::of(root, host)),
            Some(described) => Ok(Site::as_described(root, host, described)?),
        }
    }

    /// The CPUs that are isolated now; none where the online ones cannot be told.
    pub fn isolated(&self) -> Vec<u32> {
        let online = self.kernel.online().unwrap_or_default();
        isolated(&Tree::new("/".as_ref()), &online)
    }
}
