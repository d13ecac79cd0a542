// SPDX-License-Identifier: GPL-2.0-or-later
//! The spread of processes' threads over last-level caches, which bounds the effect of a mechanism
//! that brings these threads together. A recording does not hold the cache that the kernel would
//! prefer.

use std::collections::HashMap;

use perch_policy::{Host, Topology};

use crate::moment::{Row, Task, TaskRow, WakeUp};

/// Counts of the wake-ups of processes' threads, by the place of the wake-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Wake-ups of processes of which several threads woke up in the same block of the recording
    /// (some thousand wake-ups).
    pub threaded: u64,
    /// Those of the threaded wake-ups that were in another last-level cache than most of the
    /// process's wake-ups in that block.
    pub away: u64,
    /// Those of the away wake-ups during which the cache with most of the process's wake-ups was
    /// busy enough to inhibit aggregation.
    pub crowded: u64,
}

impl Spread {
    /// Adds the counts of another part of the recording.
    pub fn add(&mut self, other: &Spread) {
        self.threaded += other.threaded;
        self.away += other.away;
        self.crowded += other.crowded;
    }
}

/// The wake-ups of one block.
#[derive(Debug, Default)]
pub struct Seen {
    /// Process, wakee, cache, and the crowded caches as bits, of each wake-up.
    wake_ups: Vec<(u64, u32, u32, u64)>,
}

/// The number of caches that the bits can tell apart; machines with more have no spread.
pub const MOST_LLCS: usize = 64;

impl Seen {
    /// Takes a wake-up; kernel threads and idle tasks have no process that counts.
    pub fn take(&mut self, w: &WakeUp, wakee: &Row<TaskRow>, host: &Host) {
        let topology = host.topology();
        let Some(llc) = topology.llc(w.prev_cpu as usize) else {
            return;
        };
        if wakee[Task::Process] == 0 || wakee[Task::Flags] & 1 != 0 {
            return;
        }
        let crowded = (0..topology.nr_llcs().min(MOST_LLCS))
            .filter(|&llc| crowded(topology, host, llc))
            .fold(0, |bits, llc| bits | 1 << llc);
        let seen = (wakee[Task::Process], w.wakee, llc as u32, crowded);
        self.wake_ups.push(seen);
    }

    /// Sums the block up and clears it.
    pub fn sum(&mut self, topology: &Topology) -> Spread {
        /// A process's first thread, whether it has another thread, and its wake-ups by cache.
        type Process = (u32, bool, Vec<u64>);
        let mut processes: HashMap<u64, Process> = HashMap::new();
        for &(process, task, llc, _) in &self.wake_ups {
            let nothing = || (task, false, vec![0; topology.nr_llcs()]);
            let known = processes.entry(process).or_insert_with(nothing);
            known.1 |= known.0 != task;
            known.2[llc as usize] += 1;
        }
        let mut spread = Spread::default();
        for &(process, _, llc, crowded) in &self.wake_ups {
            let (_, several, by_llc) = &processes[&process];
            if *several {
                let most = by_llc.iter().copied().max().unwrap_or(0);
                let home = by_llc.iter().position(|&n| n == most).unwrap_or(0);
                let away = home != llc as usize;
                spread.threaded += 1;
                spread.away += u64::from(away);
                spread.crowded += u64::from(away && crowded >> home & 1 != 0);
            }
        }
        self.wake_ups.clear();
        spread
    }
}

/// Returns true where the posted mechanism would call a cache over-aggregated
/// (docs/mechanisms/cache.md#the-rule): the cache's CPUs are used to a quarter, or it has a third
/// as many runnable tasks as CPUs.
fn crowded(topology: &Topology, host: &Host, llc: usize) -> bool {
    let span = topology.llc_span(llc);
    let weight = u64::from(span.weight());
    let (mut util, mut running) = (0, 0);
    for cpu in span.iter() {
        util += u64::from(host.cpu(cpu).util);
        running += u64::from(host.cpu(cpu).nr_running);
    }
    util * 4 >= weight * 1024 || running * 3 >= weight
}
