// SPDX-License-Identifier: GPL-2.0-or-later
//! The summary of an import: the counts of what was made of the recording, of what was left out,
//! and of oddities.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The counts of the tasks of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskSummary {
    /// The tasks' command.
    pub name: String,
    /// The number of the tasks.
    pub tasks: u64,
    /// The tasks' time on CPUs, nanoseconds.
    pub cpu_ns: u64,
    /// The number of times that these tasks wake other tasks.
    pub wakes: u64,
}

/// Tasks by name. In JSON a list, those whose tasks ran longest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct Names(#[schemars(with = "Vec<TaskSummary>")] BTreeMap<String, TaskSummary>);

impl Names {
    pub(crate) fn add(&mut self, name: &str, cpu_ns: u64, wakes: u64) {
        let entry = self.0.entry(name.to_string()).or_default();
        entry.name = name.to_string();
        entry.tasks += 1;
        entry.cpu_ns += cpu_ns;
        entry.wakes += wakes;
    }

    /// Returns the names by their tasks' time, longest first.
    pub fn longest(&self) -> Vec<&TaskSummary> {
        let mut all: Vec<&TaskSummary> = self.0.values().collect();
        all.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then_with(|| a.name.cmp(&b.name)));
        all
    }

    /// Returns the time on CPUs, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.0.values().map(|names| names.cpu_ns).sum()
    }
}

impl Serialize for Names {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.longest().serialize(serializer)
    }
}

/// The summary of the workload that was made of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// The program that made the recording: `perf`, `trace-cmd`, `ftrace` or `Perfetto`.
    pub tool: String,
    /// The recorded kernel, where the file says so.
    pub kernel: Option<String>,
    /// The number of the recorded machine's CPUs, where the file says so.
    pub cpus: Option<u32>,
    /// The time from the first event to the last, nanoseconds.
    pub span_ns: u64,
    /// Tasks in the workload.
    pub tasks: u64,
    /// The tasks' time on CPUs, nanoseconds.
    pub cpu_ns: u64,
    /// The work of that time at full capacity, nanoseconds: less than the time where CPUs are
    /// slower than the fastest.
    pub work_ns: u64,
    /// Wake-ups of one task of the workload by another.
    pub wakes: u64,
    /// Wake-ups, by tasks and by interrupts, that found their task awake.
    pub early: u64,
    /// Wake-ups by timers and devices, which become sleeps of the recorded length, or periods.
    pub alarms: u64,
    /// Tasks whose timer is so regular that the import takes it for a period.
    pub periodic: u64,
    /// Wake-ups by tasks that are left out, which become sleeps of the recorded length.
    pub wakes_in: u64,
    /// Wake-ups of tasks that are left out; the workload does not have them.
    pub wakes_out: u64,
    /// Wake-ups in interrupts that hit a task, which the import takes for a timer's or a device's.
    pub interrupts: u64,
    /// Wake-ups in softirqs on top of a task, which the import takes for the task's own.
    pub softirqs: u64,
    /// Moves to other CPUs, which the import drops, since the simulation makes its own.
    pub moves: u64,
    /// Real-time tasks.
    pub real_time: u64,
    /// Real-time tasks of the deadline class, to which the import gives SCHED_FIFO's highest
    /// priority.
    pub deadline: u64,
    /// Tasks whose priority changed: the import uses the priority with which they ran longest.
    pub changed_prio: u64,
    /// Events that the recorder lost.
    pub lost: u64,
    /// Sleeps whose waker was not seen: they last as long as recorded.
    pub unseen: u64,
    /// Tasks found elsewhere than where they were last seen; the import does not count their time
    /// until then.
    pub gaps: u64,
    /// Events out of order.
    pub late: u64,
    /// Wake-ups whose waker the import had to guess, because the recording lacks `sched_waking`.
    pub guessed: u64,
    /// True where the recording tells which tasks are threads of one process.
    pub processes_known: bool,
    /// What the recording has and the workload has not, and how often, by name.
    pub not_modelled: BTreeMap<String, u64>,
    /// The tasks in the workload.
    pub kept: Names,
    /// The tasks that are left out.
    pub left_out: Names,
}

impl Summary {
    /// Returns the facts that the file gives about itself.
    pub(crate) fn about(&self) -> Vec<String> {
        let mut about = vec![format!(
            "recorded by {}{}{}",
            self.tool,
            self.kernel.as_ref().map_or(String::new(), |release| format!(", Linux {release}")),
            self.cpus.map_or(String::new(), |cpus| format!(", {cpus} CPUs"))
        )];
        about.push(format!(
            "{} tasks, {} wake-ups by tasks, {} by timers and devices, {} ns on CPUs",
            self.tasks, self.wakes, self.alarms, self.cpu_ns
        ));
        about.extend(self.left());
        about.extend(self.warnings());
        about
    }

    /// Returns a sentence on what the recording has and the workload has not: what is most often
    /// there first.
    pub fn left(&self) -> Option<String> {
        let mut left: Vec<(&String, &u64)> = self.not_modelled.iter().collect();
        left.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let each = left.iter().map(|(name, count)| format!("{count} {name}"));
        let each = each.collect::<Vec<_>>().join(", ");
        (!each.is_empty()).then(|| format!("not modelled: {each}"))
    }

    /// Returns sentences on the ways in which the workload falls short of the recording.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |count: u64, what: &str| {
            if count > 0 {
                warnings.push(format!("{count} {what}"));
            }
        };
        warn(
            self.lost,
            "events were lost in recording: wake-ups and time on CPUs are missing; record with larger buffers (perf -m, trace-cmd -b)",
        );
        warn(
            self.gaps,
            "times a task was not where it was last seen: its time until then is missing",
        );
        warn(self.late, "events came out of order and were taken as of the event before");
        warn(self.unseen, "sleeps without a recorded wake-up: they last as long as recorded");
        warn(self.guessed, "wake-ups of which the waker is a guess: record sched_waking, too");
        warn(self.deadline, "tasks of the deadline class became SCHED_FIFO's highest");
        warnings
    }
}
