// SPDX-License-Identifier: GPL-2.0-or-later
//! What there is to say about an import: what was made of what, what was left out, and what was
//! odd.

use std::collections::BTreeMap;

use serde::Serialize;

/// What the tasks of one name did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskSummary {
    /// Their command.
    pub name: String,
    /// How many they are.
    pub tasks: u64,
    /// Their time on CPUs, nanoseconds.
    pub cpu_ns: u64,
    /// Times that they wake other tasks.
    pub wakes: u64,
}

/// Tasks by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(BTreeMap<String, TaskSummary>);

impl Names {
    pub(crate) fn add(&mut self, name: &str, cpu_ns: u64, wakes: u64) {
        let entry = self.0.entry(name.to_string()).or_default();
        entry.name = name.to_string();
        entry.tasks += 1;
        entry.cpu_ns += cpu_ns;
        entry.wakes += wakes;
    }

    /// Those that ran longest first.
    pub fn longest(&self) -> Vec<&TaskSummary> {
        let mut all: Vec<&TaskSummary> = self.0.values().collect();
        all.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then_with(|| a.name.cmp(&b.name)));
        all
    }

    /// Time on CPUs, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.0.values().map(|names| names.cpu_ns).sum()
    }
}

impl Serialize for Names {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.longest().serialize(serializer)
    }
}

/// What was made of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Who recorded: `perf` or `trace-cmd`.
    pub tool: String,
    /// The recorded kernel, where the file says so.
    pub kernel: Option<String>,
    /// The recorded machine's CPUs, likewise.
    pub cpus: Option<u32>,
    /// From the first event to the last, nanoseconds.
    pub span_ns: u64,
    /// Tasks in the workload.
    pub tasks: u64,
    /// Their time on CPUs, nanoseconds.
    pub cpu_ns: u64,
    /// The same at full capacity: less, where CPUs are slower than the fastest.
    pub work_ns: u64,
    /// Wake-ups of one task of the workload by another.
    pub wakes: u64,
    /// Of those by tasks and interrupts together: such that found their task awake.
    pub early: u64,
    /// Wake-ups by timers and devices: sleeps of the recorded length, or periods.
    pub alarms: u64,
    /// Tasks whose timer is so regular that it is taken for a period.
    pub periodic: u64,
    /// Wake-ups by tasks that are left out: sleeps of the recorded length.
    pub wakes_in: u64,
    /// Wake-ups of tasks that are left out: not in the workload.
    pub wakes_out: u64,
    /// Wake-ups in interrupts that hit a task: taken for a timer's or a device's.
    pub interrupts: u64,
    /// Wake-ups in softirqs on top of a task: taken for the task's own.
    pub softirqs: u64,
    /// Moves to other CPUs; the simulation makes its own.
    pub moves: u64,
    /// Real-time tasks.
    pub real_time: u64,
    /// Of those, of the deadline class, which became SCHED_FIFO's highest.
    pub deadline: u64,
    /// Tasks whose priority changed: the one with which they ran longest counts.
    pub changed_prio: u64,
    /// Events that the recorder lost.
    pub lost: u64,
    /// Sleeps of which nobody was seen to end them: they last as long as recorded.
    pub unseen: u64,
    /// Tasks found elsewhere than where they were last seen; their time until then is not counted.
    pub gaps: u64,
    /// Events out of order.
    pub late: u64,
    /// Wake-ups of which the waker is a guess, for want of `sched_waking`.
    pub guessed: u64,
    /// Whether it is known which tasks are threads of one process.
    pub processes_known: bool,
    /// The tasks in the workload.
    pub kept: Names,
    /// Those that are not.
    pub left_out: Names,
}

impl Summary {
    /// What the file says about itself.
    pub(crate) fn about(&self) -> Vec<String> {
        let mut about = vec![format!(
            "recorded by {}{}{}",
            self.tool,
            self.kernel
                .as_ref()
                .map_or(String::new(), |release| format!(", Linux {release}")),
            self.cpus
                .map_or(String::new(), |cpus| format!(", {cpus} CPUs"))
        )];
        about.push(format!(
            "{} tasks, {} wake-ups by tasks, {} by timers and devices, {} ns on CPUs",
            self.tasks, self.wakes, self.alarms, self.cpu_ns
        ));
        about.extend(self.warnings());
        about
    }

    /// What makes the workload less than the recording was.
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
        warn(
            self.late,
            "events came out of order and were taken as of the event before",
        );
        warn(
            self.unseen,
            "sleeps without a recorded wake-up: they last as long as recorded",
        );
        warn(
            self.guessed,
            "wake-ups of which the waker is a guess: record sched_waking, too",
        );
        warn(
            self.deadline,
            "tasks of the deadline class became SCHED_FIFO's highest",
        );
        warnings
    }
}
