// SPDX-License-Identifier: GPL-2.0-or-later
//! The reference: docs/mechanisms/ (stock, cluster, capacity, cache, steer) written down CPU by
//! CPU, with masks as vectors and counters counted as the text says. Slow, obvious, and without a
//! line of the policy in it.

use perch_policy::{CacheStep, DomainView, Era, Mode, Modes, Reason, SetView, Topology, Verdict};

use crate::cache;
use crate::capacity;
use crate::early;
use crate::machines::Shape;
use crate::scenario::{SECOND, Scenario};
use crate::slow;
use crate::steer;

/// One decision of the reference; changes the scenario as the policy must.
pub struct Model<'a> {
    pub shape: &'a Shape,
    /// For the groups of the slow path only.
    pub topology: &'a Topology,
    pub era: Era,
    /// Mode of `cluster`.
    pub mode: Mode,
    pub capacity: Mode,
    pub cache: Mode,
    pub steer: Mode,
    pub behind: Mode,
    pub spread: Mode,
    pub sched_idle: Mode,
    pub s: &'a mut Scenario,
    pub examined: u32,
    /// `prev'` of §3, and what the mechanism did.
    pub prev: usize,
    step: CacheStep,
    /// The search with `prev'` failed.
    restarts: bool,
}

/// A CPU and why.
pub type Found = (usize, Reason);

