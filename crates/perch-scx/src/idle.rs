// SPDX-License-Identifier: GPL-2.0-or-later
//! sched_ext's own masks of idle CPUs and idle cores.

use perch_policy::Topology;

/// The masks. They never move, since the program may keep their addresses.
#[derive(Debug)]
pub(crate) struct IdleMasks {
    cpus: Box<[u64]>,
    cores: Box<[u64]>,
    smt: bool,
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

impl IdleMasks {
    /// The masks of a machine all of whose CPUs idle.
    pub fn new(topology: &Topology) -> IdleMasks {
        let n = topology.nr_cpus();
        let mut masks = IdleMasks {
            cpus: vec![0; n.div_ceil(64)].into(),
            cores: vec![0; n.div_ceil(64)].into(),
            smt: topology.has_smt(),
        };
        for cpu in 0..n {
            set(&mut masks.cpus, cpu, true);
            set(&mut masks.cores, cpu, masks.smt);
        }
        masks
    }

    /// The mask of CPUs, or that of wholly idle cores: the mask of CPUs on a machine without SMT.
    pub fn words(&self, of_cores: bool) -> &[u64] {
        match of_cores && self.smt {
            true => &self.cores,
            false => &self.cpus,
        }
    }

    pub fn is_idle(&self, cpu: usize) -> bool {
        has(&self.cpus, cpu)
    }

    /// Notes that `cpu` begins or ends to idle.
    pub fn update(&mut self, topology: &Topology, cpu: usize, idle: bool) {
        set(&mut self.cpus, cpu, idle);
        if !self.smt {
            return;
        }
        let core = topology.core_span(cpu);
        if !idle || core.iter().all(|sibling| has(&self.cpus, sibling)) {
            core.iter()
                .for_each(|sibling| set(&mut self.cores, sibling, idle));
        }
    }

    /// Claims `cpu`. Returns whether it idled. Its core is not wholly idle any more either way.
    pub fn claim(&mut self, topology: &Topology, cpu: usize) -> bool {
        if self.smt {
            let core = topology.core_span(cpu);
            core.iter()
                .for_each(|sibling| set(&mut self.cores, sibling, false));
        }
        let was = has(&self.cpus, cpu);
        set(&mut self.cpus, cpu, false);
        was
    }

    /// Claims an idle CPU of `among`: of a wholly idle core, if there is one, or of none other if
    /// `only_cores`. The first behind the CPU `turn` is taken, which then is that one
    /// (`cpumask_any_and_distribute()`).
    pub fn pick(
        &mut self,
        topology: &Topology,
        among: &[u64],
        only_cores: bool,
        turn: &mut usize,
    ) -> Option<usize> {
        let after = *turn;
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
        *turn = cpu;
        Some(cpu)
    }
}
