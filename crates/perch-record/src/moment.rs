// SPDX-License-Identifier: GPL-2.0-or-later
//! The record of a wake-up: rows of numbers, whose columns have names.
//!
//! A file names the columns that it has. A reader takes those that it knows by name, and gives 0 to
//! columns that it knows and the file lacks. So a recorder may add columns, and a recorder on a
//! kernel that does not have something leaves its column out, without another version of the file.

use perch_policy::{CpuState, Host, TaskState};

use crate::capacity::GroupCapacity;

/// Defines a row: a number a column, and the columns' names.
macro_rules! row {
    ($(#[$doc:meta])* $row:ident, $column:ident { $($(#[$what:meta])* $name:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $column {
            $($(#[$what])* $name,)*
        }

        $(#[$doc])*
        pub type $row = [u64; [$($text),*].len()];

        impl Columns for $row {
            const NAMES: &'static [&'static str] = &[$($text),*];
        }

        impl std::ops::Index<$column> for Row<$row> {
            type Output = u64;

            fn index(&self, column: $column) -> &u64 {
                &self.0[column as usize]
            }
        }

        impl std::ops::IndexMut<$column> for Row<$row> {
            fn index_mut(&mut self, column: $column) -> &mut u64 {
                &mut self.0[column as usize]
            }
        }
    };
}

/// The names of a row's columns, in order.
pub trait Columns: AsRef<[u64]> + AsMut<[u64]> + Copy {
    /// The names as the file's header has them; at most 64.
    const NAMES: &'static [&'static str];
}

/// A row of numbers, read and written by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<R>(pub R);

impl<R: Columns + Default> Default for Row<R> {
    fn default() -> Row<R> {
        Row(R::default())
    }
}

row! {
    /// A CPU's state as the kernel could see it.
    CpuRow, Cpu {
        /// 1 where the CPU is idle, with no wake-up on its way; else 0.
        Idle = "idle",
        /// 1 where the CPU is busy with SCHED_IDLE tasks only; else 0.
        SchedIdle = "sched_idle",
        /// The number of runnable tasks, the running one included.
        NrRunning = "nr_running",
        /// The number of runnable tasks that are queued only to lose their lag (EEVDF).
        NrDelayed = "nr_delayed",
        /// Load average of the queue, where a nice-0 task that always runs counts 1024.
        Load = "load",
        /// Runnable average of the queue, in the same unit. Where a task execs, its own part is
        /// left out and its utilisation is added instead.
        Runnable = "runnable",
        /// Utilisation of the queue: the maximum of average and estimate, at most the CPU's
        /// capacity. Where a task execs, the sum of the other tasks' utilisation and then its own.
        Util = "util",
        /// Capacity left for fair tasks, 1024 for the most capable CPU.
        Capacity = "capacity",
        /// Load average of the running task; 0 when the CPU is idle.
        CurrLoad = "curr_load",
        /// Exit latency of the CPU's idle state, nanoseconds.
        IdleExitNs = "idle_exit_ns",
        /// The time at which the CPU became idle, nanoseconds.
        IdleSinceNs = "idle_since_ns",
    }
}

row! {
    /// The state that the CPUs of an LLC, or of a domain of unequal CPUs, share.
    GroupRow, Group {
        /// The number of CPUs that a scan may examine.
        NrIdleScan = "nr_idle_scan",
        /// 1 where the kernel takes the LLC to have a fully idle core; else 0.
        IdleCores = "idle_cores",
    }
}

row! {
    /// A task's state, as waker or wakee.
    TaskRow, Task {
        /// The wakee that the task woke last.
        LastWakee = "last_wakee",
        /// The number of times that the last wakee changed, decayed.
        WakeeFlips = "wakee_flips",
        /// The time at which that number was decayed last, nanoseconds.
        FlipDecayAtNs = "flip_decay_at_ns",
        /// `recent_used_cpu` plus 1; 0 for none.
        RecentCpu = "recent_cpu_plus_1",
        /// Hierarchical load; a nice-0 task that always runs has 1024.
        Load = "load",
        /// Utilisation, 0 to 1024: the maximum of average and estimate.
        Util = "util",
        /// The lower bound of the task's utilisation (uclamp).
        UclampMin = "uclamp_min",
        /// The upper bound of the task's utilisation (uclamp).
        UclampMax = "uclamp_max",
        /// Bits: 1 for a kernel thread of one CPU; 2 for SCHED_IDLE; 4 for a load that is older
        /// than a jiffy.
        Flags = "flags",
        /// The number of the task's affinity in this block; 0 for all CPUs.
        Affinity = "affinity",
        /// The number of the task's process.
        Process = "process",
        /// The task's group, by the kernel's number of its cgroup; 0 for the root.
        Group = "group",
        /// 3.4 only: the amount by which the load of the task's previous CPU changes because of its
        /// task group, as the bits of a signed number.
        LoadShift = "load_shift",
        /// The node that NUMA balancing prefers for the task, plus 1; 0 for none.
        PreferredNode = "preferred_node_plus_1",
    }
}

impl Row<CpuRow> {
    /// Returns the row of a host's CPU.
    pub fn of(host: &Host, cpu: usize) -> Row<CpuRow> {
        let c = host.cpu(cpu);
        Row([
            host.is_idle(cpu).into(),
            host.is_sched_idle(cpu).into(),
            c.nr_running.into(),
            c.nr_delayed.into(),
            c.load.into(),
            c.runnable.into(),
            c.util.into(),
            c.capacity.into(),
            c.curr_load.into(),
            c.idle_exit_ns.into(),
            c.idle_since_ns,
        ])
    }

    /// Sets a CPU of the host that the policy is asked about.
    pub fn put(&self, host: &mut Host, cpu: usize) {
        let short = |column: Cpu| self[column].min(u32::MAX.into()) as u32;
        host.set_idle(cpu, self[Cpu::Idle] != 0);
        host.set_sched_idle(cpu, self[Cpu::SchedIdle] != 0);
        *host.cpu_mut(cpu) = CpuState {
            nr_running: short(Cpu::NrRunning),
            load: short(Cpu::Load),
            runnable: short(Cpu::Runnable),
            util: short(Cpu::Util),
            nr_delayed: short(Cpu::NrDelayed),
            capacity: short(Cpu::Capacity),
            curr_load: short(Cpu::CurrLoad),
            idle_exit_ns: short(Cpu::IdleExitNs),
            idle_since_ns: self[Cpu::IdleSinceNs],
        };
    }
}

impl Row<GroupRow> {
    /// Returns the row of one of a host's
    /// [`Topology::nr_shared`](perch_policy::Topology::nr_shared).
    pub fn of(host: &Host, shared: usize) -> Row<GroupRow> {
        let idle_cores = host.idle_cores(shared).into();
        Row([host.nr_idle_scan(shared).into(), idle_cores])
    }

    /// Sets one of these in the host that the policy is asked about.
    pub fn put(&self, host: &mut Host, shared: usize) {
        let scan = self[Group::NrIdleScan].min(u32::MAX.into()) as u32;
        host.set_nr_idle_scan(shared, scan);
        host.set_idle_cores(shared, self[Group::IdleCores] != 0);
    }
}

impl Row<TaskRow> {
    /// Returns the row of a task in the policy's form, in which process, group and affinity have no
    /// numbers.
    pub fn of(task: &TaskState) -> Row<TaskRow> {
        let mut row = Row::default();
        row[Task::LastWakee] = task.last_wakee.into();
        row[Task::WakeeFlips] = task.wakee_flips.into();
        row[Task::FlipDecayAtNs] = task.flip_decay_at_ns;
        row[Task::RecentCpu] = task.recent_cpu().map_or(0, |cpu| cpu as u64 + 1);
        row[Task::Load] = task.load.into();
        row[Task::Util] = task.util.into();
        let (min, max) = task.uclamp();
        (row[Task::UclampMin], row[Task::UclampMax]) = (min.into(), max.into());
        let (kthread, idle) = (task.is_percpu_kthread(), task.is_sched_idle());
        row[Task::Flags] = u64::from(kthread) | u64::from(idle) << 1;
        row[Task::LoadShift] = i64::from(task.load_shift) as u64;
        row
    }

    /// Returns the task in the policy's form, on a machine with so many CPUs. Values that no
    /// recorder writes are cut to possible ones.
    pub fn task(&self, id: u32, cpus: usize) -> TaskState {
        let short = |column: Task| self[column].min(u32::MAX.into()) as u32;
        let mut task = TaskState::new(id);
        task.last_wakee = short(Task::LastWakee);
        task.wakee_flips = short(Task::WakeeFlips);
        task.flip_decay_at_ns = self[Task::FlipDecayAtNs];
        let recent = (self[Task::RecentCpu] as usize).checked_sub(1);
        task.set_recent_cpu(recent.filter(|&cpu| cpu < cpus));
        task.load = short(Task::Load);
        task.util = short(Task::Util);
        let max = short(Task::UclampMax).min(1024);
        task.set_uclamp(short(Task::UclampMin).min(max), max);
        task.set_percpu_kthread(self[Task::Flags] & 1 != 0);
        task.set_sched_idle(self[Task::Flags] & 2 != 0);
        task.load_shift = self[Task::LoadShift] as i32;
        task
    }
}

/// The scheduling class that decided a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// The fair class chose.
    Fair = 0,
    /// The real-time class chose.
    RealTime = 1,
    /// No class was asked: the task may not move, or never left its queue.
    NotAsked = 2,
}

