// SPDX-License-Identifier: GPL-2.0-or-later
//! Run queues, of a CPU or of a group on a CPU: who waits in the order of the fair class, tasks and
//! groups; and a CPU's own state.
//!
//! They stand in one sorted vector: by vruntime in CFS, by deadline in EEVDF. Queues
//! are short (a handful, rarely hundreds), and a move within a few cache lines beats a tree.

use std::collections::VecDeque;

use super::balance::Weights;
use super::group::NONE;
use super::pelt::{Average, Clock};
use super::rt::RtQueue;
use super::streak::Streak;

/// A waiting task or group.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// vruntime (CFS) or deadline (EEVDF).
    pub key: i64,
    /// vruntime, the key in CFS.
    pub vruntime: i64,
    /// Weight.
    pub weight: u32,
    /// Who: an entity's number, which of a task is its own.
    pub entity: u32,
}

/// Waiting entities by key, the earliest first; equals in order of arrival.
#[derive(Debug, Default)]
pub struct Timeline {
    waiting: Vec<Waiting>,
}

impl Timeline {
    /// The first by key.
    pub fn first(&self) -> Option<&Waiting> {
        self.waiting.first()
    }

    /// All, by key.
    pub fn iter(&self) -> std::slice::Iter<'_, Waiting> {
        self.waiting.iter()
    }

    /// Adds an entity behind its equals.
    pub fn insert(&mut self, waiting: Waiting) {
        let at = self.waiting.partition_point(|w| w.key <= waiting.key);
        self.waiting.insert(at, waiting);
    }

    /// Takes an entity out.
    ///
    /// # Panics
    /// When it is not there: the caller's books are wrong.
    pub fn remove(&mut self, entity: u32) -> Waiting {
        let at = self.waiting.iter().position(|w| w.entity == entity);
        self.waiting
            .remove(at.expect("who is queued stands in a queue"))
    }

    /// The entry of an entity, if it is there.
    pub fn find(&self, entity: u32) -> Option<&Waiting> {
        self.waiting.iter().find(|w| w.entity == entity)
    }

    /// An entity weighs something else, and stays where it is.
    pub fn reweigh(&mut self, entity: u32, weight: u32) {
        let mut waiting = self.waiting.iter_mut();
        if let Some(w) = waiting.find(|w| w.entity == entity) {
            w.weight = weight;
        }
    }
}

/// The fair class's part of a CPU's run queue, or a group's queue on a CPU.
#[derive(Debug)]
pub struct Fair {
    /// Who waits (the running one is not among them).
    pub timeline: Timeline,
    /// CFS: monotone minimum of vruntime. EEVDF: the zero point of `weighted_v`.
    pub min_vruntime: i64,
    /// EEVDF: sum over who waits of weight times (vruntime - min_vruntime).
    pub weighted_v: i64,
    /// Sum of their weights.
    pub waiting_weight: u64,
    /// Sum of the weights of all in this queue, the running one included.
    pub weight: u64,
    /// Runnable tasks here and in the queues below, the running one and delayed ones included.
    pub nr: u32,
    /// Tasks and groups in this very queue, the running one and delayed ones included.
    pub entities: u32,
    /// EEVDF: of the tasks, delayed.
    pub nr_delayed: u32,
    /// Averages of the queue, its sleeping tasks included.
    pub average: Average,
    /// Sum of the runnable tasks' util_est; only of a CPU's queue, all of its tasks.
    pub est: u32,
    /// CFS: who was preempted by a wakee, preferred at the next pick; `NONE` for nobody.
    pub last_buddy: u32,
    /// CFS, and EEVDF for groups: who should run next; `NONE` for nobody.
    pub next_buddy: u32,
    /// EEVDF: vruntime up to which the running task is protected from a wakee (run to parity).
    pub protected_v: i64,
    /// The task or group that runs, `NONE` for nobody.
    pub curr: u32,
    /// Who ran from it last: a group that is chosen again at once goes on with its turn, and a yield
    /// passes it over.
    pub put: u32,
    /// Which of its CPU's choices ended that.
    pub put_at: u64,
}

