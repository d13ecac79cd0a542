// SPDX-License-Identifier: GPL-2.0-or-later
//! A recorded task while its events come in.

use std::collections::BTreeMap;

use crate::event::Name;

/// Who woke a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Another task.
    By(u32),
    /// An interrupt: a timer, a device.
    Outside,
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It was there before the recording began; nothing was seen of it yet.
    Unseen,
    /// Forked, not woken for the first time yet.
    New,
    /// It could run, and does not.
    Ready,
    /// On a CPU; its time is accounted up to a moment.
    Running {
        /// Which.
        cpu: u32,
        /// Up to when.
        since: u64,
    },
    /// Asleep.
    Asleep {
        /// Since when.
        since: u64,
    },
    /// Gone.
    Dead,
}

/// One thing that it did; work is between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    Compute {
        ns: u64,
    },
    Wake {
        task: u32,
    },
    /// Waited, and for how long.
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
    /// Its process's number, if that was recorded.
    pub process: Option<i32>,
    pub name: Name,
    /// Who forked it, of those who are known.
    pub parent: Option<u32>,
    /// It was forked while the recording went on.
    pub forked: bool,
    /// When it was forked, or the first time that it was heard of.
    pub born_ns: u64,
    pub life: Life,
    pub did: Vec<Did>,
    /// Work since the last of these.
    work_ns: u64,
    /// Time on CPUs in all.
    pub time_ns: u64,
    /// Time by priority.
    prios: BTreeMap<i32, u64>,
    prio: Option<i32>,
    /// Wake-ups that found it awake since it last left a CPU.
    pub early: Vec<Woken>,
    /// One that came just before it slept.
    pub race: Option<Woken>,
    /// When timers and devices woke it.
    pub alarms: Vec<u64>,
    /// Times that it was not where it was last seen.
    pub gaps: u64,
}

/// How threads of the kernel are called of which timers are known to wake many. No event says who
/// is one.
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

    /// Whether it is a thread of the kernel, by its name.
    pub fn is_the_kernels(&self) -> bool {
        let name = self.name.to_string();
        KERNELS.iter().any(|kernels| name.starts_with(kernels))
    }

    /// Its priority from now on.
    pub fn prio(&mut self, prio: i32) {
        self.prio = Some(prio);
        self.prios.entry(prio).or_default();
    }

    /// It was on a CPU for so long, which is so much work.
    pub fn ran(&mut self, time_ns: u64, work_ns: u64) {
        self.time_ns += time_ns;
        self.work_ns += work_ns;
        if let Some(prio) = self.prio {
            *self.prios.entry(prio).or_default() += time_ns;
        }
    }

    /// It did this after the work so far. Returns how many entries that made.
    pub fn push(&mut self, did: Did) -> u64 {
        let made = self.settle();
        self.did.push(did);
        made + 1
    }

    /// Writes down the work so far. Returns how many entries that made.
    pub fn settle(&mut self) -> u64 {
        match std::mem::take(&mut self.work_ns) {
            0 => 0,
            ns => {
                self.did.push(Did::Compute { ns });
                1
            }
        }
    }

    /// The priority with which it ran longest, and whether it ever had another one.
    pub fn usual_prio(&self) -> (i32, bool) {
        let longest = self.prios.iter().max_by_key(|&(&prio, &ns)| (ns, -prio));
        (longest.map_or(120, |(&prio, _)| prio), self.prios.len() > 1)
    }
}
