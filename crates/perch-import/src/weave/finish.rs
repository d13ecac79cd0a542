// SPDX-License-Identifier: GPL-2.0-or-later
//! The end of a recording: this module decides which tasks the script keeps, replaces the others,
//! and writes the script.

use std::collections::BTreeMap;

use perch_workload::Class;
use perch_workload::recorded::{MOST_TASKS, Script, ScriptTask, Step};

use super::Weaver;
use super::task::{Did, Task, Woken};
use crate::summary::Summary;
use crate::{ImportError, Origin};

/// The kernel's stopper threads, which move tasks for the balancer. The simulation moves tasks by
/// itself.
const STOPPERS: &str = "migration/*";
/// The recorders' own commands, which are left out unless the user asks for them.
const RECORDERS: [&str; 5] = ["perf", "trace-cmd", "perfetto", "traced", "traced_probes"];
/// A task may be periodic from so many alarms on; so many of the distances between them, in
/// percent, must be the usual distance, give or take so much.
const ALARMS: usize = 8;
const ALIKE_MOST: usize = 50;
const ALIKE_PERCENT: u64 = 10;

/// Returns true where a name fits a pattern of text and `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, rest)) => name.strip_prefix(before).is_some_and(|name| {
            (0..=name.len()).any(|at| name.is_char_boundary(at) && fits(rest, &name[at..]))
        }),
    }
}

impl Weaver {
    /// Returns the script, and the summary of the import.
    ///
    /// # Errors
    /// Returns an error where nothing ran, or nothing is kept, or only some of the tasks were
    /// recorded.
    pub fn finish(mut self, origin: &Origin) -> Result<(Script, Summary), ImportError> {
        let [switches, strange] = self.switches;
        // A recorder that follows some tasks has none of the switches between the others.
        if strange > switches / 2 {
            return Err(ImportError::Input(format!(
                "{strange} of its {switches} switches are from another task than the CPU last switched to: it has the events of some tasks alone; record all of them, perf sched record or trace-cmd record without -P and -F"
            )));
        }
        self.settle();
        // A task that other tasks' events merely name has nothing to do, unless it has a child that
        // is still to be woken.
        let kept: Vec<bool> = self.tasks.iter().map(|t| self.keeps(t)).collect();
        let mut numbers = Vec::with_capacity(kept.len());
        let mut count = 0u32;
        for &keep in &kept {
            numbers.push(keep.then_some(count));
            count += u32::from(keep);
        }
        self.has_tasks(count)?;
        let mut summary = self.summary(origin, count);
        let mut processes = BTreeMap::new();
        let mut script = Script {
            about: Vec::new(),
            span_ns: self.ended_ns,
            tasks: Vec::with_capacity(count as usize),
        };
        for (task, t) in self.tasks.iter().enumerate() {
            let name = t.name.to_string();
            if !kept[task] {
                summary.left_out.add(&name, t.time_ns, 0);
                continue;
            }
            let number = script.tasks.len() as u32;
            let process = match t.process {
                Some(process) => {
                    let next = processes.len() as u32;
                    *processes.entry(process).or_insert(next)
                }
                // This number is beyond all numbers that processes get.
                None => (self.tasks.len() as u32).saturating_add(number),
            };
            let (class, nice) = class(t, &mut summary);
            let parent = t.parent.and_then(|parent| numbers[parent as usize]);
            let start = match parent {
                Some(_) => None,
                // The task's parent is left out, or was not seen.
                None if t.forked => Some(t.born_ns),
                None => Some(0),
            };
            let steps = steps(t, &numbers, start.unwrap_or(t.born_ns), &mut summary);
            let wakes = steps.iter().filter(|step| matches!(step, Step::Wake(_))).count() as u64;
            summary.kept.add(&name, t.time_ns, wakes);
            summary.cpu_ns += t.time_ns;
            summary.gaps += t.gaps;
            script.tasks.push(ScriptTask { name, process, class, nice, start, steps });
        }
        summary.work_ns = script.work_ns();
        summary.wakes = script.wakes();
        script.about = summary.about();
        script.check().map_err(|error| {
            ImportError::Input(format!(
                "task {} of what was made of it: {}: this is a bug of perch",
                error.task, error.why
            ))
        })?;
        Ok((script, summary))
    }

    /// Closes the accounts of every task at the end of the recording.
    fn settle(&mut self) {
        for task in 0..self.tasks.len() as u32 {
            self.accounts(task, self.ended_ns);
            let t = &mut self.tasks[task as usize];
            let woken: Vec<Woken> =
                t.race.take().into_iter().chain(std::mem::take(&mut t.early)).collect();
            for woken in woken {
                self.was_early(task, woken);
            }
            self.tasks[task as usize].settle();
        }
    }

    /// Refuses a script of `count` tasks that has none, or too many.
    fn has_tasks(&self, count: u32) -> Result<(), ImportError> {
        if count == 0 {
            return Err(ImportError::Input(if self.tasks.is_empty() {
                "it has no events of the scheduler: record with perf sched record".to_string()
            } else {
                "no task is left: expected --only and --without to keep one".to_string()
            }));
        }
        if count as usize > MOST_TASKS {
            return Err(ImportError::Input(format!(
                "{count} tasks, more than {MOST_TASKS}: record for a shorter time, or use --only"
            )));
        }
        Ok(())
    }