impl Default for Fair {
    fn default() -> Fair {
        Fair {
            timeline: Timeline::default(),
            min_vruntime: 0,
            weighted_v: 0,
            waiting_weight: 0,
            weight: 0,
            nr: 0,
            entities: 0,
            nr_delayed: 0,
            average: Average::default(),
            est: 0,
            last_buddy: NONE,
            next_buddy: NONE,
            protected_v: 0,
            curr: NONE,
            put: NONE,
            put_at: 0,
        }
    }
}

/// Balancing state of one domain of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct DomainState {
    /// Number in the topology.
    pub domain: u32,
    /// Which of the domain's groups the CPU is in.
    pub local_group: u32,
    /// The level below says that tasks should spread over this domain's groups.
    pub prefer_sibling: bool,
    /// Passes in a row that moved nothing though there was an imbalance.
    pub failed: u32,
    /// Current interval, nanoseconds.
    pub interval_ns: u64,
    /// When the last periodic pass was.
    pub last_ns: u64,
    /// What newidle passes over this domain have cost at most, decayed, nanoseconds.
    pub newidle_cost_ns: u64,
    /// When that cost was last decayed.
    pub newidle_decay_ns: u64,
    /// 7.2: successes among the last 1024 newidle passes, and passes counted.
    pub newidle_success: u32,
    /// See `newidle_success`.
    pub newidle_calls: u32,
}

/// A CPU.
#[derive(Debug)]
pub struct Cpu {
    /// Its last-level cache domain, if it shares one.
    pub llc: Option<usize>,
    /// The running task.
    pub current: Option<u32>,
    /// How often it chose a task.
    pub choices: u64,
    /// Real-time class.
    pub rt: RtQueue,
    /// Overtakes older segment events of this CPU.
    pub segment_tag: u32,
    /// When the running segment began; in the future while the switch to it is under way.
    pub segment_start_ns: u64,
    /// The running task's segment is many rounds at once.
    pub streak: Option<Streak>,
    /// Its speed, 1024ths.
    pub speed_1024: u32,
    /// Load of the running task if it does not fit this CPU, else 0.
    pub misfit: u32,
    /// 5.5: what idle scans of this CPU's wakers cost on average, nanoseconds.
    pub scan_cost_ns: u64,
    /// The clock of its averages.
    pub pelt: Clock,
    /// 3.4: averages of the weight queued.
    pub weights: Weights,
    /// The running task should give way as soon as possible.
    pub need_resched: bool,
    /// Tasks woken from afar, to be enqueued by this CPU itself.
    pub wake_list: VecDeque<u32>,
    /// An interrupt is on its way.
    pub ipi_pending: bool,
    /// Lines that tasks brought into this CPU's caches so far.
    pub fill: u64,
    /// Nanoseconds that it has waited for contended cache lines and nobody has spent yet, and
    /// when they were last more.
    pub owed_ns: u64,
    /// See `owed_ns`.
    pub owed_since_ns: u64,
    /// When the stretches of the kernel's own work end that it does while it is idle, in order;
    /// see `chores.rs`.
    pub chores: Vec<u64>,
    /// It runs its idle task.
    pub idle: bool,
    /// When the CPU became idle last.
    pub idle_since_ns: u64,
    /// Nanoseconds that it was not idle, as far as they are counted.
    pub busy_ns: u64,
    /// Since when its busy time is not yet counted.
    pub busy_since_ns: u64,
    /// Moving average of idle periods, nanoseconds.
    pub avg_idle_ns: u64,
    /// avg_idle's ceiling is twice this.
    pub max_idle_cost_ns: u64,
    /// Earliest time of the next periodic pass.
    pub next_balance_ns: u64,
    /// Domains, lowest first.
    pub domains: Vec<DomainState>,
}

impl Cpu {
    /// The running task, if it is a fair one.
    #[inline]
    pub fn fair_current(&self) -> Option<u32> {
        self.current.filter(|_| !self.rt.running)
    }

    /// How long this much work, given at full capacity, takes here.
    pub fn wall_ns(&self, work_ns: u64) -> u64 {
        if self.speed_1024 == 1024 {
            work_ns
        } else {
            (work_ns * 1024).div_ceil(u64::from(self.speed_1024))
        }
    }
}
