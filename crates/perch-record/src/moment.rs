// SPDX-License-Identifier: GPL-2.0-or-later
//! What is recorded of a wake-up: rows of numbers, whose columns have names.
//!
//! A file says which columns it has. A reader takes those that it knows by name and gives others
//! that it knows what nobody recorded is: 0. So a recorder may add columns, and a kernel that does
//! not have something leaves its column out, without another version of the file.

use perch_policy::{CpuState, Host, TaskState};

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
    /// As the file's header has them; at most 64.
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
    /// A CPU as the kernel could see it.
    CpuRow, Cpu {
        /// Idle, with no wake-up on its way: 0 or 1.
        Idle = "idle",
        /// Busy with SCHED_IDLE tasks only: 0 or 1.
        SchedIdle = "sched_idle",
        /// Runnable tasks, the running one included.
        NrRunning = "nr_running",
        /// Of those, queued only to lose their lag (EEVDF).
        NrDelayed = "nr_delayed",
        /// Load average of the queue, 1024 a nice-0 task that always runs.
        Load = "load",
        /// Runnable average of the queue, likewise. Where a task execs, without its part and
        /// with its utilisation instead.
        Runnable = "runnable",
        /// Utilisation of the queue: max of average and estimate, at most the CPU's capacity.
        /// Where a task execs, that of the others, and then the task's.
        Util = "util",
        /// Capacity left for fair tasks, 1024 for the most capable CPU.
        Capacity = "capacity",
        /// Load average of the running task; 0 when idle.
        CurrLoad = "curr_load",
        /// Exit latency of the idle state that it is in, nanoseconds.
        IdleExitNs = "idle_exit_ns",
        /// When it became idle, nanoseconds.
        IdleSinceNs = "idle_since_ns",
    }
}

row! {
    /// What the CPUs of an LLC, or of a domain of unequal CPUs, share.
    GroupRow, Group {
        /// How many CPUs a scan may examine.
        NrIdleScan = "nr_idle_scan",
        /// It is thought to have a fully idle core: 0 or 1.
        IdleCores = "idle_cores",
    }
}

row! {
    /// A task, as waker or wakee.
    TaskRow, Task {
        /// The task that it woke last.
        LastWakee = "last_wakee",
        /// How often that changed, decayed.
        WakeeFlips = "wakee_flips",
        /// When that was decayed last, nanoseconds.
        FlipDecayAtNs = "flip_decay_at_ns",
        /// `recent_used_cpu` plus 1; 0 for none.
        RecentCpu = "recent_cpu_plus_1",
        /// Hierarchical load, 1024 for nice 0 always running.
        Load = "load",
        /// Utilisation, 0 to 1024: max of average and estimate.
        Util = "util",
        /// What it is clamped to: least.
        UclampMin = "uclamp_min",
        /// What it is clamped to: most.
        UclampMax = "uclamp_max",
        /// 1: a kernel thread of one CPU; 2: SCHED_IDLE; 4: its load is older than a jiffy.
        Flags = "flags",
        /// Number of its affinity in this block; 0 for all CPUs.
        Affinity = "affinity",
        /// Its process.
        Process = "process",
        /// Its task group, as the kernel numbers cgroups; 0 for the root.
        Group = "group",
        /// 3.4: what the load of its previous CPU changes by because of its task group, as the
        /// bits of a signed number.
        LoadShift = "load_shift",
        /// The node that NUMA balancing prefers for it, plus 1; 0 for none.
        PreferredNode = "preferred_node_plus_1",
    }
}

impl Row<CpuRow> {
    /// A CPU of a host.
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

    /// A CPU of the host that the policy is asked about.
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
    /// What a host knows of one of [`Topology::nr_shared`](perch_policy::Topology::nr_shared).
    pub fn of(host: &Host, shared: usize) -> Row<GroupRow> {
        let idle_cores = host.idle_cores(shared).into();
        Row([host.nr_idle_scan(shared).into(), idle_cores])
    }

    /// Likewise of the host that the policy is asked about.
    pub fn put(&self, host: &mut Host, shared: usize) {
        let scan = self[Group::NrIdleScan].min(u32::MAX.into()) as u32;
        host.set_nr_idle_scan(shared, scan);
        host.set_idle_cores(shared, self[Group::IdleCores] != 0);
    }
}

impl Row<TaskRow> {
    /// A task as the policy has it. Its process, its group and its affinity have no numbers there.
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

    /// The task for the policy, on a machine with so many CPUs. What no recorder writes is cut to
    /// what is possible.
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

/// How a wake-up was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// The fair class chose.
    Fair = 0,
    /// The real-time class chose.
    RealTime = 1,
    /// Nobody was asked: the task may not move, or never left its queue.
    NotAsked = 2,
}

impl Class {
    /// All, by number.
    pub const ALL: [Class; 3] = [Class::Fair, Class::RealTime, Class::NotAsked];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Class::Fair => "fair",
            Class::RealTime => "rt",
            Class::NotAsked => "not asked",
        }
    }
}

/// A wake-up: who, where, and what the kernel said. What it could see stands beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeUp {
    /// When, nanoseconds of the recorder's clock.
    pub at_ns: u64,
    /// Who decided.
    pub class: Class,
    /// `WF_*` as policy/ has them (`PERCH_WAKE_*`).
    pub flags: u32,
    /// Where the waker runs.
    pub this_cpu: u32,
    /// Where the wakee ran last.
    pub prev_cpu: u32,
    /// What the kernel chose.
    pub chosen: u32,
    /// The waker; 0 when it is an idle task, whose row is its CPU's.
    pub waker: u32,
    /// The wakee.
    pub wakee: u32,
    /// What nobody recorded of it: [`UNSEEN_ROWS`] and [`UNSEEN_CONTEXT`].
    pub unseen: u8,
    /// Where the wakee's task group has something queued, by words of 64; empty for the root group.
    pub queued: Vec<u64>,
    /// CPUs that were otherwise when the choice was made than when it began, ascending: each as it
    /// was then. Empty where nobody looked again.
    pub later: Vec<(u32, Row<CpuRow>)>,
}

/// Of the CPUs nothing is known but idle states and capacities in the last-level caches of
/// waker and wakee, and how many tasks run on those two CPUs and what load they have. A search for
/// an idle CPU reads no more where all CPUs are equal.
pub const UNSEEN_ROWS: u8 = 1;
/// Whether the waker was interrupted is a guess.
pub const UNSEEN_CONTEXT: u8 = 2;

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
            later: Vec::new(),
        }
    }
}
