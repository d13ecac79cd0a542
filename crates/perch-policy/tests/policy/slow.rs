// SPDX-License-Identifier: GPL-2.0-or-later
//! The reference for fork and exec (docs/mechanisms/stock.md#slow-path), from the widest domain
//! down, and for the wake-ups that 5.5 balances like a fork (§2, "Baseline").

use perch_policy::{DomainView, Era, Level, SetView, Topology};

use crate::model::Model;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    HasSpare,
    FullyBusy,
    Misfit,
    Overloaded,
}

struct Group {
    kind: Kind,
    idle: u32,
    util: u64,
    running: u32,
    avg_load: u64,
    allowed: u32,
    largest: u32,
    cpus: Vec<usize>,
}

fn cpus(set: SetView) -> Vec<usize> {
    set.iter().collect()
}

/// Fork balancing stops at nodes further away than the reclaim distance, that of wake-ups at the
/// lowest domain with every capacity.
pub fn balances(m: &Model, cpu: usize, domain: &DomainView) -> bool {
    if !(m.s.wake.fork || m.s.wake.exec) {
        let limit = m.shape.asym[cpu].as_ref().map_or(0, Vec::len);
        return domain.span().weight() as usize <= limit;
    }
    let far = cpus(domain.span()).iter().map(|&c| m.shape.slit(cpu, c)).max();
    domain.level() != Level::Numa || far.is_some_and(|far| far <= 30)
}

fn group(m: &Model, cpus: Vec<usize>, pct: u64, asym: bool) -> Group {
    let exec = m.s.wake.exec.then_some(m.s.wake.prev);
    let own_cpu = (!m.s.wake.fork).then_some(m.s.wake.prev);
    let (mut load, mut runnable, mut util, mut capacity) = (0u64, 0u64, 0u64, 0u64);
    let (mut running, mut idle) = (0, 0);
    // From 6.19 on, what the task may not use tells nothing about its chances there.
    let counts = |c: usize| m.era != Era::V7_2 || m.s.allowed[c];
    for &c in &cpus {
        let l = &m.s.state.cpus[c];
        capacity += u64::from(l.capacity_in_groups);
        if !counts(c) {
            continue;
        }
        // The task is counted out of its own CPU, where it runs only if it execs.
        let (own_load, own_util, own) = if own_cpu == Some(c) {
            (m.s.wakee.load, m.s.wakee.util, u32::from(exec.is_some()))
        } else {
            (0, 0, 0)
        };
        load += u64::from(l.load.saturating_sub(own_load));
        util += u64::from(l.util.saturating_sub(own_util));
        if m.era != Era::V5_5 {
            runnable += u64::from(l.runnable.saturating_sub(own_util));
        }
        let left = l.nr_running.saturating_sub(own);
        running += left;
        idle += u32::from(left == 0 && (m.s.state.idle[c] || exec == Some(c)));
    }
    let weight = cpus.len() as u32;
    let kind = if running > weight
        && (capacity * 100 < util * pct || capacity * pct < runnable * 100)
    {
        Kind::Overloaded
    } else if asym && !cpus.iter().any(|&c| m.stock_fits(c) && counts(c)) {
        Kind::Misfit
    } else if running < weight || (capacity * pct >= runnable * 100 && capacity * 100 > util * pct)
    {
        Kind::HasSpare
    } else {
        Kind::FullyBusy
    };
    let allowed = cpus.iter().filter(|&&c| m.s.allowed[c]).count() as u32;
    // 5.5 forgets both: no load where it would count, no utilisation to tell equals apart.
    let early = m.era == Era::V5_5;
    let util = if early { 0 } else { util };
    let avg_load = if kind == Kind::HasSpare || early { 0 } else { load * 1024 / capacity };
    let largest = cpus.iter().map(|&c| m.s.state.cpus[c].capacity_in_groups).max();
    Group { largest: largest.unwrap_or(0), kind, idle, util, running, avg_load, allowed, cpus }
}

