// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures a stretch of time, under either scheduler alike.

use std::path::PathBuf;
use std::time::Instant;

use perch_scheduler::Signals;
use perch_scheduler::waits::{Cause, Counted, Group, Scope, Wait, Watch};

use super::conduct::Interruption;
use super::result::Measure;
use super::source::{self, Cgroup, Counter};
use crate::cgroup;
use crate::output::{Failure, say};

/// Waits that are measured: the ends of the names, and what they begin with. A wake-up's wait begins at
/// the waker's call, so the choice of a CPU is in it.
const WAITS: [(&str, Wait); 2] =
    [("wait", Wait::AfterWaking), ("preempted", Wait::AfterPreemption)];

/// The parts of them: the beginnings of the names, and what part did not wait longer; none for the
/// mean.
const PARTS: [(&str, Option<f64>); 3] = [("p50", Some(0.5)), ("p99", Some(0.99)), ("mean", None)];

/// Measures of which the user is told while the trial goes on, beside her counters.
const TOLD: [&str; 2] = ["p50_wait", "p99_wait"];

/// Where a number of the kernel is read, and how.
struct Source {
    path: PathBuf,
    parse: fn(&str) -> Option<f64>,
}

impl Source {
    fn read(&self) -> Result<f64, String> {
        let text = source::text(&self.path)?;
        let wrong = || format!("{}: not as expected", self.path.display());
        (self.parse)(&text).ok_or_else(wrong)
    }
}

/// All numbers at one moment.
struct Reading {
    at: Instant,
    waits: Counted,
    cpu: Option<f64>,
    pressures: Vec<Option<f64>>,
    counters: Vec<Option<(Instant, f64)>>,
}

/// Measures.
pub struct Meter {
    watch: Watch,
    measures: Vec<Measure>,
    /// The time used by CPUs, and how many of its units are a second.
    cpu: Vec<Source>,
    cpu_per_s: f64,
    pressures: Vec<Source>,
    counters: Vec<Counter>,
    begun: Option<Reading>,
}

impl Meter {
    /// Begins to watch the tasks of these cgroups, which the kernel knows as `groups`, or without any
    /// all of user space. Returns notes, too, about what cannot be measured here.
    ///
    /// # Errors
    /// A failure where a counter gives no number, or the kernel takes no programs.
    pub fn new(
        (cgroups, groups): (&[Cgroup], &[Group]),
        counters: Vec<Counter>,
        signals: &Signals,
    ) -> Result<(Meter, Vec<String>), Failure> {
        for counter in &counters {
            match counter.read(signals, source::PATIENCE) {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => return Err(Failure::input(format!("--counter: {why}"))),
                Err(_) => return Err(Failure::run("stopped before the first turn")),
            }
        }
        let mut notes = Vec::new();
        let files = |name: &str, whole: &str, parse| -> Vec<Source> {
            let paths: Vec<PathBuf> = match cgroups {
                [] => vec![PathBuf::from(whole)],
                _ => cgroups.iter().map(|group| group.file(name)).collect(),
            };
            paths.into_iter().map(|path| Source { path, parse }).collect()
        };
        let (cpu, cpu_per_s) = match cgroups {
            [] => {
                let per_s = rustix::param::clock_ticks_per_second();
                (files("", "/proc/stat", source::ticks), per_s as f64)
            }
            _ => (files("cpu.stat", "", cgroup::usage_us), 1e6),
        };
        let mut pressures = files("cpu.pressure", "/proc/pressure/cpu", cgroup::some_us);
        if let Some(why) = pressures.iter().find_map(|source| source.read().err()) {
            notes.push(format!("pressure is not measured: {why}"));
            pressures.clear();
        }
        let watch = Watch::begin(Scope::Others(groups))?;
        let measures = measures(cgroups, !pressures.is_empty(), &counters);
        let meter = Meter { watch, measures, cpu, cpu_per_s, pressures, counters, begun: None };
        Ok((meter, notes))
    }

    /// What is measured, in the order of values.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Begins a stretch.
    pub fn begin(&mut self, signals: &Signals) -> Result<(), Interruption> {
        // The counters first, so that the work of their commands is not in the stretch.
        let counters = self.counters(signals)?;
        self.begun = Some(self.reading(counters)?);
        Ok(())
    }

    /// Ends the stretch and returns each measure's value in it.
    pub fn end(&mut self, signals: &Signals) -> Result<Vec<Option<f64>>, Interruption> {
        let mut now = self.reading(Vec::new())?;
        now.counters = self.counters(signals)?;
        let Some(before) = self.begun.take() else {
            return Ok(vec![None; self.measures.len()]);
        };
        Ok(self.values(&before, &now))
    }

    fn counters(&self, signals: &Signals) -> Result<Vec<Option<(Instant, f64)>>, Interruption> {
        let counters = self.counters.iter().map(|counter| {
            let read = counter.read(signals, source::PATIENCE)?;
            // The turn lacks this counter's value, and the trial goes on.
            Ok(read.map_err(say).ok())
        });
        counters.collect()
    }

    fn reading(&self, counters: Vec<Option<(Instant, f64)>>) -> Result<Reading, Failure> {
        let waits = self.watch.counted();
        let waits = waits.map_err(|error| Failure::run(error.to_string()))?;
        let cpu: Option<Vec<f64>> = self.cpu.iter().map(|source| source.read().ok()).collect();
        let pressures = self.pressures.iter().map(|source| source.read().ok());
        Ok(Reading {
            at: Instant::now(),
            waits,
            cpu: cpu.map(|all| all.iter().sum()),
            pressures: pressures.collect(),
            counters,
        })
    }

