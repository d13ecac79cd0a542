// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle CPUs: sched_ext's own masks of them and of idle cores, and the choices among them.

use perch_policy::Topology;

pub(crate) struct Idle {
    // The program may keep the addresses of both, so they never move.
    cpus: Box<[u64]>,
    cores: Box<[u64]>,
    smt: bool,
    /// By CPU: it runs its idle task.
    idles: Vec<bool>,
    /// By CPU: the CPU that was picked there last.
    turns: Vec<usize>,
}

fn has(mask: &[u64], cpu: usize) -> bool {
    mask[cpu / 64] >> (cpu % 64) & 1 != 0
}

fn set(mask: &mut [u64], cpu: usize, is: bool) {
    let bit = 1 << (cpu % 64);
    if is {
        mask[cpu / 64] |= bit;
    } else {
        mask[cpu / 64] &= !bit;
    }
}

/// The CPUs of a node among `words`.
pub(crate) fn of_node(topology: &Topology, words: &[u64], node: usize) -> Vec<u64> {
    let mut own = vec![0; words.len()];
    for cpu in (0..topology.nr_cpus()).filter(|&cpu| topology.node(cpu) == node) {
        own[cpu / 64] |= words[cpu / 64] & 1 << (cpu % 64);
    }
    own
}

impl Idle {
    /// A machine all of whose CPUs idle.
    pub fn new(topology: &Topology) -> Idle {
        let n = topology.nr_cpus();
        let mut idle = Idle {
            cpus: vec![0; n.div_ceil(64)].into(),
            cores: vec![0; n.div_ceil(64)].into(),
            smt: topology.has_smt(),
            idles: vec![true; n],
            turns: vec![0; n],
        };
        for cpu in 0..n {
            set(&mut idle.cpus, cpu, true);
            set(&mut idle.cores, cpu, idle.smt);
        }
        idle
    }

    /// The mask of CPUs, or that of wholly idle cores: the mask of CPUs on a machine without SMT.
    pub fn words(&self, of_cores: bool) -> &[u64] {
        if of_cores && self.smt { &self.cores } else { &self.cpus }
    }

    /// Returns whether the CPU runs its idle task; it may have been claimed.
    pub(super) fn idles(&self, cpu: usize) -> bool {
        self.idles[cpu]
    }

    /// Notes whether the CPU runs its idle task. Returns whether that is new.
    pub(super) fn set_idles(&mut self, cpu: usize, idles: bool) -> bool {
        std::mem::replace(&mut self.idles[cpu], idles) != idles
    }

    /// Writes to the masks that the CPU begins or ends to idle.
    pub(super) fn update(&mut self, topology: &Topology, cpu: usize, idle: bool) {
        set(&mut self.cpus, cpu, idle);
        if !self.smt {
            return;
        }
        let core = topology.core_span(cpu);
        if !idle || core.iter().all(|sibling| has(&self.cpus, sibling)) {
            core.iter().for_each(|sibling| set(&mut self.cores, sibling, idle));
        }
    }

    /// Claims `cpu`. Returns whether it idled. Its core is not wholly idle any more either way.
    pub fn claim(&mut self, topology: &Topology, cpu: usize) -> bool {
        if self.smt {
            let core = topology.core_span(cpu);
            core.iter().for_each(|sibling| set(&mut self.cores, sibling, false));
        }
        let was = has(&self.cpus, cpu);
        set(&mut self.cpus, cpu, false);
        was
    }

    /// Claims an idle CPU of `among` for the CPU `here`: of a wholly idle core, if there is one, or of
    /// none other if `only_cores`. The first behind the one picked last is taken
    /// (`cpumask_any_and_distribute()`).
    pub fn pick(
        &mut self,
        topology: &Topology,
        here: usize,
        among: &[u64],
        only_cores: bool,
    ) -> Option<usize> {
        let after = self.turns[here];
        let first = |mask: &[u64]| {
            let words = mask.iter().zip(among).enumerate();
            let both = words.flat_map(|(word, (idle, among))| {
                let mut left = idle & among;
                std::iter::from_fn(move || {
                    let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                    left &= left - 1;
                    Some(word * 64 + bit)
                })
            });
            let mut before = None;
            for cpu in both {
                if cpu > after {
                    return Some(cpu);
                }
                before = before.or(Some(cpu));
            }
            before
        };
        let of_core = self.smt.then(|| first(&self.cores)).flatten();
        if only_cores && self.smt && of_core.is_none() {
            return None;
        }
        let cpu = of_core.or_else(|| first(&self.cpus))?;
        self.claim(topology, cpu);
        self.turns[here] = cpu;
        Some(cpu)
    }

    /// Any CPU among these, each in its turn.
    pub fn pick_any(&mut self, here: usize, among: &[u64]) -> Option<usize> {
        let turn = &mut self.turns[here];
        let mut all = (*turn + 1..self.idles.len()).chain(0..=*turn);
        let found = all.find(|&cpu| has(among, cpu))?;
        *turn = found;
        Some(found)
    }

    /// The default choice of an idle CPU (`scx_select_cpu_dfl()`) among those that the task `may` use:
    /// the waker's CPU for a wakee that it is about to wait for, the previous one, one of its LLC, of
    /// its node, any; wholly idle cores first. `sync`: the waker is about to wait, and whether it is
    /// alone on its CPU.
    pub(super) fn select(
        &mut self,
        topology: &Topology,
        here: usize,
        may: &[u64],
        prev: usize,
        sync: Option<bool>,
        only_cores: bool,
    ) -> Option<usize> {
        let llc = topology.llc(prev).filter(|_| topology.nr_llcs() > 1);
        let llc = llc.map(|llc| {
            let (span, mut words) = (topology.llc_span(llc), vec![0; may.len()]);
            for (at, word) in (span.first_word()..).zip(span.words()) {
                words[at] = may[at] & word;
            }
            words
        });
        let node = (topology.nr_nodes() > 1).then(|| of_node(topology, may, topology.node(prev)));
        if let Some(alone) = sync {
            let near = topology.llc(here).is_some() && topology.llc(here) == topology.llc(prev);
            if near && has(may, prev) && self.claim(topology, prev) {
                return Some(prev);
            }
            // The waker's own CPU, if nothing else waits there and no other CPU is idle.
            if alone && self.cpus.iter().all(|word| *word == 0) && has(may, here) {
                return Some(here);
            }
        }
        let near = [llc.as_deref(), node.as_deref(), Some(may)];
        if self.smt {
            let mut core = topology.core_span(prev).iter();
            if has(may, prev) && core.all(|cpu| has(&self.cpus, cpu)) {
                self.claim(topology, prev);
                return Some(prev);
            }
            for words in near.iter().flatten() {
                let cpu = self.pick(topology, here, words, true);
                if cpu.is_some() {
                    return cpu;
                }
            }
            if only_cores {
                return None;
            }
        }
        if has(may, prev) && self.claim(topology, prev) {
            return Some(prev);
        }
        near.iter().flatten().find_map(|words| self.pick(topology, here, words, false))
    }
}
