// SPDX-License-Identifier: GPL-2.0-or-later
//! The user's configuration: a TOML file, `--set`, `--band`, `--partial`, and defaults.

mod configuration;
mod error;
mod read;
mod schema;
mod show;
mod table;

use perch_policy::{Layout, Mechanism, Mode, Modes, Premise, Setting, Topology};

use crate::band::Band;
use crate::interface::MAX_BANDS;
use crate::partial::Partial;
use crate::rule::{RuleError, User};
pub use configuration::Configuration;
pub use error::{Problem, SettingsError};
pub use schema::schema;
pub use show::{help, markdown};
use table::SETTINGS;
pub(crate) use table::{DEFAULT_GROUPS, Tuning};

/// The settings that the user asks for. A setting that the user leaves out has the default of the
/// table of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Mechanisms that were named, the last word on each counting.
    modes: Vec<(&'static str, Mode)>,
    /// How the overload counters lie in memory, if that was named.
    layout: Option<Layout>,
    /// The real-time band, if there is one.
    bands: Vec<Band>,
    /// The tasks that perch schedules; all without a rule.
    partial: Vec<Partial>,
    /// Everything else.
    tuning: Tuning,
    /// The settings of `tuning` that were named, by name.
    asked: Vec<&'static str>,
}

impl Settings {
    /// Adds tasks to the real-time band, after those that were chosen before.
    ///
    /// # Errors
    /// [`SettingsError::TooManyBands`] when there is no room for another rule.
    pub fn add_band(&mut self, band: Band) -> Result<(), SettingsError> {
        if self.bands.len() == MAX_BANDS {
            return Err(SettingsError::TooManyBands);
        }
        self.bands.push(band);
        Ok(())
    }

    /// The real-time band in a line, empty without one.
    pub fn band_in_words(&self) -> String {
        if self.bands.is_empty() {
            return String::new();
        }
        let rules: Vec<_> = self.bands.iter().map(Band::to_string).collect();
        let (percent, period) = (self.tuning.band_percent.0, self.tuning.band_period_ms.0);
        format!("{}; at most {percent} % of {period} ms", rules.join("; "))
    }

    /// The settings with each user of the band's rules by its number, for which `number` asks /etc/passwd.
    ///
    /// # Errors
    /// That of `number`, with the rule.
    pub fn with_users(
        &self,
        number: impl Fn(&User) -> Result<u32, RuleError>,
    ) -> Result<Settings, SettingsError> {
        let mut out = self.clone();
        for band in &mut out.bands {
            let Some(user) = &band.user else { continue };
            let number = number(user).map_err(|source| SettingsError::Rule {
                key: "band",
                rule: band.to_string(),
                source,
            })?;
            band.user = Some(User::Number(number));
        }
        Ok(out)
    }

    /// The real-time band's rules, of which the first that fits a task counts.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// Adds tasks to those that perch schedules, which are all only until the first call.
    pub fn add_partial(&mut self, partial: Partial) {
        self.partial.push(partial);
    }

    /// The rules of the tasks that perch schedules; none: it schedules all.
    pub fn partial(&self) -> &[Partial] {
        &self.partial
    }

    /// The tasks that perch schedules in a line, empty if they are all.
    pub fn partial_in_words(&self) -> String {
        let rules: Vec<_> = self.partial.iter().map(Partial::to_string).collect();
        rules.join("; ")
    }

    /// Returns the number of parts that each last-level cache is split into.
    pub fn split_llc(&self) -> u64 {
        self.tuning.split_llc
    }

    /// Times, sizes and switches. A short slice alone does not ask for a longer one when other
    /// tasks wait.
    pub(crate) fn tuning(&self) -> Tuning {
        Tuning { slice_min_us: self.tuning.slice_min_us.min(self.tuning.slice_us), ..self.tuning }
    }

    /// The warnings about settings that the user asks for and that do nothing, because the machine
    /// or the modes lack what the settings need.
    pub fn without_effect(&self, topology: &Topology, modes: Modes) -> Vec<String> {
        let asked = SETTINGS.iter().filter(|s| self.asked.contains(&s.name));
        let said = asked.filter_map(|setting| {
            let lack = setting.needs.lack(topology, modes, self.bands.len(), &self.tuning)?;
            Some(format!("{} does nothing: {lack}", setting.name))
        });
        said.collect()
    }