impl Class {
    /// All classes, by number.
    pub const ALL: [Class; 3] = [Class::Fair, Class::RealTime, Class::NotAsked];

    /// Returns the class's name.
    pub fn name(self) -> &'static str {
        match self {
            Class::Fair => "fair",
            Class::RealTime => "rt",
            Class::NotAsked => "not asked",
        }
    }
}

/// A wake-up: its tasks, its CPUs and the kernel's choice. The state that the kernel could see
/// stands beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeUp {
    /// The time, nanoseconds of the recorder's clock.
    pub at_ns: u64,
    /// The class that decided.
    pub class: Class,
    /// The `WF_*` flags in the form of policy/ (`PERCH_WAKE_*`).
    pub flags: u32,
    /// The CPU on which the waker runs.
    pub this_cpu: u32,
    /// The CPU on which the wakee ran last.
    pub prev_cpu: u32,
    /// The CPU that the kernel chose.
    pub chosen: u32,
    /// The waker's number; 0 when the waker is an idle task, whose row is its CPU's.
    pub waker: u32,
    /// The wakee's number.
    pub wakee: u32,
    /// The parts of the state that the recorder did not see, [`UNSEEN_ROWS`] and
    /// [`UNSEEN_CONTEXT`], and [`HEARD`].
    pub unseen: u8,
    /// The CPUs on which the wakee's task group has something queued, by words of 64; empty for the
    /// root group.
    pub queued: Vec<u64>,
    /// The capacities of those groups of domains that have others than the sums of their CPUs',
    /// ascending by set; empty where the kernel compares no groups.
    pub capacities: Vec<GroupCapacity>,
    /// The CPUs whose state at the end of the choice differed from that at its beginning,
    /// ascending, each with the state at the end. Empty where the recorder did not look again.
    pub later: Vec<(u32, Row<CpuRow>)>,
}

/// The recorder saw only a part of the CPUs' state: idle states and capacities in the last-level
/// caches of waker and wakee, and the number and load of the tasks on those two tasks' CPUs. A
/// search for an idle CPU reads no more where all CPUs are equal.
pub const UNSEEN_ROWS: u8 = 1;
/// The recorder had to guess whether the waker was interrupted.
pub const UNSEEN_CONTEXT: u8 = 2;
/// The recorder heard what the kernel was told whenever the kernel asked whether a CPU is idle. A CPU
/// of which it asked has that state; one of which it did not ask cannot have mattered, and has the
/// same state in [`WakeUp::later`].
pub const HEARD: u8 = 4;

impl Default for WakeUp {
    fn default() -> WakeUp {
        WakeUp {
            at_ns: 0,
            class: Class::Fair,
            flags: 0,
            this_cpu: 0,
            prev_cpu: 0,
            chosen: 0,
            waker: 0,
            wakee: 0,
            unseen: 0,
            queued: Vec::new(),
            capacities: Vec::new(),
            later: Vec::new(),
        }
    }
}
