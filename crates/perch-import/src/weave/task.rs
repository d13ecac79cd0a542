// SPDX-License-Identifier: GPL-2.0-or-later
//! A recorded task while its events come in.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::event::Name;

/// The waker of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Another task.
    By(u32),
    /// An interrupt, of a timer or a device.
    Outside,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The task was there before the recording began, and no event has shown its state yet.
    Unseen,
    /// The task was forked, and not woken for the first time yet.
    New,
    /// The task could run, and does not.
    Ready,
    /// The task is on a CPU; its time is accounted up to a moment.
    Running {
        /// The task's CPU.
        cpu: u32,
        /// The moment up to which its time is accounted.
        since: u64,
    },
    /// The task is asleep.
    Asleep {
        /// The time when the task went to sleep.
        since: u64,
    },
    /// The task is gone.
    Dead,
}

/// One step of a task; work is between the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    Compute {
        ns: u64,
    },
    Wake {
        task: u32,
    },
    /// The task waited, for so long.
    Await {
        by: u32,
        ns: u64,
    },
    Sleep {
        ns: u64,
    },
    Fork {
        task: u32,
    },
    Exec,
}

/// A recorded task.
#[derive(Debug)]
pub struct Task {
    /// The number of the task's process, if that was recorded.
    pub process: Option<i32>,
    pub name: Name,
    /// The task that forked it, if known.
    pub parent: Option<u32>,
    /// True where the task was forked while the recording went on.
    pub forked: bool,
    /// The time of the task's fork, or of the first event that names the task.
    pub born_ns: u64,
    pub life: Life,
    pub did: Vec<Did>,
    /// The work since the last of these steps.
    work_ns: u64,
    /// The time on CPUs in all.
    pub time_ns: u64,
    /// The time by priority.
    prios: BTreeMap<i32, u64>,
    prio: Option<i32>,
    /// Wake-ups that found the task awake since it last left a CPU.
    pub early: Vec<Woken>,
    /// A wake-up that came just before the task slept.
    pub race: Option<Woken>,
    /// The times at which timers and devices woke the task.
    pub alarms: Vec<u64>,
    /// The number of times that the task was not where it was last seen.
    pub gaps: u64,
}

/// The names of those kernel threads of which it is known that timers wake many. No event tells
/// which task is a kernel thread.
const KERNELS: [&str; 9] = [
    "rcu_",
    "rcuo",
    "rcub/",
    "kworker/",
    "ksoftirqd/",
    "kcompactd",
    "kswapd",
    "khugepaged",
    "kdamond",
];

impl Task {
    pub fn new(life: Life, parent: Option<u32>, born_ns: u64) -> Task {
        Task {
            process: None,
            name: Name::default(),
            parent,
            forked: life == Life::New,
            born_ns,
            life,
            did: Vec::new(),
            work_ns: 0,
            time_ns: 0,
            prios: BTreeMap::new(),
            prio: None,
            early: Vec::new(),
            race: None,
            alarms: Vec::new(),
            gaps: 0,
        }
    }

    /// Returns true where the task is a thread of the kernel, by its name.
    pub fn is_the_kernels(&self) -> bool {
        let name = self.name.to_string();
        KERNELS.iter().any(|kernels| name.starts_with(kernels))
    }

    /// Sets the task's priority from now on.
    pub fn prio(&mut self, prio: i32) {
        self.prio = Some(prio);
        self.prios.entry(prio).or_default();
    }

    /// Adds the time that the task was on a CPU, and the work that this time amounts to.
    pub fn ran(&mut self, time_ns: u64, work_ns: u64) {
        self.time_ns += time_ns;
        self.work_ns += work_ns;
        if let Some(prio) = self.prio {
            *self.prios.entry(prio).or_default() += time_ns;
        }
    }

    /// Adds a step after the work so far. Returns the number of entries that this made.
    pub fn push(&mut self, did: Did) -> u64 {
        let made = self.settle();
        self.did.push(did);
        made + 1
    }

    /// Writes down the work so far. Returns the number of entries that this made.
    pub fn settle(&mut self) -> u64 {
        match std::mem::take(&mut self.work_ns) {
            0 => 0,
            ns => {
                self.did.push(Did::Compute { ns });
                1
            }
        }
    }

    /// Returns the priority with which the task ran longest, and whether it ever had another one.
    pub fn usual_prio(&self) -> (i32, bool) {
        let longest = self.prios.iter().max_by_key(|&(prio, ns)| (ns, Reverse(prio)));
        (longest.map_or(120, |(&prio, _)| prio), self.prios.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A damaged recording has priorities that no kernel has.
    #[test]
    fn any_number_may_be_a_priority() {
        let mut task = Task::new(Life::New, None, 0);
        assert_eq!(task.usual_prio(), (120, false));
        task.prio(i32::MIN);
        task.prio(i32::MAX);
        assert_eq!(task.usual_prio(), (i32::MIN, true));
        task.ran(1, 1);
        assert_eq!(task.usual_prio(), (i32::MAX, true));
    }
}
