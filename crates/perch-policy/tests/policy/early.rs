// SPDX-License-Identifier: GPL-2.0-or-later
//! The reference for the wake-up path of 3.4 (docs/mechanisms/stock.md#34).

use perch_policy::{DomainView, Reason, SetView, Topology};

use crate::model::{Choice, Found, Model};
use crate::slow;

fn cpus(set: SetView) -> Vec<usize> {
    set.iter().collect()
}

/// What a domain tolerates: a tenth among threads of a core, a quarter elsewhere.
fn imbalance_pct(m: &Model, cpu: usize, span: &[usize]) -> i128 {
    let core = m.shape.core[cpu].as_slice() == span;
    if core { 110 } else { 125 }
}

pub fn choose(m: &mut Model) -> Choice {
    let wake = m.s.wake;
    let topology = m.topology;
    if wake.fork || wake.exec {
        let cpu = slow_path(m, topology);
        return Choice::Done((cpu, Reason::SlowPath));
    }
    let within = topology.domains(wake.this).find(|d| {
        let far = cpus(d.span()).iter().map(|&c| m.shape.slit(wake.this, c)).max();
        d.span().contains(wake.prev) && far.is_some_and(|far| far <= 30)
    });
    let Some(domain) = within.filter(|_| m.s.allowed[wake.this]) else {
        return Choice::Done((wake.prev, Reason::Unsearched));
    };
    let pulled = wake.this == wake.prev || pulls(m, &domain);
    let target = if pulled { wake.this } else { wake.prev };
    let found = search(m, target);
    Choice::Early(target, found)
}

/// True if the waker's CPU, with the wakee and at a sync wake-up without the waker, is no busier
/// than the wakee's CPU, or if both CPUs together carry less than one task of the waker's CPU.
fn pulls(m: &Model, domain: &DomainView) -> bool {
    let (this, prev) = (m.s.wake.this, m.s.wake.prev);
    let (here, there) = (&m.s.state.cpus[this], &m.s.state.cpus[prev]);
    let (mut left, mut right) = (i128::from(here.load), i128::from(there.load));
    if m.s.wake.sync {
        left -= i128::from(here.curr_load);
        right += i128::from(m.s.waker.load_shift);
    }
    let each = i128::from(here.load.checked_div(here.nr_running).unwrap_or(0));
    let slack = 100 + (imbalance_pct(m, this, &cpus(domain.span())) - 100) / 2;
    let with = (left + i128::from(m.s.wakee.load)) * 100 * i128::from(there.capacity);
    let without = (right + i128::from(m.s.wakee.load_shift)) * slack * i128::from(here.capacity);
    left <= 0 || with <= without || (left <= right && left + i128::from(there.load) <= each)
}

fn search(m: &mut Model, target: usize) -> Found {
    if m.s.state.idle[target] {
        return (target, Reason::TargetIdle);
    }
    let Some(llc) = m.shape.llc[target].clone() else {
        return (target, Reason::NoLlc);
    };
    let topology = m.topology;
    let mut domains: Vec<DomainView> = topology.domains(target).collect();
    domains.retain(|d| cpus(d.span()).iter().all(|c| llc.contains(c)));
    while let Some(domain) = domains.pop() {
        let n = domain.groups();
        let own = (0..n).find(|&i| domain.group(i).contains(target)).expect("its group");
        for i in 0..n {
            let group = cpus(domain.group((own + i) % n));
            let mut allowed = group.iter().copied().filter(|&c| m.s.allowed[c]);
            let Some(first) = allowed.next() else {
                continue;
            };
            let busy = group.iter().position(|&c| !m.s.state.idle[c]);
            m.examined += busy.map_or(group.len(), |at| at + 1) as u32;
            if busy.is_none() {
                return (first, Reason::IdleGroup);
            }
        }
    }
    (target, Reason::TargetBusy)
}

/// Fork and exec: down from the widest domain by load per capacity.
fn slow_path(m: &mut Model, topology: &Topology) -> usize {
    let mut cpu = m.s.wake.this;
    let mut left: Vec<DomainView> = topology.domains(cpu).collect();
    while let Some(domain) = left.pop() {
        if !slow::balances(m, cpu, &domain) {
            continue;
        }
        let span = cpus(domain.span());
        m.examined += span.len() as u32;
        let load = |c: usize| m.s.state.cpus[c].load;
        let n = domain.groups();
        let own = (0..n).find(|&i| domain.group(i).contains(cpu)).unwrap_or(0);
        let ring = (0..n).map(|i| cpus(domain.group((own + i) % n)));
        let usable = ring.filter(|g| g.iter().any(|&c| m.s.allowed[c]));
        let (local, others): (Vec<_>, Vec<_>) = usable.partition(|g| g.contains(&cpu));
        let average = |g: &Vec<usize>| {
            let sum: u64 = g.iter().map(|&c| u64::from(load(c))).sum();
            let capacity = g.iter().map(|&c| u64::from(m.s.state.cpus[c].capacity_in_groups));
            sum * 1024 / capacity.sum::<u64>()
        };
        let here = local.first().map_or(0, average);
        let Some(best) = others.iter().min_by_key(|g| average(g)) else {
            continue;
        };
        let slack = (100 + (imbalance_pct(m, cpu, &span) - 100) / 2) as u64;
        if 100 * here < slack * average(best) {
            continue;
        }
        m.examined += best.len() as u32;
        let allowed = best.iter().copied().filter(|&c| m.s.allowed[c]);
        cpu = allowed.min_by_key(|&c| load(c)).expect("a CPU that it may use");
        let narrower = |d: &DomainView| d.span().weight() < domain.span().weight();
        left = topology.domains(cpu).take_while(narrower).collect();
    }
    cpu
}
