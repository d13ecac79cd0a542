// SPDX-License-Identifier: GPL-2.0-or-later
//! What is asked for: a TOML file, `--set`, and defaults.

use std::path::Path;

use perch_policy::{Layout, Mechanism, Mode, Modes, Setting, Topology};
use serde::Deserialize;

use crate::band::{Band, Table};
use crate::error::SchedulerError;
use crate::interface::MAX_BANDS;

/// Times and switches of the scheduler, apart from the mechanisms' modes.
///
/// `perch run --help` lists these with their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// How long a task that is alone runs until it is looked at again, microseconds (100 to
    /// 1,000,000).
    pub slice_us: u64,
    /// The slice however many wait, microseconds (10 to `slice_us`).
    pub slice_min_us: u64,
    /// The most that a task is owed or owes, microseconds (100 to 1,000,000).
    pub lag_us: u64,
    /// A wakee that is so far behind the running task interrupts it, microseconds (1 to
    /// 1,000,000).
    pub preempt_us: u64,
    /// How often queues are compared, milliseconds (0 to 1000; 0: never).
    pub balance_ms: u64,
    /// How long a waiting task of another node is left to its own, microseconds (0 to
    /// 1,000,000).
    pub steal_remote_us: u64,
    /// How many processes the cache mechanism follows at most (1 to 65,536); those beyond are
    /// placed as if it were off.
    pub processes: u64,
    /// How much of each period the real-time band may have of a CPU on which others wait, per cent
    /// (1 to 99: the kernel throws a scheduler out that leaves somebody waiting for ever).
    pub band_percent: u64,
    /// That period, milliseconds (10 to 1000).
    pub band_period_ms: u64,
    /// How many task groups (cgroups with a cpu controller) are followed at most (0 to 65,536; 0:
    /// their weights do not count); those beyond are part of the group above. As many as fit into
    /// 64 MiB, at most 4096, where nobody asks.
    pub groups: Option<u64>,
    /// Also count wake-ups that had an idle CPU near, which costs a little.
    pub detail: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            // Two that share a CPU then change about as often as under the stock kernel.
            slice_us: 6_000,
            slice_min_us: 1_000,
            lag_us: 10_000,
            // hackbench at 2 ms: one wake-up in six interrupted somebody, to no end.
            preempt_us: 4_000,
            // The kernel's shortest interval between two balances of a small domain.
            balance_ms: 4,
            steal_remote_us: 500,
            processes: 1024,
            // The kernel's for its own real-time class, though over a second.
            band_percent: 95,
            band_period_ms: 100,
            groups: None,
            detail: false,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Mechanisms that were named, the last word on each counting.
    modes: Vec<(&'static str, Mode)>,
    /// How the overload counters lie in memory, if that was named.
    layout: Option<Layout>,
    /// The real-time band, if there is one.
    bands: Vec<Band>,
    /// Everything else.
    pub tuning: Tuning,
}

/// The file; every key may be left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    modes: Option<toml::Spanned<String>>,
    slice_us: Option<toml::Spanned<u64>>,
    slice_min_us: Option<toml::Spanned<u64>>,
    lag_us: Option<toml::Spanned<u64>>,
    preempt_us: Option<toml::Spanned<u64>>,
    balance_ms: Option<toml::Spanned<u64>>,
    steal_remote_us: Option<toml::Spanned<u64>>,
    processes: Option<toml::Spanned<u64>>,
    band_percent: Option<toml::Spanned<u64>>,
    band_period_ms: Option<toml::Spanned<u64>>,
    groups: Option<toml::Spanned<u64>>,
    #[serde(default)]
    band: Vec<toml::Spanned<Table>>,
    detail: Option<bool>,
}

