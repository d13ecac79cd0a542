// SPDX-License-Identifier: GPL-2.0-or-later
//! The reasons for which a file of rt-app is refused, or a workload cannot become one.

/// The most threads of a file: pid_max of a kernel that nobody tuned.
pub(super) const MOST_THREADS: usize = 1 << 15;
/// The most groups on a path.
pub(super) const MOST_LEVELS: usize = 32;
/// The most operations of a program and of all programs of a file, in which loops in loops are written out.
pub(super) const MOST_OPS: usize = 1 << 20;

/// The reason why a file of rt-app is refused.
#[derive(Debug, thiserror::Error)]
pub enum RtAppError {
    /// The file is no JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The file's value is not an object.
    #[error("line 1: expected an object, {{ ... }}")]
    NoObject,
    /// The file describes no tasks.
    #[error("there is no \"tasks\": expected one, with an object for each task")]
    NoTasks,
    /// The file that the real rt-app is to read describes no tasks.
    #[error("there is no \"tasks\": expected one")]
    NothingToRun,
    /// A key or its value is wrong.
    #[error("line {line}: \"{key}\": {why}")]
    Key {
        /// Number of the key's line, from 1.
        line: u64,
        /// The key.
        key: String,
        /// The fault of the key or its value.
        why: KeyError,
    },
}

/// The reason why a text is no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, {}", there(.found.as_deref()))]
pub struct JsonError {
    /// Number of the line, from 1.
    pub line: u64,
    /// The thing that may be there.
    pub expected: &'static str,
    /// The text that is there: at most 20 characters, up to the end of the line; `None` at the end
    /// of the file.
    pub found: Option<String>,
}

fn there(found: Option<&str>) -> String {
    match found {
        None => "the file ends".to_string(),
        Some(found) => format!("there is `{found}`"),
    }
}

