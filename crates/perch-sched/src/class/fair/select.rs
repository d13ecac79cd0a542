// SPDX-License-Identifier: GPL-2.0-or-later
//! Choosing a fair task's CPU: the policy is asked, and what it said is written down.

use perch_policy::{Mode, ProcessId, Reason, ReasonClass, Verdict, Wake};

use crate::core::{Life, Sched, Waker};
use crate::hold;
use crate::id::TaskId;
use crate::observe::{Asked, Decided, Observed};

impl Sched<'_> {
    /// Asks the policy, and writes down what it said.
    pub(crate) fn decide(&mut self, task: TaskId, wake: &Wake, waker: Waker) -> Verdict {
        let load = match self.rules.balance.by_weight {
            true => self.predict_weights(task, wake, waker),
            false => self.task_load(task),
        };
        let t = &mut self.tasks[task];
        t.state.load = load;
        let se = self.fair.entity_of(task);
        t.state.util = se.average.util.max(se.est());
        let (process, affinity) = (t.state.process(), t.affinity);
        if self.rules.scan_by_cost {
            self.limit_scan(wake, process);
        }
        let (waker_state, wakee) = match waker {
            Waker::Task(id) if id != task => {
                let (waker, wakee) = self.tasks.two_mut(id, task);
                (&mut waker.state, &mut wakee.state)
            }
            // A task that calls exec decides for itself: nobody's flips are counted.
            Waker::Task(_) | Waker::Idle => (
                &mut self.idle_tasks[wake.this_cpu],
                &mut self.tasks[task].state,
            ),
        };
        let allowed = &self.affinities[affinity];
        if self.watch.is_any() {
            let asked = Observed::Asked(Asked {
                host: &self.host,
                wake,
                waker: waker_state,
                wakee,
                allowed,
            });
            self.watch.tell(self.now, &asked);
        }
        let verdict = (self.host).select(&self.policy, wake, waker_state, wakee, allowed);
        if self.rules.scan_by_cost {
            self.learn_scan_cost(wake.this_cpu, &verdict);
        }
        let from_waker = self.costs.distance(wake.this_cpu, verdict.cpu);
        let from_prev = self.costs.distance(wake.prev_cpu, verdict.cpu);
        let busy = !self.host.is_idle(verdict.cpu);
        debug_assert_eq!(self.check_verdict(&verdict, task), Ok(()));
        self.counts.decision(&verdict, from_waker, from_prev, busy);
        if self.is_observed() {
            let is_new = self.tasks[task].life == Life::Unborn;
            self.tell(&Observed::Decided(Decided {
                task,
                waker,
                this_cpu: wake.this_cpu,
                prev_cpu: wake.prev_cpu,
                verdict: &verdict,
                is_new,
            }));
        }
        verdict
    }

    /// How far an idle scan may go in 5.5 (SIS_PROP): a 512th of the time that the waker's CPU
    /// usually idles, divided by what a scan from it usually costs, as many times over as the LLC
    /// has CPUs, and never less than 4. The target counts there, though it is known to be busy,
    /// and the last one counted is not looked at.
    fn limit_scan(&mut self, wake: &Wake, process: Option<ProcessId>) {
        let idle = self.cpus[wake.this_cpu].idleness.avg_idle_ns() / 512;
        let cost = self.fair.scan_cost_ns[wake.this_cpu] + 1;
        let preferred = process.and_then(|p| self.host.preferred_cpu(p));
        for cpu in [wake.this_cpu, wake.prev_cpu].into_iter().chain(preferred) {
            let Some(llc) = self.host.topology().llc(cpu) else {
                continue;
            };
            let weight = u64::from(self.host.topology().llc_span(llc).weight());
            let limit = (weight * idle / cost).max(4);
            self.host
                .set_nr_idle_scan(llc, (limit - 2).min(weight) as u32);
        }
    }

    /// What a scan cost enters the average of its waker's CPU by an eighth; one that met its
    /// limit leaves no trace.
    fn learn_scan_cost(&mut self, this_cpu: usize, verdict: &Verdict) {
        let topology = self.host.topology();
        let Some(llc) = topology.llc(verdict.target) else {
            return;
        };
        let others = topology.llc_span(llc).weight() - 1;
        let examined = verdict.examined;
        let scanned = match verdict.reason {
            Reason::LlcScan | Reason::LlcThread => true,
            Reason::TargetBusy => examined < self.host.nr_idle_scan(llc) || examined >= others,
            _ => false,
        };
        if scanned {
            // The target was looked at too.
            let cost = self.costs.examine_ns(examined + 1) as i64;
            let average = &mut self.fair.scan_cost_ns[this_cpu];
            *average = (*average as i64 + (cost - *average as i64) / 8) as u64;
        }
    }

    /// A decision held against the state in which it was made: allowed (P1), idle where its
    /// reason says so, with an empty queue of the task's group where it says that (P12), and busy only
    /// where nothing idle was at hand (P18).
    fn check_verdict(&self, verdict: &Verdict, task: TaskId) -> Result<(), String> {
        let t = &self.tasks[task];
        let (cpu, allowed) = (verdict.cpu, &self.affinities[t.affinity]);
        hold!(
            allowed.contains(cpu),
            "cpu {cpu} is not allowed: {verdict:?}"
        );
        let idle = self.host.is_idle(cpu);
        hold!(
            idle || verdict.reason.class() != ReasonClass::Idle,
            "cpu {cpu} is busy: {verdict:?}"
        );
        if verdict.reason == Reason::EmptyQueue {
            return self.fair.check_steered(t.group, cpu);
        }
        if verdict.reason != Reason::TargetBusy {
            return Ok(());
        }
        hold!(!idle, "cpu {cpu} is idle: {verdict:?}");
        // 3.4 knows neither clusters nor capacities.
        if self.rules.balance.by_weight {
            return Ok(());
        }
        let (topology, modes) = (self.host.topology(), self.policy.modes());
        // The capacity scan has the last word where there is one, within its budget.
        if modes.capacity != Mode::Off && topology.asym(verdict.target).is_some() {
            return Ok(());
        }
        let cluster = topology.cluster_span(verdict.target);
        if let (Mode::Perch, Some(cluster)) = (modes.cluster, cluster) {
            let over = cluster
                .iter()
                .find(|&c| self.host.is_idle(c) && allowed.contains(c));
            hold!(
                over.is_none(),
                "idle cpu {over:?} of its cluster was passed over: {verdict:?}"
            );
        }
        Ok(())
    }

    /// 3.4: what the queues of a wake-up would weigh with the wakee on the waker's CPU, and without
    /// the waker, as the policy compares them. Returns by how much the waker's CPU would be heavier.
    #[cold]
    fn predict_weights(&mut self, task: TaskId, wake: &Wake, waker: Waker) -> u32 {
        let (this, prev) = (wake.this_cpu, wake.prev_cpu);
        let task_group = self.tasks[task].group;
        let weight = i64::from(self.fair.entity_of(task).weight);
        let shift = self.fair.effective_load(task_group, prev, 0, weight);
        self.tasks[task].state.load_shift = shift as i32;
        let heavier = self.fair.effective_load(task_group, this, weight, weight);
        let leaves = match waker {
            Waker::Task(waker) if wake.sync && waker != task => {
                let waker_group = self.tasks[waker].group;
                let weight = i64::from(self.fair.entity_of(waker).weight);
                let shift = self.fair.effective_load(waker_group, prev, 0, -weight);
                self.tasks[waker].state.load_shift = shift as i32;
                -self
                    .fair
                    .effective_load(waker_group, this, -weight, -weight)
            }
            _ => 0,
        };
        self.host.cpu_mut(this).curr_load = leaves.max(0) as u32;
        heavier.max(0) as u32
    }
}