impl<'a> Model<'a> {
    pub fn new(
        shape: &'a Shape,
        topology: &'a Topology,
        era: Era,
        modes: Modes,
        s: &'a mut Scenario,
    ) -> Model<'a> {
        Model {
            shape,
            topology,
            era,
            mode: modes.cluster,
            capacity: modes.capacity,
            cache: modes.cache,
            steer: modes.steer,
            behind: modes.behind,
            spread: modes.spread,
            sched_idle: modes.sched_idle,
            prev: s.wake.prev,
            s,
            examined: 0,
            step: CacheStep::None,
            restarts: false,
        }
    }

    /// What a domain tolerates: in 5.5 a quarter, where it is wider than an LLC.
    pub fn imbalance_pct(&self, domain: &DomainView) -> u32 {
        let far = self.era == Era::V5_5 && !domain.shares_llc();
        if far { 125 } else { domain.imbalance_pct() }
    }

    /// "Idle-ok(c)" of §0.
    pub fn idle_ok(&self, cpu: usize) -> bool {
        let blind = self.era == Era::V7_2 && self.s.wakee.sched_idle;
        self.s.state.idle[cpu] || (self.s.state.sched_idle[cpu] && !blind)
    }

    /// All of §7 that this version has.
    pub fn select(mut self) -> Verdict {
        let (mut target, found) = (self.s.wake.prev, self.choose());
        let (mut cpu, mut reason) = match found {
            Choice::Done(found) => found,
            Choice::Search(aim) => {
                target = aim;
                let home = self.s.wake.prev;
                let found = match self.sis(self.prev, aim) {
                    // "restarts once with prev = target = true prev".
                    _ if self.restarts => {
                        (self.prev, target, self.step) = (home, home, CacheStep::Returned);
                        self.sis(home, home)
                    }
                    found => found,
                };
                let found = self.preempts_sched_idle(found);
                steer::steer(&mut self, found)
            }
            Choice::Early(aim, found) => {
                target = aim;
                steer::steer(&mut self, found)
            }
        };
        if !self.s.allowed[cpu] {
            (cpu, reason) = (self.fallback(), Reason::Fallback);
        }
        Verdict { cpu, reason, examined: self.examined, target, cache: self.step }
    }

    fn choose(&mut self) -> Choice {
        let wake = self.s.wake;
        if self.s.allowed.iter().filter(|&&a| a).count() == 1 {
            return Choice::Done((self.fallback(), Reason::Affinity));
        }
        if self.era == Era::V3_4 {
            return early::choose(self);
        }
        if wake.fork || wake.exec {
            let cpu = slow::select(self, self.topology);
            return Choice::Done((cpu, Reason::SlowPath));
        }
        if self.goes_behind() {
            return Choice::Done((wake.this, Reason::Behind));
        }
        self.record_wakee();
        let here = self.s.allowed[wake.this];
        if here && wake.current {
            return Choice::Done((wake.this, Reason::Hint));
        }
        if let Some(cpu) = self.leaves() {
            return Choice::Done((cpu, Reason::Spread));
        }
        (self.prev, self.step) = cache::prev(self);
        let affine = here && !self.wake_wide();
        if capacity::balances(self) && (!affine || capacity::wake_cap(self)) {
            let cpu = slow::select(self, self.topology);
            return Choice::Done((cpu, Reason::WakeBalance));
        }
        let pulled = affine && self.wake_affine();
        if affine && self.era == Era::V5_5 {
            self.s.waker.recent = Some(wake.this);
        }
        Choice::Search(if pulled { wake.this } else { self.prev })
    }

    /// docs/mechanisms/behind.md; changes the wakee's recent CPU as the policy must.
    fn goes_behind(&mut self) -> bool {
        let (wake, turn) = (self.s.wake, self.s.waker.turn_ns);
        let (this, state) = (wake.this, &self.s.state);
        let left = if wake.prev == this { self.s.wakee.recent } else { Some(wake.prev) };
        let exit = left.filter(|&c| state.idle[c]).map_or(0, |c| state.cpus[c].idle_exit_ns);
        let here = &state.cpus[this];
        let alone = here.nr_running - here.nr_delayed == 1;
        let smaller = |c: usize| here.capacity < state.cpus[c].capacity;
        let unequal = self.capacity != Mode::Off && self.shape.asym[this].is_some();
        let kept = unequal && left.is_some_and(smaller) || cache::prefers(self);
        let apart = self.topology.domains(this).next().is_none();
        let goes = self.behind == Mode::Perch
            && wake.sync
            && turn < 1_000_000
            && turn <= 5000 + exit
            && alone
            && self.s.allowed[this]
            && !kept
            && !apart;
        if goes {
            self.s.wakee.recent = left;
        }
        goes
    }

    /// docs/mechanisms/spread.md; counts the wakee as the policy must.
    fn leaves(&mut self) -> Option<usize> {
        let wake = self.s.wake;
        let kept = self.capacity != Mode::Off && self.shape.asym[wake.prev].is_some();
        let own = self.shape.llc[wake.prev].as_ref()?[0];
        let together = self.shape.llc[wake.this].as_ref().is_some_and(|llc| llc[0] == own);
        let state = &self.s.state;
        let leaving = state.spread[own].1 > 0 && !state.idle[wake.prev];
        if self.spread != Mode::Perch || !together || !leaving || kept || cache::prefers(self) {
            return None;
        }
        // Of equals the first.
        let llcs = (0..self.topology.nr_llcs()).map(|llc| self.topology.llc_span(llc));
        let first = |span: &SetView<'_>| span.iter().next().expect("an LLC has CPUs");
        let least = llcs.min_by_key(|span| state.spread[first(span)].0).expect("an LLC");
        let idle = least.iter().filter(|&c| state.idle[c] && self.s.allowed[c]);
        for cpu in idle {
            self.examined += 1;
            if self.shape.core[cpu].iter().all(|&c| self.s.state.idle[c]) {
                self.s.state.spread[own].1 -= 1;
                return Some(cpu);
            }
        }
        None
    }

    /// docs/mechanisms/sched_idle.md.
    fn preempts_sched_idle(&mut self, found: Found) -> Found {
        let (target, reason) = found;
        let mode = self.sched_idle == Mode::Perch && !self.s.wakee.sched_idle;
        let (Some(llc), true, Reason::TargetBusy) = (&self.shape.llc[target], mode, reason) else {
            return found;
        };
        let n = self.shape.nr_cpus();
        let good = |c: &usize| llc.contains(c) && self.s.allowed[*c] && self.s.state.sched_idle[*c];
        let Some(cpu) = (target..target + n).map(|c| c % n).find(good) else {
            return found;
        };
        self.examined += 1;
        (cpu, Reason::SchedIdle)
    }

    /// "The defined fallback" of P1: the first allowed CPU of prev's node, else of the machine;
    /// prev where nothing is allowed.
    fn fallback(&self) -> usize {
        let prev = self.s.wake.prev;
        let mut near_first = (self.shape.node(prev).into_iter()).chain(0..self.shape.nr_cpus());
        near_first.find(|&cpu| self.s.allowed[cpu]).unwrap_or(prev)
    }

    fn record_wakee(&mut self) {
        let (now, wakee) = (self.s.wake.now_ns, self.s.wakee.id);
        let waker = &mut self.s.waker;
        if now > waker.decay_at_ns + SECOND {
            waker.flips /= 2;
            waker.decay_at_ns = now;
        }
        if waker.last_wakee != wakee {
            waker.last_wakee = wakee;
            waker.flips += 1;
        }
    }

    fn wake_wide(&self) -> bool {
        let width = self.shape.llc[self.s.wake.this].as_ref().map_or(1, Vec::len) as u64;
        let flips = [self.s.waker.flips, self.s.wakee.flips].map(u64::from);
        let (slave, master) = (flips[0].min(flips[1]), flips[0].max(flips[1]));
        slave >= width && master >= slave * width
    }

    /// True if wake_affine pulls the wakee to the waker's CPU.
    fn wake_affine(&self) -> bool {
        let (this, prev) = (self.s.wake.this, self.prev);
        let near = self.shape.machine.cpus[this].node == self.shape.machine.cpus[prev].node;
        if this == prev || !(near || self.shape.slit(this, prev) <= 30) {
            return false;
        }
        let state = &self.s.state;
        if state.idle[this] && self.shape.share_llc(this, prev) {
            return !state.idle[prev];
        }
        let here = &state.cpus[this];
        if self.s.wake.sync && here.nr_running - here.nr_delayed == 1 {
            return true;
        }
        !state.idle[prev] && self.wake_affine_weight()
    }

    fn wake_affine_weight(&self) -> bool {
        let (this, prev) = (self.s.wake.this, self.prev);
        let (here, there) = (&self.s.state.cpus[this], &self.s.state.cpus[prev]);
        let task = i128::from(self.s.wakee.load);
        let imbalance = if self.shape.core[this].contains(&prev) {
            110
        } else if self.era == Era::V5_5 && !self.shape.share_llc(this, prev) {
            125
        } else {
            117
        };
        let mut left = i128::from(here.load);
        if self.s.wake.sync {
            if here.curr_load > here.load {
                return true;
            }
            left -= i128::from(here.curr_load);
        }
        left = (left + task) * 100 * i128::from(there.capacity);
        let mut right = i128::from(there.load) - task;
        right *= (100 + (imbalance - 100) / 2) * i128::from(here.capacity);
        left < right + i128::from(self.s.wake.sync)
    }

    /// `sis(p, prev, target)` of §0 with the changes of §1 and §2.
    fn sis(&mut self, prev: usize, target: usize) -> Found {
        let asym = capacity::domain(self, target);
        if self.capacity == Mode::Posted {
            if let Some(cpus) = &asym {
                return capacity::posted(self, cpus, target);
            }
        }
        let active = self.mode != Mode::Off && self.shape.clusters;
        let passes = |m: &Model, cpu| asym.is_none() && cache::passes(m, prev, target, cpu);
        if self.idle_ok(target) && capacity::near(self, target) && !passes(self, target) {
            return (target, Reason::TargetIdle);
        }
        let mut prev_aff = None;
        if prev != target
            && self.shape.share_llc(prev, target)
            && self.idle_ok(prev)
            && capacity::near(self, prev)
            && !passes(self, prev)
        {
            if !active || self.share(prev, target) {
                return (prev, Reason::PrevIdle);
            }
            prev_aff = Some(prev);
        }
        let wake = self.s.wake;
        let kthread = self.s.waker.percpu_kthread && wake.in_task;
        let alone = prev == wake.this && self.s.state.cpus[prev].nr_running <= 1;
        if kthread && alone && capacity::near(self, prev) {
            return (prev, Reason::Kthread);
        }
        // "sis consults recent only when prev is the true previous CPU, but writes `recent = prev`
        // all the same, redirected or not".
        let aimed = prev != wake.prev;
        let mut recent = self.s.wakee.recent.filter(|_| !aimed);
        if self.era != Era::V5_5 {
            self.s.wakee.recent = Some(prev);
        }
        recent = recent.filter(|&r| {
            let other = r != prev && r != target;
            let good = self.idle_ok(r) && self.s.allowed[r] && capacity::near(self, r);
            other && self.shape.share_llc(r, target) && good && !passes(self, r)
        });
        if let Some(r) = recent {
            if !active || self.share(r, target) {
                self.s.wakee.recent = Some(prev);
                return (r, Reason::RecentIdle);
            }
        }
        if let Some(cpus) = &asym {
            return capacity::search(self, cpus, target);
        }
        let Some(llc) = self.shape.llc[target].clone() else {
            return (target, Reason::NoLlc);
        };
        let hic = self.shape.smt && self.s.state.idle_cores[llc[0]];
        if self.shape.smt && !hic && self.shape.share_llc(prev, target) {
            let siblings = self.shape.core[prev].iter().copied();
            let mut good = siblings.filter(|&c| c != prev && self.s.allowed[c] && self.idle_ok(c));
            if let Some(cpu) = good.next() {
                return (cpu, Reason::SiblingIdle);
            }
        }
        if let Some(found) = self.scan(target, &llc, hic, active) {
            return found;
        }
        // "and this precedes the cluster fallback".
        if aimed {
            self.restarts = true;
            return (target, Reason::TargetBusy);
        }
        // Nothing changes while one decision is made, so upstream's trust in a candidate and the
        // others' second look come to the same.
        if let Some(cpu) = prev_aff.filter(|&c| self.mode == Mode::Upstream || self.idle_ok(c)) {
            return (cpu, Reason::ClusterPrev);
        }
        if let Some(cpu) = recent.filter(|&c| self.mode == Mode::Upstream || self.idle_ok(c)) {
            return (cpu, Reason::ClusterRecent);
        }
        (target, Reason::TargetBusy)
    }

    /// `share(a, b)` of §1: the first CPU of the cluster, else of the LLC, else the CPU itself is
    /// the id. Two CPUs, only one of which has a cluster, may so have one id by accident; perch
    /// mode compares the clusters themselves.
    fn share(&self, a: usize, b: usize) -> bool {
        if self.mode == Mode::Perch {
            return self.shape.cluster[a] == self.shape.cluster[b];
        }
        let id = |c: usize| {
            let near = self.shape.cluster[c].as_ref().or(self.shape.llc[c].as_ref());
            near.map_or(c, |set| set[0])
        };
        id(a) == id(b)
    }

    /// Step 8.
    fn scan(&mut self, target: usize, llc: &[usize], hic: bool, active: bool) -> Option<Found> {
        let n = self.shape.nr_cpus();
        let mut mask = vec![false; n];
        llc.iter().for_each(|&c| mask[c] = self.s.allowed[c]);
        if self.era == Era::V7_2 && !mask.contains(&true) {
            return None;
        }
        let budget = self.s.state.scan[llc[0]];
        let own = self.mode == Mode::Perch;
        let mut nr = i64::from(budget) + 1;
        if nr == 1 && !own {
            return None;
        }
        let ring: Vec<usize> = (1..=n).map(|i| (target + i) % n).collect();
        let mut thread = None;
        if let Some(cluster) = self.shape.cluster[target].clone().filter(|_| active) {
            for &cpu in ring.iter().filter(|c| cluster.contains(c)) {
                if !mask[cpu] {
                    continue;
                }
                if hic {
                    if self.core_idle(cpu, &mut mask, &mut thread) {
                        return Some((cpu, Reason::ClusterCore));
                    }
                    continue;
                }
                if !own {
                    nr -= 1;
                    if nr <= 0 {
                        return None;
                    }
                }
                self.examined += 1;
                if self.idle_ok(cpu) {
                    return Some((cpu, Reason::ClusterScan));
                }
            }
            cluster.iter().for_each(|&c| mask[c] = false);
        }
        if nr == 1 && own {
            // The LLC is too busy to be looked at; the cluster was looked at all the same.
            return thread.map(|cpu| (cpu, Reason::ClusterScan));
        }
        for &cpu in &ring {
            if !mask[cpu] {
                continue;
            }
            if hic {
                if self.core_idle(cpu, &mut mask, &mut thread) {
                    return Some((cpu, Reason::LlcCore));
                }
                continue;
            }
            nr -= 1;
            if nr <= 0 {
                return None;
            }
            self.examined += 1;
            if self.idle_ok(cpu) {
                return Some((cpu, Reason::LlcScan));
            }
        }
        if hic {
            self.s.state.idle_cores[llc[0]] = false;
        }
        thread.map(|cpu| (cpu, Reason::LlcThread))
    }

    /// Looks at one core of an idle-core search; a core that is not idle leaves the mask.
    fn core_idle(&mut self, cpu: usize, mask: &mut [bool], thread: &mut Option<usize>) -> bool {
        self.examined += 1;
        let core = &self.shape.core[cpu];
        if core.iter().all(|&c| self.s.state.idle[c]) {
            return true;
        }
        if thread.is_none() {
            *thread = core.iter().copied().find(|&c| mask[c] && self.idle_ok(c));
        }
        core.iter().for_each(|&c| mask[c] = false);
        false
    }
}

pub enum Choice {
    Done(Found),
    /// The search of 3.4 with this target, and what it found.
    Early(usize, Found),
    /// The idle-sibling search with this target.
    Search(usize),
}
