// SPDX-License-Identifier: GPL-2.0-or-later
//! The search for an imbalance: the statistics of a domain's groups, the busiest of them, and the
//! quantity and amount that should move.

use perch_policy::{Change, Level, Mode, SetView};

use super::imbalance::{Idle, Imbalance, LbEnv, Migrate};
use super::judge::{Terms, judge};
use super::sums::GroupType;
use crate::core::Sched;
use crate::hardware::Symbol;

impl Sched<'_> {
    /// Returns whether any queue of a domain has a task to spare. If none has, a newidle pass need
    /// not search: whatever imbalance it found, it would find no task to move.
    pub(super) fn anything_to_take(&self, number: usize) -> bool {
        let span = self.host.topology().domain(number).span();
        let crowded = &self.balance.crowded[span.first_word()..];
        span.words().iter().zip(crowded).any(|(s, c)| s & c != 0)
    }

    /// Examines every group of a domain, and returns the imbalance, if there is one. A periodic
    /// pass also writes the LLC's scan budget and the statistics of the LLCs.
    pub(super) fn find_imbalance(&mut self, env: &LbEnv) -> Option<Imbalance> {
        self.update_capacity(env);
        let &LbEnv { cpu, level, domain: number, idle, unequal } = env;
        let state = &self.balance.cpus[cpu].domains[level];
        let (local, prefer) = (state.local_group, state.prefer_sibling);
        let span = self.host.topology().domain(number).span();
        let words = span.first_word()..span.first_word() + span.words().len();
        let (now_idle, cpus) = (self.host.idle_words(), self.host.cpus());
        self.balance.groups.catch_up(words, now_idle, cpus);
        let busiest = if unequal {
            self.busiest_unequal(env, local)
        } else {
            self.balance.groups.busiest(number, local, self.host.cpus())
        };
        if idle != Idle::Newly {
            let util = self.balance.groups.total(number, self.host.cpus()).util;
            self.update_scan_budget(cpu, number, util);
            self.note_llcs(number);
        }
        self.note_overload(cpu, level);
        if self.rules().by_weight() {
            return self.find_by_weight(env);
        }
        let wanted = self.wanted_group(env);
        let group = busiest.or(wanted)?;
        let (shapes, yardstick) =
            (self.balance.groups.of_domain(number), self.balance.groups.yardstick(number));
        let local = self.group(&shapes[local], yardstick);
        let mut busiest = if unequal {
            self.unequal_group(number, group)
        } else {
            self.group(&shapes[group], yardstick)
        };
        let mut group = group;
        if let Some(wanted) = wanted.filter(|_| busiest.group_type < GroupType::Overloaded) {
            group = wanted;
            busiest = self.group(&shapes[wanted], yardstick);
            busiest.group_type = busiest.group_type.max(GroupType::LlcBalance);
        }
        // A local group with CPUs to spare is not compared with the mean, nor one that is busier.
        let mean = match local.group_type {
            GroupType::HasSpare => 0,
            group_type if group_type > busiest.group_type => 0,
            _ => {
                let total = self.balance.groups.total(number, self.host.cpus());
                let groups = &self.balance.groups;
                let capacity = groups.total_capacity(number, self.host.cpus());
                total.load * 1024 / capacity.max(1)
            }
        };
        let domain = self.host.topology().domain(number);
        let rules = self.rules();
        let numa = rules.has(Change::NumaImbalance) && domain.level() == Level::Numa;
        let terms = Terms {
            mean,
            pct: yardstick.pct.into(),
            idle,
            prefer_sibling: prefer,
            numa: numa.then(|| domain.imb_numa_nr()),
            by_tasks: rules.has(Change::LlcByTasks) && domain.shares_llc(),
            stops_at_mean: rules.has(Change::StopsAtMean),
        };
        let (migrate, amount) = judge(local, busiest, &terms)?;
        (amount > 0).then_some(Imbalance { group, migrate, amount })
    }

    /// Writes the flag that some CPU is overloaded, after a pass over the topmost domain: some CPU has
    /// a task that waits, or a task that does not fit it. No other code clears the flag.
    pub(super) fn note_overload(&mut self, cpu: usize, i: usize) {
        let domains = &self.balance.cpus[cpu].domains;
        if i + 1 < domains.len() {
            return;
        }
        let (number, local) = (domains[i].domain, domains[i].local_group);
        let overload = self.balance.crowded.iter().any(|&w| w != 0)
            || self.host.topology().domain(number).asymmetric() && self.any_misfit(number, local);
        self.set_overload(cpu, Symbol::SchedBalanceRq, overload);
    }

    /// Writes nr_idle_scan: how far a wake-up may search this LLC, or 7.2's capacity scan this
    /// asymmetric domain, from the utilisation of all of it (docs/mechanisms/stock.md#scan). Only
    /// periodic passes over that domain write it.
    fn update_scan_budget(&mut self, cpu: usize, number: usize, util: u64) {
        if self.rules().scans_by_cost() {
            return;
        }
        let topology = self.host.topology();
        let domain = topology.domain(number);
        let set = domain.span().number();
        let shared = [topology.llc(cpu), topology.asym(cpu)];
        let is = |i: &usize| topology.shared_span(*i).number() == set;
        let Some(shared) = shared.into_iter().flatten().find(is) else {
            return;
        };
        let weight = u64::from(domain.span().weight());
        let x = util / weight;
        let pct = u64::from(domain.imbalance_pct());
        let used = (x * x * pct * pct / (10_000 * 1024)).min(1024);
        let llc = topology.llc(cpu).filter(|llc| *llc == shared);
        self.host.set_nr_idle_scan(shared, ((1024 - used) * weight / 1024) as u32);
        if let Some(llc) = llc.filter(|_| self.policy.modes().spread != Mode::Off) {
            self.host.level(llc, x.min(1024) as u32);
        }
    }

    /// Returns the queue of the busiest group from which to pull, leaving out those found to be
    /// pinned.
    pub(super) fn busiest_queue(&self, env: &LbEnv, found: &Imbalance) -> Option<usize> {
        let group = self.host.topology().domain(env.domain).group(found.group);
        // Where the pass moves tasks, the busiest queue is a crowded one, if there is any; in later
        // kernels none but a crowded one has utilisation to give. Delayed tasks crowd a queue too:
        // if none but those do, every queue of one task counts.
        let crowded = match found.migrate {
            Migrate::Task => self.balance.scratch.pinned.is_empty(),
            Migrate::Util => self.rules().has(Change::UtilOfMany),
            Migrate::Load | Migrate::Misfit | Migrate::LlcTask => false,
        };
        let best = if crowded { self.busiest_of(env, group, true, found) } else { None };
        let best = match best {
            Some((_, tasks)) if found.migrate == Migrate::Task && tasks < 2 => None,
            best => best,
        };
        let all = !crowded || found.migrate == Migrate::Task;
        best.or_else(|| if all { self.busiest_of(env, group, false, found) } else { None })
            .map(|(source, _)| source)
    }

    /// Returns the busiest queue of a group, or of its crowded CPUs, and the measure of that.
    fn busiest_of(
        &self,
        env: &LbEnv,
        group: SetView<'_>,
        only_crowded: bool,
        found: &Imbalance,
    ) -> Option<(usize, u64)> {
        let util_of_many = self.rules().has(Change::UtilOfMany);
        let mut best: Option<(usize, u64, u64)> = None;
        let crowded = &self.balance.crowded[group.first_word()..];
        let fair = &self.balance.fair[group.first_word()..];
        let words = group.words().iter().zip(crowded).zip(fair);
        let words = words.map(|((&g, &c), &f)| if only_crowded { g & c & f } else { g & f });
        let pinned = &self.balance.scratch.pinned;
        for (number, word) in (group.first_word()..).zip(words) {
            let mut left = word & !pinned.word(number);
            while left != 0 {
                let c = number * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let running = self.rq.nr_runnable_fair(c);
                if running == 0 {
                    continue;
                }
                if env.unequal && self.is_better_off(c, env.cpu) {
                    continue;
                }
                let state = self.host.cpu(c);
                let capacity = u64::from(state.capacity.max(1));
                let (value, per) = match found.migrate {
                    Migrate::Task => (u64::from(running), 1),
                    Migrate::Util if running == 1 && util_of_many => continue,
                    Migrate::Util => (u64::from(state.util), 1),
                    Migrate::Load if running == 1 && i64::from(state.load) > found.amount => {
                        continue;
                    }
                    Migrate::Load => (u64::from(state.load), capacity),
                    Migrate::Misfit if self.balance.cpus[c].misfit == 0 => continue,
                    Migrate::Misfit => (self.balance.cpus[c].misfit.into(), 1),
                    Migrate::LlcTask => match self.wanting(c, env.cpu) {
                        0 => continue,
                        tasks => (tasks.into(), 1),
                    },
                };
                if best.is_none_or(|(_, v, p)| value * p > v * per) {
                    best = Some((c, value, per));
                }
            }
        }
        best.map(|(c, value, _)| (c, value))
    }
}
