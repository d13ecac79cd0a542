// SPDX-License-Identifier: GPL-2.0-or-later
//! The causes for which the model of a kernel chose otherwise than that kernel, as far as the two
//! looks of a recording show them. docs/recordings.md has the rules in words.

use perch_policy::Wake;

use crate::moment::{Cpu, Task, UNSEEN_CONTEXT};
use crate::replay::{Given, Replay};

/// The cause for which the model of a kernel chose otherwise than the kernel, as far as the
/// recording shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Something that the model decides by changed while the kernel decided. With some of the
    /// values seen at the end of the choice in the place of those seen at its beginning the model
    /// chooses as the kernel did.
    Changed,
    /// The choice hinges on a value that the file does not hold: with another such value the model
    /// chooses as the kernel did.
    NotRecorded,
    /// Neither of the above: the model is taken to be wrong.
    Model,
}

impl Cause {
    /// All causes, by number.
    pub const ALL: [Cause; 3] = [Cause::Changed, Cause::NotRecorded, Cause::Model];

    /// Returns the cause's name.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Changed => "changed meanwhile",
            Cause::NotRecorded => "not recorded",
            Cause::Model => "model wrong",
        }
    }
}

/// A bit of [`Task::Flags`]: the kernel works out a task's load once a jiffy where it needs the
/// load, and did not do so for this task.
const OLD_LOAD: u64 = 4;

/// Columns that the kernel reads together, or nearly so.
const PARTS: [&[Cpu]; 4] = [
    &[Cpu::Idle, Cpu::SchedIdle],
    &[Cpu::IdleExitNs, Cpu::IdleSinceNs],
    &[Cpu::NrRunning, Cpu::NrDelayed],
    &[Cpu::Load, Cpu::Runnable, Cpu::Util, Cpu::Capacity, Cpu::CurrLoad],
];

impl Replay {
    /// Returns the cause for which the model chose otherwise than the kernel; see [`Cause`]. The
    /// kernel looked at one CPU after the other while they went on, so it saw each CPU either in
    /// its state at the beginning or in that at the end. That one of the chosen CPUs became idle or
    /// busy does not show that the kernel chose for that, and would hide a model's error.
    pub(crate) fn cause(&mut self) -> Cause {
        let w = self.moment.wake_up();
        let (chosen, later) = (w.chosen as usize, w.later.clone());
        let was = self.moment.cpus();
        // The differences, in the parts that the kernel reads at once: of a few parts all mixtures
        // are tried, and of more parts those mixtures in which one part is not as the others are.
        let parts: Vec<_> = later
            .iter()
            .flat_map(|(cpu, is)| PARTS.map(|part| (*cpu as usize, part, *is)))
            .filter(|(cpu, part, is)| part.iter().any(|&c| is[c] != was[*cpu][c]))
            .take(63)
            .collect();
        let all = (1u64 << parts.len()) - 1;
        let singles = (0..parts.len()).flat_map(|i| [1 << i, all ^ 1 << i]);
        let mixtures: Vec<u64> = match parts.len() {
            0..=8 => (1..=all).collect(),
            _ => singles.chain([all]).collect(),
        };
        let touched: Vec<_> = later.iter().map(|(cpu, _)| *cpu as usize).collect();
        let mut found = false;
        for mixture in mixtures {
            for &cpu in &touched {
                let mut row = self.moment.cpus()[cpu];
                let mine = parts.iter().enumerate().filter(|(_, part)| part.0 == cpu);
                for (_, (_, part, is)) in mine.filter(|(i, _)| mixture >> i & 1 != 0) {
                    part.iter().for_each(|&column| row[column] = is[column]);
                }
                row.put(&mut self.host, cpu);
            }
            found = self.ask(self.model, &Given::default()).cpu == chosen;
            if found {
                break;
            }
        }
        for cpu in touched {
            self.moment.cpus()[cpu].put(&mut self.host, cpu);
        }
        if found {
            return Cause::Changed;
        }
        let w = self.moment.wake_up();
        let mut others = Vec::new();
        if w.unseen & UNSEEN_CONTEXT != 0 {
            let in_task = !Wake::default().with_flags(w.flags).in_task;
            others.push(Given { in_task: Some(in_task), ..Given::default() });
        }
        if self.moment.wakee()[Task::Flags] & OLD_LOAD != 0 {
            others.extend(
                [0, u32::MAX >> 8].map(|load| Given { load: Some(load), ..Given::default() }),
            );
        }
        let explains = |given: &Given| self.ask(self.model, given).cpu == chosen;
        if others.iter().any(explains) { Cause::NotRecorded } else { Cause::Model }
    }
}
