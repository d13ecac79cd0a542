// SPDX-License-Identifier: GPL-2.0-or-later
//! The reference for steering to an empty group queue (docs/mechanisms/steer.md#the-rule).

use perch_policy::{Mode, Reason};

use crate::model::{Found, Model};

/// How many queues perch compares.
pub const BUDGET: usize = 8;

/// Where the wakee goes after the search has found `found`.
pub fn steer(m: &mut Model, found: Found) -> Found {
    let (cpu, reason) = found;
    let perch = match m.steer {
        Mode::Off | Mode::Upstream => return found,
        Mode::Posted => false,
        Mode::Perch => true,
    };
    let failed = reason == Reason::TargetBusy || (perch && reason == Reason::CapacitySpare);
    let (Some(queued), Some(llc), true) = (&m.s.group, &m.shape.llc[cpu], failed) else {
        return found;
    };
    let empty = |c: &usize| m.s.allowed[*c] && !queued[*c];
    if !perch {
        let allowed: Vec<usize> = llc.iter().copied().filter(|&c| m.s.allowed[c]).collect();
        let at = allowed.iter().position(empty);
        m.examined += at.map_or(allowed.len(), |at| at + 1) as u32;
        return at.map_or(found, |at| (allowed[at], Reason::EmptyQueue));
    }
    m.examined += 1;
    if empty(&cpu) {
        return (cpu, Reason::EmptyQueue);
    }
    let n = m.shape.nr_cpus();
    let ring: Vec<usize> = (1..=n).map(|i| (cpu + i) % n).filter(empty).collect();
    let capacity = |c: usize| m.s.state.cpus[c].capacity;
    let fits =
        |c: usize| m.shape.asym[cpu].is_none() || m.stock_fits(c) || capacity(c) >= capacity(cpu);
    let wait = |c: usize| {
        let state = &m.s.state.cpus[c];
        let load = u64::from(state.load) * 1024 / u64::from(state.capacity.max(1));
        (!m.idle_ok(c), if m.idle_ok(c) { 0 } else { load }, state.nr_running)
    };
    let (mut left, mut best, mut seen) = (BUDGET, None, 0);
    for set in [m.shape.cluster[cpu].as_ref(), Some(llc)].into_iter().flatten() {
        let near = ring.iter().copied().filter(|c| set.contains(c));
        for c in near.take(if best.is_none() { left } else { 0 }).collect::<Vec<_>>() {
            left -= 1;
            seen += 1;
            if fits(c) && best.is_none_or(|b| wait(c) < wait(b)) {
                best = Some(c);
                if m.idle_ok(c) {
                    break;
                }
            }
        }
    }
    m.examined += seen;
    best.map_or(found, |c| (c, Reason::EmptyQueue))
}
