// SPDX-License-Identifier: GPL-2.0-or-later
//! CFS, as of 3.4 to 6.5 (docs/mechanisms/stock.md#cfs): the entity with the least vruntime runs,
//! sleepers get credit, and a wakee preempts when it is far enough behind.

use super::entity::Entity;
use super::queue::{FairQueue, Waiting};
use crate::id::EntityId;

/// `sched_nr_latency`: with more entities than this the period grows.
const NR_LATENCY: u64 = 8;

/// Returns the run time `delta_ns` as virtual time of an entity of this weight.
pub fn virtual_ns(delta_ns: u64, weight: u32) -> i64 {
    if weight == 1024 { delta_ns as i64 } else { (delta_ns * 1024 / u64::from(weight)) as i64 }
}

/// Raises the queue's floor to its least vruntime; the floor never goes back.
pub fn update_floor(fair: &mut FairQueue, current: Option<i64>) {
    let first = fair.timeline.first().map(|w| w.vruntime);
    let least = match (current, first) {
        (Some(a), Some(b)) => a.min(b),
        (Some(a), None) | (None, Some(a)) => a,
        (None, None) => return,
    };
    fair.min_vruntime = fair.min_vruntime.max(least);
}

/// Returns the period, in nanoseconds, in which each of `nr` entities runs once.
pub fn period_ns(latency_ns: u64, min_ns: u64, nr: u32) -> u64 {
    let nr = u64::from(nr);
    if nr > NR_LATENCY { nr * min_ns } else { latency_ns }
}

/// Sets the vruntime with which a sleeper enters the queue: its own, but at most half a latency
/// before the floor.
pub fn place_sleeper(fair: &FairQueue, se: &mut Entity, latency_ns: u64) {
    se.vruntime = se.vruntime.max(fair.min_vruntime - (latency_ns / 2) as i64);
}

/// Sets the vruntime with which a new task enters the queue: a slice behind the floor, so that it
/// has to wait for its first turn.
pub fn place_new(fair: &FairQueue, se: &mut Entity, slice_ns: u64) {
    let at = fair.min_vruntime + virtual_ns(slice_ns, se.weight);
    se.vruntime = se.vruntime.max(at);
}

/// Returns whether the vruntime `wakee` is far enough behind `current` for the wakee to preempt.
pub fn preempts(current: i64, wakee: i64, wakee_weight: u32, granularity_ns: u64) -> bool {
    current - wakee > virtual_ns(granularity_ns, wakee_weight)
}

/// Returns the next entity to run: a buddy that is not much further behind than the first by
/// vruntime, or else the first. If the first is `skip`, it is the second, unless that is much
/// further behind.
pub fn pick(fair: &FairQueue, skip: Option<EntityId>, granularity_ns: u64) -> Option<EntityId> {
    let first = fair.timeline.first()?;
    let near =
        |w: &&Waiting| w.vruntime - first.vruntime <= virtual_ns(granularity_ns, first.weight);
    for buddy in [fair.next_buddy, fair.last_buddy] {
        if buddy != EntityId::NONE && fair.timeline.find(buddy).as_ref().is_some_and(near) {
            return Some(buddy);
        }
    }
    let second =
        if skip == Some(first.entity) { fair.timeline.iter().nth(1).filter(near) } else { None };
    Some(second.unwrap_or(first).entity)
}

/// Returns whether, at a tick, the running entity of a queue has had its share of `ideal`
/// nanoseconds. An entity that has run for `min_ns` is also over its share when it is more than
/// `ideal` ahead of the first in the queue.
pub fn tick_preempts(fair: &FairQueue, se: &Entity, ideal: u64, min_ns: u64) -> bool {
    let ran = se.run.sum_ns - se.picked_sum_ns;
    if ran > ideal {
        return true;
    }
    if ran < min_ns {
        return false;
    }
    fair.timeline.first().is_some_and(|first| se.vruntime - first.vruntime > ideal as i64)
}
