// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine under a scheduler, and the plan of a program for it.

use perch_machine::{Machine, MachineError};

use super::News;
use crate::arena::Plan;
use crate::described;
use crate::error::SchedulerError;
use crate::intent::Intent;
use crate::kernel::{Kernel, UnableError};
use crate::partial::Fits;
use crate::settings::{Settings, SettingsError};
use crate::stats::About;
use crate::tree::Tree;

/// A kernel and its machine.
pub(super) struct Ground<'a> {
    pub kernel: &'a Kernel,
    /// The description that replaces the one of its /sys.
    pub described: Option<&'a Machine>,
}

/// What is to be loaded.
pub(super) struct Planned {
    pub machine: Machine,
    pub plan: Plan,
    pub about: About,
    /// The rules of the tasks that are the program's; none: all are.
    pub rules: Vec<Fits>,
    /// What the settings ask for and do not get.
    pub notes: Vec<String>,
}

impl Ground<'_> {
    /// Looks at the machine, which was `last` when perch looked before, and plans a program for it.
    ///
    /// # Errors
    /// [`SchedulerError`] when the machine cannot be told, or when the settings ask for more than it
    /// may hold.
    pub fn plan(
        &self,
        settings: &Settings,
        last: Option<&Machine>,
        tell: &mut dyn FnMut(News),
    ) -> Result<Planned, SchedulerError> {
        let machine = self.machine(last, tell)?;
        let intent = Intent::new(self.kernel, &machine, settings);
        let plan = intent.plan()?;
        let mut about = About::new(&machine, self.kernel.version(), intent.modes);
        about.band = settings.band_in_words();
        about.partial = settings.partial_in_words();
        if let Some(online) = self.kernel.online() {
            about.cpus = about.cpus.min(online.len() as u64);
        }
        let notes = intent.notes;
        let tree = Tree::new("/".as_ref());
        let rules = settings.partial().iter().map(|rule| {
            rule.fits(&tree).map_err(|source| SettingsError::Partial {
                rule: rule.to_string(),
                source,
            })
        });
        let rules = rules.collect::<Result<_, _>>()?;
        Ok(Planned {
            machine,
            plan,
            about,
            rules,
            notes,
        })
    }

    /// The machine as it is now, or as it is described.
    fn machine(
        &self,
        last: Option<&Machine>,
        tell: &mut dyn FnMut(News),
    ) -> Result<Machine, SchedulerError> {
        let found = perch_machine::detect("/".as_ref());
        match (self.described, found) {
            (None, Ok(found)) => Ok(found),
            // The description agreed at the first load; since then a CPU went offline.
            (Some(described), Ok(found))
                if last.is_some() && found.cpus.len() < described.cpus.len() =>
            {
                tell(News::Note(
                    "a CPU is offline: its place on the machine is kept".to_string(),
                ));
                Ok(described.clone())
            }
            (Some(described), Ok(found)) => match described::check(described, &found) {
                Ok(()) => Ok(described.clone()),
                Err(source) => Err(SchedulerError::Settings(SettingsError::OtherMachine {
                    name: described.name.clone(),
                    source,
                })),
            },
            (_, Err(error)) => self.without_holes(last, error, tell),
        }
    }

    /// A CPU in the middle that goes offline leaves a hole in the numbering, which a machine
    /// cannot have; the machine as it was before it went still holds every CPU that is online,
    /// and to the scheduler the missing one is never idle.
    fn without_holes(
        &self,
        last: Option<&Machine>,
        error: MachineError,
        tell: &mut dyn FnMut(News),
    ) -> Result<Machine, SchedulerError> {
        let online = self.kernel.online();
        let highest = online.and_then(|cpus| cpus.last().map(|&cpu| cpu as usize));
        match (last, highest) {
            (Some(machine), Some(highest)) if highest < machine.cpus.len() => {
                tell(News::Note(
                    "a CPU in the middle is offline: its place on the machine is kept".to_string(),
                ));
                Ok(machine.clone())
            }
            _ => Err(UnableError::Machine(error).into()),
        }
    }
}
