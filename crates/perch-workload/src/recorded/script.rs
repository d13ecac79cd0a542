// SPDX-License-Identifier: GPL-2.0-or-later
//! The script of a recording: what each task did, in its order; and the file that keeps a script.
//!
//! The file is text, so that people can read it and change it. Its first line names format and
//! version, and lines about the recording follow. Each task has a `task` line with its steps below
//! it. The `end` line counts tasks and steps; so a reader knows a file that was cut off.

use std::io::{self, Write};

use crate::Class;

/// The first line's first word.
pub(super) const MAGIC: &str = "perch-workload";
/// The only version of the format so far.
pub(super) const VERSION: u32 = 1;
/// The most steps that perch writes into a line.
const STEPS_PER_LINE: usize = 24;

/// A step of a task, with the letter that stands for it in the file. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `c`: the task computes for this long at full capacity.
    Compute(u64),
    /// `w`: the task wakes the task of this number.
    Wake(u32),
    /// `a`: the task waits until the task of this number has woken it once more often than it has
    /// waited for that task before.
    Await(u32),
    /// `s`: the task sleeps for this long; in the recording a timer or a device woke it.
    Sleep(u64),
    /// `n`: the task sleeps until this long after its last period began. Its first period begins
    /// when it appears.
    Next(u64),
    /// `f`: the task forks the task of this number.
    Fork(u32),
    /// `e`: the task becomes another program.
    Exec,
}

/// A task of a recording, and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptTask {
    /// The last name of the task's command; for people.
    pub name: String,
    /// Number of the process that the task is a thread of; the tasks of one process share an
    /// address space.
    pub process: u32,
    /// The task's scheduling class.
    pub class: Class,
    /// Nice level, -20 to 19; 0 in a real-time class.
    pub nice: i8,
    /// Time at which the task appears by itself, nanoseconds from the beginning; `None` for a task
    /// that another task forks.
    pub start: Option<u64>,
    /// The task's steps, in order.
    pub steps: Vec<Step>,
}

/// A recording: its tasks and what they did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Lines about the recording's origin; for people.
    pub about: Vec<String>,
    /// Length of the recording, nanoseconds.
    pub span_ns: u64,
    /// The tasks; steps name them by their position.
    pub tasks: Vec<ScriptTask>,
}

impl Script {
    /// Number of steps of all tasks together.
    pub fn steps(&self) -> u64 {
        self.tasks.iter().map(|task| task.steps.len() as u64).sum()
    }

    /// Work of all tasks together, nanoseconds at full capacity.
    pub fn work_ns(&self) -> u64 {
        let steps = self.tasks.iter().flat_map(|task| &task.steps);
        steps.fold(0u64, |sum, step| match step {
            Step::Compute(ns) => sum.saturating_add(*ns),
            _ => sum,
        })
    }

    /// Number of times that one task wakes another.
    pub fn wakes(&self) -> u64 {
        let steps = self.tasks.iter().flat_map(|task| &task.steps);
        steps.filter(|step| matches!(step, Step::Wake(_))).count() as u64
    }

    /// Writes the script as a file that [`Script::read`] reads.
    ///
    /// # Errors
    /// Those of `out`.
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

/// The text on one line: without control characters, and without spaces at its end, which nobody
/// would see.
fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control(), "?").trim_end().to_string()
}