    /// Returns the counts that are known before any task is written.
    fn summary(&self, origin: &Origin, count: u32) -> Summary {
        Summary {
            tool: origin.tool.to_string(),
            kernel: origin.release.clone(),
            cpus: origin.cpus,
            span_ns: self.ended_ns,
            tasks: u64::from(count),
            lost: origin.lost,
            unseen: self.odd.unseen,
            early: self.odd.early,
            late: self.odd.late,
            moves: self.odd.moves,
            interrupts: self.odd.interrupts,
            softirqs: self.odd.softirqs,
            guessed: self.wakeups,
            processes_known: self.tasks.iter().any(|t| t.process.is_some()),
            not_modelled: self.left.clone(),
            ..Summary::default()
        }
    }

    fn keeps(&self, task: &Task) -> bool {
        let name = task.name.to_string();
        let any = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, &name));
        if fits(STOPPERS, &name) || any(&self.options.without) {
            return false;
        }
        if self.options.only.is_empty() {
            !RECORDERS.contains(&name.as_str()) && (!task.did.is_empty() || task.forked)
        } else {
            any(&self.options.only)
        }
    }
}

/// Returns the class and nice level of a task, by the priority with which it ran longest.
fn class(task: &Task, summary: &mut Summary) -> (Class, i8) {
    let (prio, changed) = task.usual_prio();
    summary.changed_prio += u64::from(changed);
    match prio {
        100..=139 => (Class::Fair, (prio - 120) as i8),
        // No task can have a priority of 99.
        0..=98 => {
            summary.real_time += 1;
            (Class::Fifo(99 - prio as u8), 0)
        }
        _ => {
            summary.real_time += 1;
            summary.deadline += u64::from(prio < 0);
            (Class::Fifo(99), 0)
        }
    }
}

/// Returns a task's steps; tasks that are left out count as the world outside.
fn steps(task: &Task, numbers: &[Option<u32>], born_ns: u64, summary: &mut Summary) -> Vec<Step> {
    let sleeps = task.did.iter().filter_map(|did| match did {
        Did::Sleep { ns } => Some(*ns),
        _ => None,
    });
    let periodic = is_periodic(&task.alarms, &sleeps.collect::<Vec<_>>());
    summary.periodic += u64::from(periodic);
    let mut alarms = task.alarms.iter();
    let mut last = born_ns;
    let mut steps: Vec<Step> = Vec::with_capacity(task.did.len());
    for did in &task.did {
        let step = match *did {
            Did::Compute { ns } => match steps.last_mut() {
                Some(Step::Compute(before)) => {
                    *before += ns;
                    continue;
                }
                _ => Step::Compute(ns),
            },
            Did::Wake { task } => match numbers[task as usize] {
                Some(task) => Step::Wake(task),
                None => {
                    summary.wakes_out += 1;
                    continue;
                }
            },
            Did::Fork { task } => match numbers[task as usize] {
                Some(task) => Step::Fork(task),
                None => continue,
            },
            Did::Await { by, ns } => match numbers[by as usize] {
                Some(by) => Step::Await(by),
                None => {
                    summary.wakes_in += 1;
                    Step::Sleep(ns)
                }
            },
            Did::Sleep { ns } => {
                summary.alarms += 1;
                let at = alarms.next().copied().unwrap_or(last);
                let gap = at.saturating_sub(last);
                last = at;
                if periodic { Step::Next(gap) } else { Step::Sleep(ns) }
            }
            Did::Exec => Step::Exec,
        };
        steps.push(step);
    }
    steps
}

/// Returns true where the distances between alarms are much the same. A task that sleeps for the
/// same time whenever its work is done has such alarms, too, but its sleeps are even more alike.
fn is_periodic(alarms: &[u64], sleeps: &[u64]) -> bool {
    if alarms.len() < ALARMS || sleeps.len() != alarms.len() {
        return false;
    }
    let gaps: Vec<u64> = alarms.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (median, scatter) = scatter(&gaps);
    let alike = gaps.iter().filter(|gap| gap.abs_diff(median) * 100 <= median * ALIKE_PERCENT);
    median > 0
        && alike.count() * 100 >= gaps.len() * ALIKE_MOST
        && scatter <= self::scatter(&sleeps[1..]).1
}

/// Returns the median, and the sum of the values' distances from it; a distance counts at most as
/// much as the median.
fn scatter(values: &[u64]) -> (u64, u64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let far = values.iter().map(|value| value.abs_diff(median).min(median));
    (median, far.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_a_shell_would_have_them() {
        for (pattern, name, expected) in [
            ("perf", "perf", true),
            ("perf", "perform", false),
            ("migration/*", "migration/12", true),
            ("*bench*", "hackbench", true),
            ("*", "", true),
            ("a*c", "abd", false),
            ("a*c*", "abcd", true),
            ("*ü", "grün", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn periods_are_told_from_chance() {
        // This task wakes every 100, give or take 2, works for 10 to 30, and sleeps for the rest.
        let regular: Vec<u64> = (0..20).map(|n| 1000 + n * 100 + n % 3).collect();
        let rests: Vec<u64> = (0..20).map(|n| 70 + n * 7 % 20).collect();
        assert!(is_periodic(&regular, &rests));
        assert!(!is_periodic(&regular[..7], &rests[..7]));
        // This task sleeps for 80, give or take 1, after work of 10 to 30.
        let naps: Vec<u64> = (0..20).map(|n| 80 + n % 2).collect();
        let mut at = 0;
        let after: Vec<u64> = naps
            .iter()
            .zip(0..)
            .map(|(nap, n)| {
                at += nap + 10 + n * 7 % 20;
                at
            })
            .collect();
        assert!(!is_periodic(&after, &naps));
        let growing: Vec<u64> = (0..20).map(|n| n * n * 100).collect();
        assert!(!is_periodic(&growing, &growing));
        assert!(!is_periodic(&[5; 20], &[5; 20]));
    }
}
