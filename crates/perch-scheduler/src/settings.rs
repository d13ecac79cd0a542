// SPDX-License-Identifier: GPL-2.0-or-later
//! The user's wishes: a TOML file, `--set`, `--band`, and defaults.

mod error;
mod read;
mod schema;
mod show;
mod table;

use perch_policy::{Layout, Mechanism, Mode, Modes, Setting, Topology};

use crate::band::Band;
use crate::interface::MAX_BANDS;
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

    /// The warnings about settings that the user asks for and that do nothing, because the machine
    /// or the modes lack what the settings need.
    pub(crate) fn without_effect(&self, topology: &Topology, modes: Modes) -> Vec<String> {
        let asked = SETTINGS.iter().filter(|s| self.asked.contains(&s.name));
        let said = asked.filter_map(|setting| {
            let lack = setting.needs.lack(topology, modes, self.bands.len())?;
            Some(format!("{} does nothing: {lack}", setting.name))
        });
        said.collect()
    }

    /// The modes for this machine, and the notes about them: a mechanism whose premise the machine
    /// lacks stays off, whatever the user asked for. A mechanism that the user does not name has
    /// the last of its modes, perch.
    pub fn modes_for(&self, topology: &Topology) -> (Modes, Vec<String>) {
        let banded = !self.bands.is_empty();
        let (mut modes, mut notes) = (Modes::default(), Vec::new());
        for mechanism in Mechanism::ALL {
            let named = self
                .modes
                .iter()
                .find(|(name, _)| *name == mechanism.name());
            let asked = named.map(|(_, mode)| *mode);
            let (premise, lack) = mechanism.premise();
            let (holds, lack) = match mechanism.setting() {
                None => (premise.holds(topology), lack),
                Some((Setting::Band, lack)) => (banded, lack),
                Some((Setting::Groups, lack)) => (self.tuning.groups != Some(0), lack),
            };
            // The counters' layout asks for the mechanism that has them.
            let layout = mechanism == Mechanism::Overload && self.layout.is_some();
            if holds {
                let own = *mechanism.modes().last().unwrap_or(&Mode::Off);
                modes[mechanism] = asked.unwrap_or(own);
            } else if layout || asked.is_some_and(|mode| mode != Mode::Off) {
                notes.push(format!("{mechanism} stays off: {lack}"));
            }
        }
        modes.layout = self.layout.filter(|_| banded);
        (modes, notes)
    }
}

#[cfg(test)]
mod tests;
