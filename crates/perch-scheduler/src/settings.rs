// SPDX-License-Identifier: GPL-2.0-only
//! What is asked for: a TOML file, `--set`, and defaults.

use std::path::Path;

use perch_policy::{Layout, Mode, Modes, Topology};
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
        for (name, mode) in modes.iter() {
            let named = |part: &str| part.split('=').next() == Some(name);
            if text.split(',').any(named) {
                self.modes.retain(|(other, _)| *other != name);
                self.modes.push((name, mode));
            }
        }
        Ok(())
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
        let steer = Mode::Off;
        if !matches!(asked("steer"), None | Some(Mode::Off)) {
            notes.push("steer stays off: this version does not follow task groups yet".to_string());
        }
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
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Settings::from_toml(text, "perch.toml")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(Settings::from_toml("", "x").unwrap(), Settings::default());
    }

    #[test]
    fn every_key_is_read() {
        let text = "modes = \"cluster=posted\"\nslice_us = 5000\nslice_min_us = 700\n\
                    lag_us = 6000\npreempt_us = 900\nbalance_ms = 8\nsteal_remote_us = 0\n\
                    processes = 50\nband_percent = 80\nband_period_ms = 50\ndetail = true\n";
        let settings = Settings::from_toml(text, "x").unwrap();
        assert_eq!(settings.modes, [("cluster", Mode::Posted)]);
        let expected = Tuning {
            slice_us: 5000,
            slice_min_us: 700,
            lag_us: 6000,
            preempt_us: 900,
            balance_ms: 8,
            steal_remote_us: 0,
            processes: 50,
            band_percent: 80,
            band_period_ms: 50,
            detail: true,
        };
        assert_eq!(settings.tuning, expected);
    }

    #[test]
    fn refusals_name_the_line_and_what_was_expected() {
        let message = refusal("detail = true\nslice = 3\n");
        assert!(
            message.starts_with("perch.toml:2: unknown field `slice`"),
            "{message}"
        );
        assert!(message.contains("slice_us"), "{message}");
        let message = refusal("\n\nslice_us = 50\n");
        assert_eq!(
            message,
            "perch.toml:3: slice_us: 50: expected 100 to 1000000"
        );
        let message = refusal("slice_us = 500\nslice_min_us = 501\n");
        assert_eq!(
            message,
            "perch.toml:2: slice_min_us: 501: expected 10 to 500"
        );
        let message = refusal("modes = \"cluster=on\"\n");
        assert!(
            message.starts_with("perch.toml:1: modes: unknown mode \"on\""),
            "{message}"
        );
        let message = refusal("processes = 0\n");
        assert_eq!(message, "perch.toml:1: processes: 0: expected 1 to 65536");
        assert!(refusal("lag_us = -1\n").starts_with("perch.toml:1: "));
        assert!(refusal("lag_us = \"1\"\n").starts_with("perch.toml:1: "));
        assert!(refusal("lag_us = 1\nlag_us = 2\n").starts_with("perch.toml:2: "));
        assert!(refusal("lag_us =\n").starts_with("perch.toml:1: "));
    }

    #[test]
    fn bands_are_read_and_refused_with_their_line() {
        let text = "[[band]]\ncomm = \"ffmpeg*\"\npriority = 50\n\n\
                    [[band]]\ncgroup = \"/rt\"\nnice = -5\npriority = 7\npolicy = \"rr\"\n";
        let settings = Settings::from_toml(text, "x").unwrap();
        let shown: Vec<_> = settings.bands().iter().map(Band::to_string).collect();
        assert_eq!(
            shown,
            [
                "comm=ffmpeg*,priority=50",
                "cgroup=/rt,nice=-5,priority=7,slice_ms=100"
            ]
        );
        let rule = |last: &str| refusal(&format!("[[band]]\ncomm = \"a\"\n{last}\n"));
        assert_eq!(
            rule("priority = 0"),
            "perch.toml:3: band: priority: 0: expected 1 to 99"
        );
        assert!(rule("").starts_with("perch.toml:1: band: no priority: "));
        assert!(rule("prio = 3").starts_with("perch.toml:3: unknown field `prio`"));
        assert!(rule("priority = \"high\"").starts_with("perch.toml:3: "));
        let message = refusal("band_percent = 0\n");
        assert_eq!(message, "perch.toml:1: band_percent: 0: expected 1 to 99");
        let many = "[[band]]\ncomm = \"a\"\npriority = 1\n".repeat(17);
        assert_eq!(
            refusal(&many),
            "perch.toml:49: band: too many of them: expected at most 16"
        );
    }

    #[test]
    fn overload_needs_a_band() {
        let topology = Topology::new(&perch_machine::resolve("x5570").unwrap());
        let mut settings = Settings::default();
        settings
            .set("overload=posted,overload-layout=llc-padded")
            .unwrap();
        let (modes, notes) = settings.modes_for(&topology);
        assert_eq!((modes.overload, modes.layout), (Mode::Off, None));
        assert!(
            notes
                .iter()
                .any(|note| note.starts_with("overload stays off: "))
        );
        settings
            .add_band("nice=-20,priority=1".parse().unwrap())
            .unwrap();
        let (modes, _) = settings.modes_for(&topology);
        assert_eq!(modes.overload, Mode::Posted);
        assert_eq!(modes.overload_layout(), Layout::LlcPadded);
    }

    #[test]
    fn the_last_word_on_a_mechanism_counts() {
        let mut settings = Settings::from_toml("modes = \"cluster=posted\"", "x").unwrap();
        settings.set("cluster=off").unwrap();
        assert_eq!(settings.modes, [("cluster", Mode::Off)]);
        assert!(settings.set("cluster").is_err());
        assert!(settings.set("").is_err());
    }

    #[test]
    fn a_mechanism_without_its_premise_stays_off_and_says_so() {
        let machine = |name| perch_machine::resolve(name).unwrap();
        let flat = Topology::new(&machine("x5570"));
        let clustered = Topology::new(&machine("kunpeng920"));
        let mut settings = Settings::default();
        assert_eq!(settings.modes_for(&clustered).0.cluster, Mode::Perch);
        let (modes, notes) = settings.modes_for(&flat);
        assert_eq!((modes.cluster, notes.len()), (Mode::Off, 1));
        settings.set("cluster=off").unwrap();
        assert_eq!(settings.modes_for(&clustered).0.cluster, Mode::Off);
        assert_eq!(settings.modes_for(&flat).1.len(), 0);
        settings.set("cluster=upstream").unwrap();
        assert_eq!(settings.modes_for(&clustered).0.cluster, Mode::Upstream);
        assert_eq!(settings.modes_for(&flat).0.cluster, Mode::Off);

        let single = Topology::new(&machine("pixel3"));
        let mut settings = Settings::default();
        assert_eq!(settings.modes_for(&flat).0.cache, Mode::Perch);
        assert_eq!(settings.modes_for(&single).0.cache, Mode::Off);
        let said = |settings: &Settings| {
            let notes = settings.modes_for(&single).1;
            notes
                .iter()
                .filter(|note| note.starts_with("cache stays off: "))
                .count()
        };
        assert_eq!(said(&settings), 0);
        settings.set("cache=posted").unwrap();
        assert_eq!(settings.modes_for(&flat).0.cache, Mode::Posted);
        assert_eq!(
            (settings.modes_for(&single).0.cache, said(&settings)),
            (Mode::Off, 1)
        );
    }
}