impl Settings {
    /// Reads a TOML file; what it does not name keeps its default.
    ///
    /// # Errors
    /// [`SchedulerError::Settings`], with the file, the line and what was expected.
    pub fn from_file(path: &Path) -> Result<Settings, SchedulerError> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| SchedulerError::Settings(format!("cannot read {name}: {error}")))?;
        Settings::from_toml(&text, &name.to_string())
    }

    /// Reads TOML that came from `origin`.
    ///
    /// # Errors
    /// As [`Settings::from_file`].
    pub fn from_toml(text: &str, origin: &str) -> Result<Settings, SchedulerError> {
        let refuse = |span: std::ops::Range<usize>, message: &str| {
            let before = text.get(..span.start).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            SchedulerError::Settings(format!("{origin}:{line}: {message}"))
        };
        let file: File = toml::from_str(text)
            .map_err(|error| refuse(error.span().unwrap_or(0..0), error.message()))?;

        let mut settings = Settings::default();
        if let Some(modes) = &file.modes {
            settings
                .set(modes.get_ref())
                .map_err(|error| refuse(modes.span(), &format!("modes: {error}")))?;
        }
        let tuning = &mut settings.tuning;
        let second = 1_000_000;
        let slice = file
            .slice_us
            .as_ref()
            .map_or(tuning.slice_us, |s| *s.get_ref());
        let fields = [
            (
                "slice_us",
                &file.slice_us,
                &mut tuning.slice_us,
                100,
                second,
            ),
            (
                "slice_min_us",
                &file.slice_min_us,
                &mut tuning.slice_min_us,
                10,
                slice,
            ),
            ("lag_us", &file.lag_us, &mut tuning.lag_us, 100, second),
            (
                "preempt_us",
                &file.preempt_us,
                &mut tuning.preempt_us,
                1,
                second,
            ),
            (
                "balance_ms",
                &file.balance_ms,
                &mut tuning.balance_ms,
                1,
                1000,
            ),
            (
                "steal_remote_us",
                &file.steal_remote_us,
                &mut tuning.steal_remote_us,
                0,
                second,
            ),
            (
                "processes",
                &file.processes,
                &mut tuning.processes,
                1,
                65_536,
            ),
            (
                "band_percent",
                &file.band_percent,
                &mut tuning.band_percent,
                1,
                99,
            ),
            (
                "band_period_ms",
                &file.band_period_ms,
                &mut tuning.band_period_ms,
                10,
                1000,
            ),
        ];
        for (key, given, value, low, high) in fields {
            let Some(given) = given else { continue };
            if !(low..=high).contains(given.get_ref()) {
                let message = format!("{key}: {}: expected {low} to {high}", given.get_ref());
                return Err(refuse(given.span(), &message));
            }
            *value = *given.get_ref();
        }
        if let Some(groups) = &file.groups {
            if *groups.get_ref() > 65_536 {
                let message = format!("groups: {}: expected 0 to 65536", groups.get_ref());
                return Err(refuse(groups.span(), &message));
            }
            tuning.groups = Some(*groups.get_ref());
        }
        // A short slice alone does not ask for a longer one when others wait.
        tuning.slice_min_us = tuning.slice_min_us.min(tuning.slice_us);
        tuning.detail = file.detail.unwrap_or(tuning.detail);
        for table in &file.band {
            let band = table.get_ref().band().map_err(|(at, message)| {
                refuse(at.unwrap_or(table.span()), &format!("band: {message}"))
            })?;
            let add = settings.add_band(band);
            add.map_err(|error| refuse(table.span(), &error.to_string()))?;
        }
        Ok(settings)
    }

    /// Adds tasks to the real-time band, after those that were chosen before.
    ///
    /// # Errors
    /// [`SchedulerError::Settings`] when there are too many rules.
    pub fn add_band(&mut self, band: Band) -> Result<(), SchedulerError> {
        if self.bands.len() == MAX_BANDS {
            return Err(SchedulerError::Settings(format!(
                "band: too many of them: expected at most {MAX_BANDS}"
            )));
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
        let (percent, period) = (self.tuning.band_percent, self.tuning.band_period_ms);
        format!("{}; at most {percent} % of {period} ms", rules.join("; "))
    }

    /// The real-time band's rules, of which the first that fits a task counts.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// Sets mechanisms as `--set` names them: `cluster=perch`, or several, separated by commas.
    ///
    /// # Errors
    /// [`SchedulerError::Settings`] when it names no mechanism, no mode, or one twice.
    pub fn set(&mut self, text: &str) -> Result<(), SchedulerError> {
        let modes: Modes = text.parse().map_err(|error: perch_policy::ParseError| {
            SchedulerError::Settings(error.to_string())
        })?;
        self.layout = modes.layout.or(self.layout);
        for (mechanism, mode) in modes.iter() {
            let name = mechanism.name();
            let named = |part: &str| part.split('=').next() == Some(name);
            if text.split(',').any(named) {
                self.modes.retain(|(other, _)| *other != name);
                self.modes.push((name, mode));
            }
        }
        Ok(())
    }

    /// The modes for this machine, and what must be said about them: a mechanism whose premise
    /// the machine lacks stays off, whatever was asked for. A mechanism that nobody asked for has the
    /// last of its modes, perch.
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
