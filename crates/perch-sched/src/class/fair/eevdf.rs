// SPDX-License-Identifier: GPL-2.0-or-later
//! EEVDF, as of 6.15 and 7.2 (docs/mechanisms/stock.md#eevdf): among the tasks that are owed time, the earliest
//! virtual deadline runs; lag survives sleep; who sleeps owing time stays queued until it is paid.

use super::cfs::virtual_ns;
use super::entity::Entity;
use super::queue::FairQueue;
use crate::id::EntityId;

/// Sum of weights, and of weight times (vruntime - min_vruntime), the running task included.
fn totals(fair: &FairQueue, current: Option<&Entity>) -> (i64, i64) {
    let (mut weight, mut sum) = (fair.waiting_weight as i64, fair.weighted_v);
    if let Some(se) = current {
        weight += i64::from(se.weight);
        sum += i64::from(se.weight) * (se.vruntime - fair.min_vruntime);
    }
    (weight, sum)
}

/// The queue's virtual time: the weighted mean of its tasks' vruntimes.
pub fn virtual_time(fair: &FairQueue, current: Option<&Entity>) -> i64 {
    let (weight, sum) = totals(fair, current);
    fair.min_vruntime
        + if weight > 0 {
            sum.div_euclid(weight)
        } else {
            0
        }
}

/// Whether a task with this vruntime is owed time (or even).
pub fn eligible(fair: &FairQueue, current: Option<&Entity>, vruntime: i64) -> bool {
    let (weight, sum) = totals(fair, current);
    (vruntime - fair.min_vruntime) * weight <= sum
}

/// Moves the zero point of the sums up to the queue's virtual time, so that they stay small.
pub fn update_floor(fair: &mut FairQueue, current: Option<&Entity>) {
    let now = virtual_time(fair, current);
    if now > fair.min_vruntime {
        fair.weighted_v -= fair.waiting_weight as i64 * (now - fair.min_vruntime);
        fair.min_vruntime = now;
    }
}

/// A task's lag, within what the kernel lets it keep, either way: see `LagLimit`.
pub fn lag(fair: &FairQueue, current: Option<&Entity>, se: &Entity, limit_ns: u64) -> i64 {
    let limit = virtual_ns(limit_ns, se.weight);
    (virtual_time(fair, current) - se.vruntime).clamp(-limit, limit)
}

/// What a queue weighs with who runs from it, and its virtual time: where its mean is.
#[derive(Clone, Copy)]
pub struct Mean {
    weight: i64,
    at: i64,
}

/// The mean of a queue.
pub fn mean(fair: &FairQueue, current: Option<&Entity>) -> Mean {
    Mean {
        weight: totals(fair, current).0,
        at: virtual_time(fair, current),
    }
}

/// Where a task enters the queue: so that its lag is what it was, although its own weight moves
/// the mean; a new task asks for half a slice first.
pub fn place(mean: Mean, se: &mut Entity, slice_ns: u64, new: bool) {
    let Mean { weight, at } = mean;
    let mut lag = if new { 0 } else { se.vlag };
    if weight > 0 {
        lag = lag * (weight + i64::from(se.weight)) / weight;
    }
    se.vruntime = at - lag;
    let slice = if new { slice_ns / 2 } else { slice_ns };
    se.deadline = se.vruntime + virtual_ns(slice, se.weight);
}

/// The next task, `None` to keep the running one. A running task that is still protected (run
/// to parity) is kept whoever waits.
#[inline]
pub fn pick(fair: &FairQueue, current: Option<&Entity>) -> Option<EntityId> {
    if current.is_some_and(|se| se.vruntime < fair.protected_v) {
        return None;
    }
    let current_ok = current.filter(|se| eligible(fair, current, se.vruntime));
    let (weight, sum) = totals(fair, current);
    // A group whose other task has just gone to sleep, while it is owed time (6.12).
    let buddy = fair.next_buddy;
    if buddy != EntityId::NONE
        && let Some(w) = fair.timeline.find(buddy)
        && (w.vruntime - fair.min_vruntime) * weight <= sum
    {
        return Some(buddy);
    }
    let found = fair
        .timeline
        .iter()
        .find(|w| (w.vruntime - fair.min_vruntime) * weight <= sum);
    match (found, current_ok) {
        (Some(w), Some(se)) if w.key < se.deadline => Some(w.entity),
        (_, Some(_)) => None,
        (Some(w), None) => Some(w.entity),
        // Rounding can leave nobody eligible: the earliest deadline then, never an idle CPU.
        (None, None) => fair
            .timeline
            .first()
            .filter(|_| current.is_none())
            .map(|w| w.entity),
    }
}

/// After a slice is used up: the next deadline. Returns whether that happened.
pub fn renew_deadline(se: &mut Entity, slice_ns: u64) -> bool {
    if se.vruntime < se.deadline {
        return false;
    }
    se.deadline = se.vruntime + virtual_ns(slice_ns, se.weight);
    true
}