    fn values(&self, before: &Reading, now: &Reading) -> Vec<Option<f64>> {
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        let waits = now.waits.since(&before.waits);
        let mut values = of_waits(&waits, seconds);
        let cpu = grown(before.cpu, now.cpu).map(|grown| grown / self.cpu_per_s);
        values.push(cpu.map(|used| used / seconds));
        let pressures = before.pressures.iter().zip(&now.pressures);
        values.extend(pressures.map(|(before, now)| {
            let waited = grown(*before, *now)?;
            Some(100.0 * waited / 1e6 / seconds)
        }));
        let counters = before.counters.iter().zip(&now.counters);
        values.extend(counters.map(|(before, now)| {
            let ((began, before), (ended, now)) = ((*before)?, (*now)?);
            let grown = grown(Some(before), Some(now))?;
            Some(grown / ended.duration_since(began).as_secs_f64())
        }));
        values
    }
}

/// How much a number has grown; none where it began anew meanwhile.
fn grown(before: Option<f64>, now: Option<f64>) -> Option<f64> {
    let grown = now? - before?;
    (grown >= 0.0).then_some(grown)
}

/// The names of what is measured, in the order of values.
fn measures(cgroups: &[Cgroup], pressure: bool, counters: &[Counter]) -> Vec<Measure> {
    let waits = WAITS
        .iter()
        .flat_map(|(wait, _)| PARTS.iter().map(move |(part, _)| (format!("{part}_{wait}"), "us")));
    let rates = [("wakeups", "/s"), ("migrations", "/s"), ("cpu_time", "CPUs")];
    let pressures = match cgroups {
        _ if !pressure => Vec::new(),
        [] | [_] => vec!["pressure".to_string()],
        several => several.iter().map(|group| format!("pressure{}", group.path)).collect(),
    };
    let counted = counters.iter().map(|counter| (counter.name.clone(), "/s"));
    let all = waits
        .chain(rates.map(|(name, unit)| (name.to_string(), unit)))
        .chain(pressures.into_iter().map(|name| (name, "%")))
        .chain(counted);
    let told = |name: &str| TOLD.contains(&name) || counters.iter().any(|c| c.name == name);
    all.map(|(name, unit)| Measure { told: told(&name), name, unit }).collect()
}

/// The values of waits, wake-ups and migrations in so many seconds.
fn of_waits(counted: &Counted, seconds: f64) -> Vec<Option<f64>> {
    let mut values = Vec::new();
    for (_, wait) in WAITS {
        for (_, part) in PARTS {
            let ns = match part {
                Some(part) => counted.quantile_ns(wait, part),
                None => counted.mean_ns(wait),
            };
            values.push((counted.waits(wait) > 0).then_some(ns / 1000.0));
        }
    }
    let migrations = [Cause::Woken, Cause::Preempted].map(|cause| {
        let moves = counted.moves(cause).filter(|(from, to, _)| from != to);
        moves.map(|(_, _, count)| count).sum::<u64>()
    });
    let wakeups = counted.waits(Wait::AfterWaking);
    for count in [wakeups, migrations.iter().sum()] {
        values.push(Some(count as f64 / seconds));
    }
    values
}

/// Refuses counters with a name that another measure has.
///
/// # Errors
/// Words for the user.
pub fn distinct(cgroups: &[Cgroup], counters: &[Counter]) -> Result<(), String> {
    let all = measures(cgroups, true, counters);
    for (at, measure) in all.iter().enumerate() {
        if all[..at].iter().any(|other| other.name == measure.name) {
            return Err(format!(
                "--counter {}: another measure has this name; expected a name of its own",
                measure.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::source::{cgroup, counter};
    use super::*;

    #[test]
    fn names_are_those_that_conditions_use() {
        let names = |cgroups: &[Cgroup]| -> Vec<String> {
            let all = measures(cgroups, true, &[counter("requests=echo 1").unwrap()]);
            all.into_iter().map(|measure| measure.name).collect()
        };
        let [web, db] = ["/web", "/db"].map(|path| cgroup(path).unwrap());
        assert_eq!(
            names(std::slice::from_ref(&web)).join(" "),
            "p50_wait p99_wait mean_wait p50_preempted p99_preempted mean_preempted wakeups \
             migrations cpu_time pressure requests"
        );
        assert_eq!(names(&[web, db])[9..], ["pressure/web", "pressure/db", "requests"]);
    }

    #[test]
    fn counters_need_names_of_their_own() {
        let of = |names: &[&str]| {
            let counters = names.iter().map(|name| counter(&format!("{name}=echo 1")).unwrap());
            distinct(&[], &counters.collect::<Vec<_>>())
        };
        assert_eq!(of(&["a", "b"]), Ok(()));
        assert!(of(&["a", "a"]).unwrap_err().contains("--counter a:"));
        assert!(of(&["cpu_time"]).unwrap_err().contains("--counter cpu_time:"));
    }

    #[test]
    fn number_that_began_anew_has_not_grown() {
        assert_eq!(grown(Some(1.0), Some(4.0)), Some(3.0));
        assert_eq!(grown(Some(4.0), Some(1.0)), None);
        assert_eq!(grown(None, Some(1.0)), None);
    }
}
