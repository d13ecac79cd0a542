// SPDX-License-Identifier: GPL-2.0-or-later
//! Why the model of a kernel chose otherwise than that kernel: what the two looks of a recording show
//! of it. docs/recordings.md has the rules in words.

use perch_policy::Wake;

use crate::moment::{Cpu, CpuRow, Row, Task, UNSEEN_CONTEXT};
use crate::replay::{Given, Replay};

/// Why the model of a kernel chose otherwise than the kernel, as far as the recording shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// What it decides by changed while the kernel decided: with some of what was seen at its end
    /// in the place of what was seen at its beginning the model chooses as the kernel did, or one of
    /// the two CPUs that were chosen became idle or busy meanwhile.
    Changed,
    /// It hinges on something that the file does not hold: with another value of that the model
    /// chooses as the kernel did.
    NotRecorded,
    /// Neither of these: the model is taken to be wrong.
    Model,
}

impl Cause {
    /// All, by number.
    pub const ALL: [Cause; 3] = [Cause::Changed, Cause::NotRecorded, Cause::Model];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Changed => "changed meanwhile",
            Cause::NotRecorded => "not recorded",
            Cause::Model => "model wrong",
        }
    }
}

/// Of [`Task::Flags`]: the kernel works out a task's load once a jiffy where it needs it, and this
/// one was not.
const OLD_LOAD: u64 = 4;

/// Columns that the kernel reads together, or nearly so.
const PARTS: [&[Cpu]; 4] = [
    &[Cpu::Idle, Cpu::SchedIdle],
    &[Cpu::IdleExitNs, Cpu::IdleSinceNs],
    &[Cpu::NrRunning, Cpu::NrDelayed],
    &[
        Cpu::Load,
        Cpu::Runnable,
        Cpu::Util,
        Cpu::Capacity,
        Cpu::CurrLoad,
    ],
];

impl Replay {
    /// Why the model chose otherwise than the kernel: see [`Cause`]. The kernel looked at one CPU
    /// after the other while they went on, so what it saw of each is as it was at the beginning or
    /// as at the end.
    pub(crate) fn cause(&mut self) -> Cause {
        let w = self.moment.wake_up();
        let (chosen, later) = (w.chosen as usize, w.later.clone());
        let model = self.ask(self.model, &Given::default()).cpu;
        let was = self.moment.cpus();
        let turned = |cpu: usize| {
            let differs = |(_, is): &&(u32, Row<CpuRow>)| {
                [Cpu::Idle, Cpu::SchedIdle]
                    .iter()
                    .any(|&c| is[c] != was[cpu][c])
            };
            let row = later.iter().find(|(number, _)| *number as usize == cpu);
            row.filter(differs).is_some()
        };
        if turned(chosen) || turned(model) {
            return Cause::Changed;
        }
        // What differs, in the parts that the kernel reads at once; all mixtures of a few, and of
        // more those in which one is not as the others are.
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
            others.push(Given {
                in_task: Some(in_task),
                ..Given::default()
            });
        }
        if self.moment.wakee()[Task::Flags] & OLD_LOAD != 0 {
            others.extend([0, u32::MAX >> 8].map(|load| Given {
                load: Some(load),
                ..Given::default()
            }));
        }
        let explains = |given: &Given| self.ask(self.model, given).cpu == chosen;
        match others.iter().any(explains) {
            true => Cause::NotRecorded,
            false => Cause::Model,
        }
    }
}
