// SPDX-License-Identifier: GPL-2.0-or-later
//! The reasons for which [`Workload::parse`](crate::Workload::parse) refuses a workload.
//!
//! This file has the reasons of a workload's name and keys. Classes, groups, recordings and rt-app
//! files have their reasons beside the code that finds them. A reason holds the keys, lines and
//! values that it is about as fields, and displays itself in words for the user.

use perch_machine::MachineError;

use crate::budget::OverBudget;
use crate::class::ClassError;
use crate::recorded::ReadError;
use crate::rtapp::RtAppError;
use crate::words::{INSIDE, RECORDED, RTAPP};
use crate::workload::MAX_TASKS;

/// A workload that [`Workload::parse`](crate::Workload::parse) refused, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("workload \"{spec}\": {why}")]
pub struct WorkloadError {
    /// The name and the keys as the user gave them.
    pub spec: String,
    /// The reason.
    pub why: Box<SpecError>,
}

/// The reason why a name and its keys make no workload on a machine.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// No workload has this name.
    #[error("unknown workload \"{name}\": this version has {}", .known.join(", "))]
    UnknownName {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// A part between commas has no `=`.
    #[error("\"{part}\" is no KEY=VALUE")]
    NoKeyValue {
        /// The part.
        part: String,
    },
    /// A key is there twice.
    #[error("key \"{key}\" is given twice")]
    KeyTwice {
        /// The key.
        key: String,
    },
    /// The workload has no such key.
    #[error("{name} has no key \"{key}\"; its keys are {}", .known.join(", "))]
    UnknownKey {
        /// Name of the workload.
        name: &'static str,
        /// The key.
        key: String,
        /// The workload's keys.
        known: Vec<&'static str>,
    },
    /// A value is not a whole number, or out of range.
    #[error("{key}={value}: expected a whole number from {low} to {high}")]
    Number {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The least number that the key takes.
        low: i128,
        /// The greatest number that the key takes.
        high: i128,
    },
    /// A share of the CPUs is not one, or too many.
    #[error(
        "{key}={value}: expected a percentage of {cpus} CPUs that is at most {high}, as in 50%"
    )]
    Share {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The greatest number that the key takes.
        high: u64,
        /// The CPUs that `where` names.
        cpus: u64,
    },
    /// A key is given by two of its names.
    #[error("{} mean the same: expected one of them", .names.join(" and "))]
    Synonyms {
        /// All names of the key.
        names: Vec<&'static str>,
    },
    /// The value of `where` names no CPUs of the machine.
    #[error(
        "where={value}: expected all, node0 to node{last_node} or cpu0 to cpu{last_cpu}, or a \
         range of them such as node0-1"
    )]
    Where {
        /// The value.
        value: String,
        /// The machine's last node.
        last_node: usize,
        /// The machine's last CPU.
        last_cpu: usize,
    },
    /// The nodes that `where` names have no CPUs.
    #[error("where={value}: that node has no CPUs")]
    NoCpus {
        /// The value.
        value: String,
    },
    /// The least utilisation is beyond the greatest.
    #[error(
        "uclamp_min={min} is beyond uclamp_max={max}: expected the least to be no more than the \
         most"
    )]
    Clamps {
        /// The least utilisation.
        min: u32,
        /// The greatest utilisation.
        max: u32,
    },
    /// The workload takes more memory than it may.
    #[error(transparent)]
    Budget(#[from] OverBudget),
    /// The value of `class` is not a class.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// `tasks` of `runsleep` is not a number of tasks.
    #[error("tasks={value}: expected a number from 1 to {MAX_TASKS}, N/cpu or N%")]
    Tasks {
        /// The value.
        value: String,
    },
    /// An httperf session would end inside a burst.
    #[error(
        "burst={burst}: expected a divisor of calls={calls}, so that a session is whole bursts"
    )]
    Burst {
        /// Calls of a burst.
        burst: u64,
        /// Calls of a session.
        calls: u64,
    },
    /// hackbench has more tasks than a workload may have.
    #[error("groups={groups} and fds={fds} make {tasks} tasks: expected fewer than {MAX_TASKS}")]
    HackbenchTasks {
        /// The value of `groups`.
        groups: u64,
        /// The value of `fds`.
        fds: u64,
        /// Tasks that these make.
        tasks: u64,
    },
    /// schbench has more threads than a workload may have.
    #[error(
        "messengers={messengers} with workers={workers} each make {threads} threads: expected \
         fewer than {MAX_TASKS}"
    )]
    SchbenchThreads {
        /// The value of `messengers`.
        messengers: u64,
        /// The value of `workers`.
        workers: u64,
        /// Threads that these make.
        threads: u64,
    },
    /// VolanoMark has more threads than a workload may have.
    #[error("rooms={rooms},users={users} are {threads} threads: expected no more than {MAX_TASKS}")]
    VolanoThreads {
        /// The value of `rooms`.
        rooms: u64,
        /// The value of `users`.
        users: u64,
        /// Threads that these make.
        threads: u64,
    },
    /// The instances of FFmpeg have more threads than a workload may have.
    #[error("instances={instances} of {threads} threads: expected fewer than {MAX_TASKS} in all")]
    FfmpegThreads {
        /// The value of `instances`.
        instances: u64,
        /// Threads of an instance.
        threads: u64,
    },
    /// The instances of FFmpeg need more CPUs than the machine has.
    #[error(
        "instances={instances} of cpus_per_instance={each} need {} CPUs, and this machine has \
         {cpus}: expected no more than that",
        .instances * .each
    )]
    FfmpegCpus {
        /// The value of `instances`.
        instances: u64,
        /// The value of `cpus_per_instance`.
        each: u64,
        /// CPUs of the machine.
        cpus: u64,
    },
    /// Two instances of FFmpeg would share a core.
    #[error(
        "cpus_per_instance={each}: instance {instance} would share a core with the next one; \
         expected a number that makes whole cores"
    )]
    SharedCore {
        /// The value of `cpus_per_instance`.
        each: u64,
        /// Number of the first of the two instances.
        instance: u64,
    },
    /// `hogs` of `vm` is not two numbers.
    #[error(
        "hogs={value}: expected how many groups and how many hogs in each, as in 4x4, either up to \
         1024"
    )]
    Hogs {
        /// The value.
        value: String,
    },
    /// There is no machine of so many vCPUs.
    #[error(transparent)]
    GuestMachine(#[from] MachineError),
    /// The workload inside a virtual machine is refused.
    #[error(transparent)]
    Inside(#[from] WorkloadError),
    /// The workload inside a virtual machine cannot run there.
    #[error("{}={spec}: {why}", INSIDE)]
    InGuest {
        /// The workload inside.
        spec: String,
        /// The reason.
        why: GuestMisfit,
    },
    /// The value of a key is neither yes nor no.
    #[error("{key}={value}: expected yes or no")]
    YesNo {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
    },
    /// `recorded` names no file.
    #[error("expected a file that perch import wrote: {}:FILE", RECORDED)]
    NoRecordedFile,
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] perch_file::FileError),
    /// The file of a recorded workload is refused.
    #[error("{path}: {why}")]
    RecordedFile {
        /// The file.
        path: String,
        /// The reason.
        why: ReadError,
    },
    /// `rtapp` names no file.
    #[error("expected a file of rt-app: {}:FILE", RTAPP)]
    NoRtAppFile,
    /// The file of rt-app is refused.
    #[error("{path}: {why}")]
    RtAppFile {
        /// The file.
        path: String,
        /// The reason.
        why: Box<RtAppError>,
    },
}

/// The reason why a workload cannot run inside a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuestMisfit {
    /// It has virtual machines itself.
    #[error("a virtual machine in a virtual machine is not modelled")]
    Guests,
    /// Its threads share working sets.
    #[error("working sets that threads share are not modelled in a guest")]
    SharedSets,
    /// It has real-time tasks.
    #[error("real-time tasks are not modelled in a guest; leave out class")]
    RealTime,
    /// Its tasks change their affinity or their group.
    #[error("changes of CPUs and groups on the way are not modelled in a guest")]
    Moves,
    /// Its tasks take locks that belong to a CPU.
    #[error("locks that belong to a CPU are not modelled in a guest")]
    CpuLocks,
}
