// SPDX-License-Identifier: GPL-2.0-or-later
//! EEVDF, as of 6.15 and 7.2 (docs/mechanisms/stock.md#eevdf): among the entities that are owed
//! time, the one with the earliest virtual deadline runs; lag survives sleep; a task that goes to
//! sleep owing time stays queued until it has paid.

use super::cfs::virtual_ns;
use super::entity::Entity;
use super::queue::FairQueue;
use crate::id::EntityId;

/// Returns the sum of weights, and that of weight times (vruntime - min_vruntime), including the
/// running entity.
fn totals(fair: &FairQueue, current: Option<&Entity>) -> (i64, i64) {
    let (mut weight, mut sum) = (fair.waiting_weight as i64, fair.weighted_v);
    if let Some(se) = current {
        weight += i64::from(se.weight);
        sum += i64::from(se.weight) * (se.vruntime - fair.min_vruntime);
    }
    (weight, sum)
}

/// Returns the queue's virtual time: the weighted mean of its entities' vruntimes.
pub fn virtual_time(fair: &FairQueue, current: Option<&Entity>) -> i64 {
    let (weight, sum) = totals(fair, current);
    fair.min_vruntime + if weight > 0 { sum.div_euclid(weight) } else { 0 }
}

/// Returns whether an entity with this vruntime is eligible: it is owed time, or is even.
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

/// Returns an entity's lag, limited in both directions to `limit_ns`, the time that the kernel lets
/// it keep: see `LagLimit`.
#[inline(always)]
pub fn lag(fair: &FairQueue, current: Option<&Entity>, se: &Entity, limit_ns: u64) -> i64 {
    let limit = virtual_ns(limit_ns, se.weight);
    (virtual_time(fair, current) - se.vruntime).clamp(-limit, limit)
}

/// Returns the lag with which an entity leaves a queue that it is still in. A delayed one gets no
/// credit for its wait, and in 7.2 (`keeps_older`) it does not owe more than when it fell asleep
/// (`update_entity_lag`).
#[inline(never)]
pub fn settled_lag(
    fair: &FairQueue,
    current: Option<&Entity>,
    se: &Entity,
    limit_ns: u64,
    keeps_older: bool,
) -> i64 {
    let lag = lag(fair, current, se, limit_ns);
    match se.delayed {
        true if keeps_older => lag.max(se.vlag).min(0),
        true => lag.min(0),
        false => lag,
    }
}

/// The mean of a queue: its weight including the running entity, and its virtual time.
#[derive(Clone, Copy)]
pub struct Mean {
    weight: i64,
    at: i64,
}

pub fn mean(fair: &FairQueue, current: Option<&Entity>) -> Mean {
    Mean { weight: totals(fair, current).0, at: virtual_time(fair, current) }
}

/// Sets the vruntime and the deadline with which an entity enters the queue. Its lag is what it
/// was, although its own weight moves the mean; in an empty queue there is no one to owe it time. A
/// new task asks for half a slice first. A task that the balancer brings keeps what is left of its
/// slice.
pub fn place(mean: Mean, se: &mut Entity, slice_ns: u64, new: bool) {
    let Mean { weight, at } = mean;
    let lag = match weight {
        0 => 0,
        _ if new => 0,
        _ => se.vlag * (weight + i64::from(se.weight)) / weight,
    };
    se.vruntime = at - lag;
    if std::mem::take(&mut se.relative) && !new {
        se.deadline += se.vruntime;
        return;
    }
    let slice = if new { slice_ns / 2 } else { slice_ns };
    se.deadline = se.vruntime + virtual_ns(slice, se.weight);
}

/// Returns the next entity to run, or `None` to keep the running one. A running entity that is
/// eligible and still protected (run to parity) is kept in any case; one that has run ahead of the
/// others is not eligible, and has no protection from a wakee that is owed time. `buddy` says that
/// the next buddy goes before all others (docs/mechanisms/stock.md#eevdf).
#[inline]
pub fn pick(fair: &FairQueue, current: Option<&Entity>, buddy: bool) -> Option<EntityId> {
    let current_ok = current.filter(|se| eligible(fair, current, se.vruntime));
    let (weight, sum) = totals(fair, current);
    // A group is the next buddy when one of its tasks has just gone to sleep (6.12). The queue
    // picks it while it is owed time.
    let next = fair.next_buddy;
    if buddy && next != EntityId::NONE {
        if next == fair.curr && current_ok.is_some() {
            return None;
        }
        if let Some(w) = fair.timeline.find(next)
            && (w.vruntime - fair.min_vruntime) * weight <= sum
        {
            return Some(next);
        }
    }
    if current_ok.is_some_and(|se| se.vruntime < fair.protected_v) {
        return None;
    }
    let found = fair.timeline.iter().find(|w| (w.vruntime - fair.min_vruntime) * weight <= sum);
    match (found, current_ok) {
        // Of equal deadlines that of the waiting entity counts.
        (Some(w), Some(se)) if w.key <= se.deadline => Some(w.entity),
        (_, Some(_)) => None,
        (Some(w), None) => Some(w.entity),
        // Rounding can leave no entity eligible. The queue then picks the earliest deadline, so
        // that the CPU is never idle.
        (None, None) => fair.timeline.first().filter(|_| current.is_none()).map(|w| w.entity),
    }
}

/// The effect of a wake-up on the running entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// The wakee preempts it.
    Preempts,
    /// The running entity goes on.
    Stays,
    /// This delayed entity's turn has come: it leaves the queue, which is then asked again.
    Leaves(EntityId),
}

/// Returns what the arrival of `wakee` in a queue does to the running entity: the wakee preempts if
/// it would be picked now (`wakeup_preempt_fair`). With `again`, which 7.2 has, the wake-up asks for
/// the next buddy first, and dequeues a delayed entity that it finds.
#[inline]
pub fn wakes(
    fair: &FairQueue,
    current: &Entity,
    wakee: EntityId,
    again: bool,
    is_delayed: impl Fn(EntityId) -> bool,
) -> Wakes {
    match pick(fair, Some(current), again) {
        Some(next) if next == wakee => Wakes::Preempts,
        Some(next) if again && is_delayed(next) => Wakes::Leaves(next),
        _ => Wakes::Stays,
    }
}

/// Gives an entity that has used up its slice its next deadline. Returns whether the slice was used
/// up.
pub fn renew_deadline(se: &mut Entity, slice_ns: u64) -> bool {
    if se.vruntime < se.deadline {
        return false;
    }
    se.deadline = se.vruntime + virtual_ns(slice_ns, se.weight);
    true
}