/// The reason why a key of rt-app, or its value, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The value is not an object.
    #[error("expected an object, {{ ... }}")]
    NoObject,
    /// The value is not a whole number, or out of range.
    #[error("expected a whole number from {low} to {high}")]
    Number {
        /// The least number that the key takes.
        low: i64,
        /// The greatest number that the key takes.
        high: i64,
    },
    /// The value is not text.
    #[error("expected a text")]
    NoText,
    /// The key is there twice.
    #[error("expected once")]
    Twice,
    /// The file has an unknown part.
    #[error("expected tasks, global or resources")]
    UnknownPart,
    /// There is no such key for all tasks.
    #[error("rt-app 1.0 has no such global key")]
    UnknownGlobal,
    /// There is no such key in a task or a phase.
    #[error("rt-app has no such key here")]
    UnknownHere,
    /// The event works on memory of a given size.
    #[error("the time of memory accesses by size and stride is not simulated: expected run")]
    MemRun,
    /// `fork` names no task of the file.
    #[error("expected the name of one of the file's tasks")]
    NoSuchTask,
    /// A task is forked more often than rt-app does.
    #[error("rt-app forks a task 1024 times at most: expected fewer loops")]
    TooManyForks,
    /// A loop without an end forks.
    #[error(
        "it forks in a loop without an end, and rt-app stops after 1024 times: expected a loop above 0"
    )]
    ForksForEver,
    /// A forked task has a delay.
    #[error(
        "a forked task's delay counts from rt-app's own start and is not simulated: expected a sleep before the fork"
    )]
    DelayedFork,
    /// A forked task comes to a barrier.
    #[error("rt-app does not count forked tasks at a barrier: expected none in them")]
    ForkedBarrier,
    /// rt-app 1.0 would ignore the key.
    #[error("rt-app 1.0 ignores this, and would do something else")]
    PassedOver,
    /// `calibration` names a CPU that the machine does not have.
    #[error("expected CPU0 to CPU{last}, or nanoseconds")]
    CalibrationCpu {
        /// The machine's last CPU.
        last: usize,
    },
    /// `calibration` is neither a CPU nor a number.
    #[error("expected a CPU, as in \"CPU0\", or nanoseconds")]
    Calibration,
    /// Mutexes are to inherit priorities.
    #[error("mutexes with priority inheritance are not simulated: expected false")]
    PriorityInheritance,
    /// The device of `iorun` is a real one.
    #[error("a device that takes its time is not simulated: expected /dev/null")]
    Device,
    /// The file has more threads than a kernel runs.
    #[error("expected at most {MOST_THREADS} threads, as many as Linux has numbers for by default")]
    TooManyTasks,
    /// The programs of the file's threads are too long together.
    #[error(
        "the threads up to this task's have more than {MOST_OPS} events: expected fewer instances, \
         or shorter loops around phases that loop"
    )]
    TooManyOps,
    /// The name of a group has too many parts.
    #[error("expected a path of at most {MOST_LEVELS} groups")]
    TooDeep,
    /// The file has no task.
    #[error("there are no tasks: expected one at least")]
    NoTasks,
    /// The least utilisation is beyond the greatest.
    #[error("its util_min is beyond its util_max")]
    Clamps,
    /// A real-time task is in a group.
    #[error("a real-time or deadline task in a taskgroup: rt-app has only SCHED_OTHER there")]
    RealTimeInGroup,
    /// A task has events beside its phases.
    #[error("an event beside \"phases\": expected it in one of them")]
    BesidePhases,
    /// The value is not an array of CPUs.
    #[error("expected an array of CPUs")]
    NoCpuArray,
    /// The array has a CPU that the machine does not have.
    #[error("expected CPUs from 0 to {last} of {machine}")]
    Cpus {
        /// The machine's last CPU.
        last: usize,
        /// Name of the machine.
        machine: String,
    },
    /// The array of CPUs is empty.
    #[error("expected at least one CPU")]
    NoCpus,
    /// The value is not an array of nodes.
    #[error("expected an array of nodes")]
    NoNodeArray,
    /// The array has a node that the machine does not have.
    #[error("expected nodes from 0 to {last} of {machine}")]
    Nodes {
        /// The machine's last node.
        last: usize,
        /// Name of the machine.
        machine: String,
    },
    /// The task's memory is not on every node of its CPUs.
    #[error(
        "memory away from the CPUs is not simulated, and CPU {cpu} is on node {node}: expected \
         every node of the task's cpus"
    )]
    RemoteMemory {
        /// A CPU of the task.
        cpu: usize,
        /// The node of that CPU.
        node: u32,
    },
    /// There is no such policy, or it is not simulated.
    #[error(
        "policy {policy} is not simulated: expected SCHED_OTHER, SCHED_FIFO, SCHED_RR or SCHED_DEADLINE"
    )]
    Policy {
        /// The policy.
        policy: String,
    },
    /// The phases of a real-time task have CPUs of their own.
    #[error("changing a real-time task's CPUs from phase to phase is not simulated")]
    RealTimeBinds,
    /// A phase changes what the simulator keeps for the whole task.
    #[error(
        "changing this from phase to phase is not simulated: expected it in the task or alike in all phases"
    )]
    ChangesByPhase,
    /// A loop would go on for ever at one moment.
    #[error("a loop that takes no time: expected a run, runtime, sleep, timer or wait in it")]
    NoTime,
    /// Every round of a loop would leave other mutexes locked.
    #[error("a loop that ends with other mutexes locked than it began with")]
    LoopLocks,
    /// The task ends with a locked mutex.
    #[error("it keeps what \"{by}\" locked: expected an unlock after it")]
    KeepsLock {
        /// The key that locked the mutex.
        by: String,
    },
    /// Loops around loops are too long to be written out.
    #[error(
        "{times} loops around phases that loop: expected loop = -1, or {MOST_OPS} events in all"
    )]
    TooLong {
        /// Number of the outer loop's rounds.
        times: usize,
    },
    /// The task locks a mutex that it holds.
    #[error("it has locked \"{mutex}\" already (\"{by}\"), and would wait for itself")]
    LocksTwice {
        /// Name of the mutex.
        mutex: String,
        /// The key that locked it.
        by: String,
    },
    /// The task uses a mutex that it does not hold.
    #[error("it has not locked \"{mutex}\" here: expected a lock before")]
    NotLocked {
        /// Name of the mutex.
        mutex: String,
    },
    /// A wait has an unknown key.
    #[error("expected ref or mutex")]
    WaitKey,
    /// A wait lacks a key.
    #[error("expected a ref and a mutex")]
    WaitKeys,
    /// A timer's mode is neither of the two.
    #[error("expected relative or absolute")]
    TimerMode,
    /// A timer has an unknown key.
    #[error("expected ref, period or mode")]
    TimerKey,
    /// A timer lacks a key.
    #[error("expected a ref and a period")]
    TimerKeys,
}
