// SPDX-License-Identifier: GPL-2.0-or-later
//! A task as the scheduler has it: its place in its class, what is left of its work, and what its
//! caches hold.

use perch_policy::TaskState;

use crate::cache::Trail;
use crate::class::fair::pelt::Average;
use crate::class::rt::RtEntity;

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Not forked yet.
    Unborn,
    /// Waits for a message or a timer; not on a queue (or, in EEVDF, queued but delayed).
    Asleep,
    /// Woken, on its way to a CPU's queue.
    Waking,
    /// On a queue.
    Queued,
    /// On a CPU.
    Running,
    /// Gone.
    Dead,
}

/// Who stands in a queue of the fair class: a task, or a group with what it has on one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// Weight, 1024 at nice 0.
    pub weight: u32,
    /// CFS and EEVDF: weighted run time, nanoseconds; relative to the queue while migrating.
    pub vruntime: i64,
    /// EEVDF: virtual deadline.
    pub deadline: i64,
    /// EEVDF: lag at the last dequeue, virtual nanoseconds; positive when the task is owed time.
    pub vlag: i64,
    /// Since when the run time is not yet accounted.
    pub exec_start_ns: u64,
    /// Run time in all, and when the task was picked.
    pub sum_exec_ns: u64,
    /// `sum_exec_ns` when it was last picked.
    pub picked_sum_ns: u64,
    /// Averages.
    pub average: Average,
    /// Estimated utilisation (util_est): utilisation at the last dequeue, and its slow average.
    pub est_enqueued: u32,
    /// See `est_enqueued`.
    pub est_average: u32,
    /// It stands in a queue or runs from it.
    pub queued: bool,
    /// EEVDF: asleep, but still queued until its lag is gone.
    pub delayed: bool,
    /// Counted in a queue's averages.
    pub attached: bool,
    /// CFS: vruntime counts from the floor of whichever queue the task enters next.
    pub relative: bool,
    /// When, in turns of all tasks, it was last queued or picked: the balancer takes the least
    /// recent first.
    pub turn: u64,
    /// Never queued yet.
    pub new: bool,
}

impl Entity {
    /// Of something that has never been queued.
    pub fn of_weight(weight: u32) -> Entity {
        Entity {
            weight,
            vruntime: 0,
            deadline: 0,
            vlag: 0,
            exec_start_ns: 0,
            sum_exec_ns: 0,
            picked_sum_ns: 0,
            average: Average::default(),
            est_enqueued: 0,
            est_average: 0,
            queued: false,
            delayed: false,
            attached: false,
            relative: false,
            turn: 0,
            new: false,
        }
    }

    /// Of a task that has never been queued.
    pub fn of_task(weight: u32) -> Entity {
        Entity {
            relative: true,
            new: true,
            ..Entity::of_weight(weight)
        }
    }

    /// util_est: what the task will probably use when it wakes.
    pub fn est(&self) -> u32 {
        self.est_average.max(self.est_enqueued)
    }
}

/// A task.
#[derive(Debug)]
pub struct Task {
    /// What the policy knows and remembers of it.
    pub state: TaskState,
    /// Its group, `NONE` for the root group.
    pub group: u32,
    /// Which of the kernel's affinities it has.
    pub affinity: u32,
    /// Where it runs or ran last.
    pub cpu: u32,
    /// Where it is in its life.
    pub life: Life,
    /// Its work is that of others, see [`super::NewTask::carries`].
    pub carries: bool,
    /// It is in a stretch of kernel code with interrupts off: it keeps its CPU until it says
    /// otherwise.
    pub atomic: bool,
    /// Real-time class entity.
    pub rt: RtEntity,
    /// Work left of the operation under way, nanoseconds at full capacity.
    pub left_ns: u64,
    /// Overheads to be paid before the next operation: wake-ups sent, data fetched.
    pub debt_ns: u64,
    /// Lines of its own that it finds in its caches when it runs undisturbed.
    pub footprint: u32,
    /// Where its lines are: the CPU it last ran on, `u32::MAX` before the first time.
    pub warm_cpu: u32,
    /// That CPU's fill counter when the task left it.
    pub warm_fill: u64,
    /// When it was woken, for the wake-up latency; 0 once that is counted.
    pub woken_ns: u64,
    /// When it last became able to run, or was made to wait.
    pub waits_since_ns: u64,
    /// What of its run time its process has been accounted.
    pub accounted_ns: u64,
    /// Mode upstream of the cache mechanism: the LLC that its process preferred when it ran last.
    pub wants: Option<u32>,
    /// The LLCs on which it ran last.
    pub trail: Trail,
}