    /// The warnings about rules of the band that the tasks of any user may fit.
    pub fn open_bands(&self) -> Vec<String> {
        let open = self.bands.iter().filter(|band| band.is_open());
        let said = open.map(|band| {
            format!("band {band}: tasks of any user may join; a user, a cgroup, or a nice below 0 keeps them out")
        });
        said.collect()
    }

    /// The modes for this machine, and the notes about them: a mechanism whose premise the machine
    /// lacks stays off, whatever the user asked for, and is noted if the user asked for it.
    pub fn modes_for(&self, topology: &Topology) -> (Modes, Vec<String>) {
        let (mut modes, mut notes) = (Modes::default(), Vec::new());
        for Chosen { mechanism, mode, lacks, why } in self.choices(topology) {
            modes[mechanism] = mode;
            // The counters' layout asks for the mechanism that has them.
            let layout = mechanism == Mechanism::Overload && self.layout.is_some();
            let asked = self.named(mechanism).is_some_and(|mode| mode != Mode::Off);
            if lacks && (layout || asked) {
                notes.push(format!("{mechanism} stays off: {why}"));
            }
        }
        modes.layout = self.layout.filter(|_| !self.bands.is_empty());
        (modes, notes)
    }

    /// Each mechanism's mode on this machine, and why it has that mode.
    pub fn choices(&self, topology: &Topology) -> impl Iterator<Item = Chosen> {
        Mechanism::ALL.into_iter().map(|mechanism| {
            let (premise, lack) = mechanism.premise();
            let (holds, lack) = match mechanism.setting() {
                None => (premise.holds(topology), lack),
                Some((Setting::Band, lack)) => (!self.bands.is_empty(), lack),
                Some((Setting::Groups, lack)) => (self.tuning.groups != Some(0), lack),
            };
            let (mode, why) = match (holds, self.named(mechanism)) {
                (false, _) => (Mode::Off, lack.to_string()),
                (true, Some(mode)) => (mode, "asked for".to_string()),
                (true, None) => default_mode(mechanism, topology),
            };
            Chosen { mechanism, mode, lacks: !holds, why }
        })
    }

    /// The mode that the user named for a mechanism.
    fn named(&self, mechanism: Mechanism) -> Option<Mode> {
        let named = self.modes.iter();
        let mut named = named.filter(|(name, _)| *name == mechanism.name());
        named.next().map(|(_, mode)| *mode)
    }
}

/// A mechanism's mode on a machine.
#[derive(Debug)]
pub struct Chosen {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Its mode.
    pub mode: Mode,
    /// True if the machine or the settings leave it nothing to do.
    pub lacks: bool,
    /// The reason, a clause without a full stop.
    pub why: String,
}

/// In a last-level cache of fewer CPUs, a few threads of a process are a crowd: wake-ups that are drawn
/// there by the process leave it again, over and over (docs/mechanisms/README.md).
const ROOMY_LLC: u32 = 16;

/// The mode of a mechanism that the user does not name and that has something to do, and the reason:
/// `perch`, the last of its modes, where nothing is known that speaks against it.
fn default_mode(mechanism: Mechanism, topology: &Topology) -> (Mode, String) {
    let own = *mechanism.modes().last().unwrap_or(&Mode::Off);
    let why = match (mechanism.setting(), mechanism.premise().0) {
        (Some((Setting::Band, _)), _) => "tasks are in the real-time band".into(),
        (Some((Setting::Groups, _)), _) => "task groups are followed".into(),
        (None, Premise::None) => "it asks nothing of a machine".into(),
        (None, Premise::Clusters) => "last-level caches are divided into clusters".into(),
        (None, Premise::Capacities) => "CPUs differ in capacity".into(),
        (None, Premise::Counters) => "there are several nodes or last-level caches".into(),
        (None, Premise::Llcs) => {
            let llcs = 0..topology.nr_llcs();
            let most = llcs.map(|llc| topology.llc_span(llc).weight()).max();
            let (nr, most) = (topology.nr_llcs(), most.unwrap_or(0));
            if most < ROOMY_LLC && mechanism == Mechanism::Cache {
                let why = format!(
                    "last-level caches have {most} CPUs at most, and below {ROOMY_LLC} wake-ups \
                     that are drawn to a cache soon leave it again"
                );
                return (Mode::Upstream, why);
            }
            format!("there are {nr} last-level caches, of {most} CPUs at most")
        }
    };
    (own, why)
}

#[cfg(test)]
mod tests;