/// The idlest group other than the local one, if the task should go there.
fn idlest_group(m: &mut Model, domain: &DomainView, cpu: usize) -> Option<Vec<usize>> {
    let span = cpus(domain.span());
    m.examined += span.len() as u32;
    let kind = |c: usize| m.shape.capacity(c);
    let asym = span.iter().any(|&c| kind(c) != kind(span[0]));
    let pct = u64::from(m.imbalance_pct(domain));
    let n = domain.groups();
    // Groups stand in a ring; the walk starts at the one that has the CPU.
    let own = (0..n).find(|&i| domain.group(i).contains(cpu)).unwrap_or(0);
    let (mut local, mut best): (Option<Group>, Option<Group>) = (None, None);
    for i in 0..n {
        let g = group(m, cpus(domain.group((own + i) % n)), pct, asym);
        if g.allowed == 0 {
            continue;
        }
        if g.cpus.contains(&cpu) {
            local = Some(g);
            continue;
        }
        let idler = best.as_ref().is_none_or(|b| match g.kind.cmp(&b.kind) {
            std::cmp::Ordering::Equal if g.kind == Kind::HasSpare => {
                g.idle > b.idle || (g.idle == b.idle && g.util < b.util)
            }
            std::cmp::Ordering::Equal if g.kind == Kind::Misfit => g.largest > b.largest,
            std::cmp::Ordering::Equal => g.avg_load < b.avg_load,
            order => order.is_lt(),
        });
        if idler {
            best = Some(g);
        }
    }
    let best = best?;
    let Some(local) = local else {
        return Some(best.cpus);
    };
    let numa = domain.level() == Level::Numa;
    let leave = if local.kind != best.kind {
        local.kind > best.kind
    } else if local.kind == Kind::Misfit {
        local.largest < best.largest
    } else if local.kind != Kind::HasSpare {
        let margin = 1024 * (pct - 100) / 100;
        let clearly = 100 * local.avg_load > pct * best.avg_load;
        let stay = numa && best.avg_load + margin >= local.avg_load;
        !stay && best.avg_load < local.avg_load + margin && clearly
    } else {
        let limit = domain.imb_numa_nr().min(local.allowed);
        let tolerated = local.running < limit && local.idle.abs_diff(best.idle) <= 2;
        !(numa && tolerated) && local.idle < best.idle
    };
    leave.then_some(best.cpus)
}

fn idlest_cpu(m: &mut Model, group: &[usize], cpu: usize) -> usize {
    if group.len() > 1 {
        m.examined += group.len() as u32;
    }
    let m = &*m;
    let allowed: Vec<usize> = group.iter().copied().filter(|&c| m.s.allowed[c]).collect();
    // A CPU that runs SCHED_IDLE tasks only is taken as soon as it is met.
    if let Some(&c) = allowed.iter().find(|&&c| !m.s.state.idle[c] && m.idle_ok(c)) {
        return c;
    }
    let state = |c: usize| &m.s.state.cpus[c];
    let idle = allowed.iter().copied().filter(|&c| m.s.state.idle[c]);
    let shallow = |c: &usize| (state(*c).idle_exit_ns, u64::MAX - state(*c).idle_since_ns, *c);
    let least = allowed.iter().copied().min_by_key(|&c| (state(c).load, c));
    idle.min_by_key(shallow).or(least).unwrap_or(cpu)
}

pub fn select(m: &mut Model, topology: &Topology) -> usize {
    let mut cpu = m.s.wake.this;
    // Domains still to be looked at, the widest last.
    let mut left: Vec<DomainView> = topology.domains(cpu).collect();
    while left.last().is_some_and(|d| !balances(m, cpu, d)) {
        left.pop();
    }
    let reach = left.last().map(|d| cpus(d.span())).unwrap_or_default();
    if !reach.iter().any(|&c| m.s.allowed[c]) {
        return m.s.wake.prev;
    }
    while let Some(domain) = left.pop() {
        if !balances(m, cpu, &domain) {
            continue;
        }
        let Some(group) = idlest_group(m, &domain, cpu) else {
            continue;
        };
        let next = idlest_cpu(m, &group, cpu);
        if next != cpu {
            cpu = next;
            let narrower = |d: &DomainView| d.span().weight() < domain.span().weight();
            left = topology.domains(cpu).take_while(narrower).collect();
        }
    }
    cpu
}
