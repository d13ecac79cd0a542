// SPDX-License-Identifier: GPL-2.0-or-later
//! What a recording's tasks did, in the order in which each of them did it, and its file.
//!
//! The file is text of one version, so that people can read it and change it: a first line that
//! names format and version, lines about the recording, then one `task` line a task with its steps
//! below it, and an `end` line that counts both, by which a file that was cut off is known.

use std::io::{self, Write};

use crate::Class;

/// The first line's first word.
pub(super) const MAGIC: &str = "perch-workload";
/// The only version there is.
pub(super) const VERSION: u32 = 1;
/// Steps in a line, at most, where perch writes the file.
const STEPS_PER_LINE: usize = 24;

/// One thing that a task does. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `c`: computes for so long at full capacity.
    Compute(u64),
    /// `w`: wakes the task of this number.
    Wake(u32),
    /// `a`: waits until the task of this number has woken it once more than it has waited for that.
    Await(u32),
    /// `s`: sleeps for so long: a timer or a device woke it.
    Sleep(u64),
    /// `n`: sleeps until so long after its last such moment, the first being when it appeared; a
    /// period.
    Next(u64),
    /// `f`: forks the task of this number.
    Fork(u32),
    /// `e`: becomes another program.
    Exec,
}

/// What one task did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptTask {
    /// Its command's name as it was last; for people.
    pub name: String,
    /// The process that it is a thread of; those of one number share an address space.
    pub process: u32,
    /// Its scheduling class.
    pub class: Class,
    /// Nice level, -20 to 19; 0 in a real-time class.
    pub nice: i8,
    /// When it appears by itself, nanoseconds from the beginning; `None` where another one forks it.
    pub start: Option<u64>,
    /// What it does.
    pub steps: Vec<Step>,
}

/// What a recording's tasks did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Lines about where it comes from; for people.
    pub about: Vec<String>,
    /// How long the recording was, nanoseconds.
    pub span_ns: u64,
    /// The tasks; steps name them by their position.
    pub tasks: Vec<ScriptTask>,
}

impl Script {
    /// Steps in all.
    pub fn steps(&self) -> u64 {
        self.tasks.iter().map(|task| task.steps.len() as u64).sum()
    }

    /// Work in all, nanoseconds at full capacity.
    pub fn work_ns(&self) -> u64 {
        let steps = self.tasks.iter().flat_map(|task| &task.steps);
        steps.fold(0u64, |sum, step| match step {
            Step::Compute(ns) => sum.saturating_add(*ns),
            _ => sum,
        })
    }

    /// Times that one task wakes another.
    pub fn wakes(&self) -> u64 {
        let steps = self.tasks.iter().flat_map(|task| &task.steps);
        steps.filter(|step| matches!(step, Step::Wake(_))).count() as u64
    }

    /// Writes it as a file that [`Script::read`] reads.
    ///
    /// # Errors
    /// Whatever writing gives.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{MAGIC} {VERSION}")?;
        for line in &self.about {
            writeln!(out, "# {}", plain(line))?;
        }
        writeln!(out, "span {}", self.span_ns)?;
        for (number, task) in self.tasks.iter().enumerate() {
            write!(out, "task {number} process={}", task.process)?;
            match task.class {
                Class::Fair => write!(out, " nice={}", task.nice)?,
                class => write!(out, " class={class}")?,
            }
            match task.start {
                Some(start) => write!(out, " start={start}")?,
                None => write!(out, " start=forked")?,
            }
            writeln!(out, " name={}", plain(&task.name))?;
            for line in task.steps.chunks(STEPS_PER_LINE) {
                let mut before = "";
                for step in line {
                    out.write_all(before.as_bytes())?;
                    before = " ";
                    match step {
                        Step::Compute(ns) => write!(out, "c{ns}")?,
                        Step::Wake(task) => write!(out, "w{task}")?,
                        Step::Await(task) => write!(out, "a{task}")?,
                        Step::Sleep(ns) => write!(out, "s{ns}")?,
                        Step::Next(ns) => write!(out, "n{ns}")?,
                        Step::Fork(task) => write!(out, "f{task}")?,
                        Step::Exec => write!(out, "e")?,
                    }
                }
                writeln!(out)?;
            }
        }
        writeln!(out, "end tasks={} steps={}", self.tasks.len(), self.steps())
    }
}

/// Text that stays in its line, where spaces at the end are not to be seen.
fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control(), "?")
        .trim_end()
        .to_string()
}
