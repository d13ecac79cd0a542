// SPDX-License-Identifier: GPL-2.0-or-later
//! What is asked for: a TOML file, `--set`, `--band`, and defaults.

mod error;
mod read;
mod show;
mod table;

use perch_policy::{Layout, Mode, Modes, Topology};

use crate::band::Band;
use crate::interface::MAX_BANDS;
pub use error::{Problem, SettingsError};
pub use show::{help, markdown};
use table::SETTINGS;
pub(crate) use table::{DEFAULT_GROUPS, Tuning};

/// What is asked for. What nobody asks for has the default of the table of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Mechanisms that were named, the last word on each counting.
    modes: Vec<(&'static str, Mode)>,
    /// How the overload counters lie in memory, if that was named.
    layout: Option<Layout>,
    /// The real-time band, if there is one.
    bands: Vec<Band>,
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

    /// The real-time band's rules, of which the first that fits a task counts.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// Times, sizes and switches. A short slice alone does not ask for a longer one when other
    /// tasks wait.
    pub(crate) fn tuning(&self) -> Tuning {
        Tuning {
            slice_min_us: self.tuning.slice_min_us.min(self.tuning.slice_us),
            ..self.tuning
        }
    }

    /// What must be said of settings that were asked for and do nothing, as the machine or the
    /// modes lack what they need.
    pub(crate) fn without_effect(&self, topology: &Topology, modes: Modes) -> Vec<String> {
        let asked = SETTINGS.iter().filter(|s| self.asked.contains(&s.name));
        let said = asked.filter_map(|setting| {
            let lack = setting.needs.lack(topology, modes, self.bands.len())?;
            Some(format!("{} does nothing: {lack}", setting.name))
        });
        said.collect()
    }

    /// The modes for this machine, and what must be said about them: a mechanism whose premise
    /// the machine lacks stays off, whatever was asked for.
    pub fn modes_for(&self, topology: &Topology) -> (Modes, Vec<String>) {
        let asked = |name: &str| {
            let found = self.modes.iter().find(|(other, _)| *other == name);
            found.map(|(_, mode)| *mode)
        };
        let mut notes = Vec::new();
        let cluster = match (asked("cluster"), topology.has_clusters()) {
            (mode, true) => mode.unwrap_or(Mode::Perch),
            (Some(Mode::Off), false) => Mode::Off,
            (_, false) => {
                notes.push(
                    "cluster stays off: no CPUs of this machine share anything between their \
                     core and their last-level cache"
                        .to_string(),
                );
                Mode::Off
            }
        };
        let asymmetric = topology.asym_span(0).is_some();
        let capacity = match (asked("capacity"), asymmetric) {
            (mode, true) => mode.unwrap_or(Mode::Perch),
            (None | Some(Mode::Off), false) => Mode::Off,
            (_, false) => {
                notes.push(
                    "capacity stays off: all CPUs of this machine have the same capacity"
                        .to_string(),
                );
                Mode::Off
            }
        };
        let cache = match (asked("cache"), topology.nr_llcs() > 1) {
            (mode, true) => mode.unwrap_or(Mode::Perch),
            (None | Some(Mode::Off), false) => Mode::Off,
            (_, false) => {
                notes.push(
                    "cache stays off: this machine has one last-level cache, or none that CPUs \
                     share"
                        .to_string(),
                );
                Mode::Off
            }
        };
        let overload = match (asked("overload"), self.bands.is_empty()) {
            (mode, false) => mode.unwrap_or(Mode::Perch),
            (None | Some(Mode::Off), true) if self.layout.is_none() => Mode::Off,
            (_, true) => {
                notes.push(
                    "overload stays off: no tasks are in the real-time band ([[band]] or --band)"
                        .to_string(),
                );
                Mode::Off
            }
        };
        let steer = match (asked("steer"), self.tuning.groups == Some(0)) {
            (mode, false) => mode.unwrap_or(Mode::Perch),
            (None | Some(Mode::Off), true) => Mode::Off,
            (_, true) => {
                notes.push("steer stays off: no task groups are followed (groups = 0)".to_string());
                Mode::Off
            }
        };
        let modes = Modes {
            cluster,
            capacity,
            cache,
            overload,
            steer,
            layout: self.layout.filter(|_| !self.bands.is_empty()),
        };
        (modes, notes)
    }
}

#[cfg(test)]
mod tests;
