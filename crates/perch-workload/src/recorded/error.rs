// SPDX-License-Identifier: GPL-2.0-or-later
//! The reasons for which a recorded workload's file is refused.

use std::io;

use super::read::{LONGEST_LINE, MOST_STEPS, MOST_TASKS};
use super::script::{MAGIC, VERSION};
use crate::ClassError;

/// The reason why [`Script::read`](super::Script::read) refused a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system could not read the file.
    #[error("{0}")]
    Io(io::Error),
    /// A line of the file is wrong.
    #[error("line {line}: {why}")]
    Line {
        /// Number of the line, from 1.
        line: u64,
        /// The fault there.
        why: LineError,
    },
}

/// The reason why a line of a recorded workload's file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line is not UTF-8.
    #[error("this is not text")]
    NotText,
    /// The line is too long.
    #[error("a line of {LONGEST_LINE} bytes or more: expected steps in several lines")]
    TooLong,
    /// The file ends before its last line.
    #[error("the file ends without its \"end\" line: it was cut off; import the recording again")]
    CutOff,
    /// The first line is that of another file.
    #[error("expected \"{MAGIC} {VERSION}\": this is not a workload that perch import wrote")]
    NoWorkload,
    /// The file has another version of the format.
    #[error(
        "the file is of version {version:?}, and this perch reads version {VERSION}: use the perch \
         that wrote it, or import the recording again"
    )]
    Version {
        /// The file's version.
        version: String,
    },
    /// A step comes before the first task.
    #[error("\"{word}\": expected \"task\", \"span\" or \"#\" before the first step")]
    NoTask {
        /// The line's first word.
        word: String,
    },
    /// There are more steps than a file may have.
    #[error("more than {MOST_STEPS} steps: record for a shorter time")]
    TooManySteps,
    /// There are more tasks than a file may have.
    #[error("more than {MOST_TASKS} tasks: record for a shorter time")]
    TooManyTasks,
    /// A value is not a whole number, or out of range.
    #[error("{key}: \"{value}\": expected a whole number up to {most}")]
    Number {
        /// The key, or the whole step.
        key: String,
        /// The value.
        value: String,
        /// The greatest number that the key takes.
        most: u64,
    },
    /// A task has another number than its place in the file.
    #[error("\"task {number}\": expected task {expected}; tasks are numbered from 0")]
    TaskNumber {
        /// The task's number in the file.
        number: String,
        /// The number that it should have.
        expected: usize,
    },
    /// A nice level is not a number, or out of range.
    #[error("nice={value}: expected -20 to 19")]
    Nice {
        /// The value.
        value: String,
    },
    /// The value of `class` is not a class.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// A task has no such key.
    #[error("\"{key}\": expected process=, nice=, class=, start= or name=")]
    Key {
        /// The key with its value.
        key: String,
    },
    /// There is no such step.
    #[error(
        "\"{word}\": expected a step: cNS computes, wTASK wakes, aTASK waits for a wake-up, sNS \
         sleeps, nNS sleeps until its next period, fTASK forks, e becomes another program"
    )]
    Step {
        /// The step.
        word: String,
    },
    /// The last line counts other tasks or steps than there are.
    #[error(
        "\"end {counted}\", but there are tasks={tasks} steps={steps}: something was cut out, or \
         changed without this line"
    )]
    Counts {
        /// The counts of the last line.
        counted: String,
        /// Number of tasks before it.
        tasks: usize,
        /// Number of steps before it.
        steps: u64,
    },
    /// A line follows the last one.
    #[error("something follows the \"end\" line: expected nothing")]
    AfterEnd,
    /// The script of a task, which begins in this line, does not come to its end.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// A script that [`Script::check`](super::Script::check) refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task {task}: {why}")]
pub struct ScriptError {
    /// Number of the task that is at fault; 0 if there are no tasks.
    pub task: usize,
    /// The reason why the task is refused.
    pub why: Unending,
}

/// The reason why a script does not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unending {
    /// The script is empty.
    #[error("there are no tasks: expected at least one")]
    NoTasks,
    /// A step names a task that does not exist, or its own.
    #[error("a step names task {other}: expected another one of 0 to {last}")]
    NoSuchTask {
        /// Number of the task that the step names.
        other: usize,
        /// Number of the last task.
        last: usize,
    },
    /// Two steps fork one task.
    #[error("task {child} is forked a second time: expected once")]
    ForkedTwice {
        /// Number of the task that is forked.
        child: usize,
    },
    /// A task that starts by itself is forked.
    #[error("it starts by itself, and task {parent} forks it: expected one of them")]
    StartsAndForked {
        /// Number of the task that forks it.
        parent: usize,
    },
    /// No task forks a task that does not start by itself.
    #[error("it is to be forked, and nobody does: expected start=NS")]
    NeverForked,
    /// A task waits for a wake-up that never comes.
    #[error(
        "at its step {done} it waits for task {by} forever: expected a w{task} there for every \
         a{by} here"
    )]
    WaitsForever {
        /// Number of the task that waits.
        task: usize,
        /// Number of steps that it does before.
        done: usize,
        /// Number of the task that it waits for.
        by: u32,
    },
    /// The task that forks a task waits forever before the fork.
    #[error("who forks it never comes to that")]
    ParentNeverForks,
}

impl Unending {
    /// The error of the task with this number.
    pub(super) fn of(self, task: usize) -> ScriptError {
        ScriptError { task, why: self }
    }
}
