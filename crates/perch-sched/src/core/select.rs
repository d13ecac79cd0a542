// SPDX-License-Identifier: GPL-2.0-or-later
//! The choice of a fair task's CPU: the policy is asked, and its answer is recorded.

use perch_policy::{Mode, ProcessId, Reason, ReasonClass, Verdict, Wake};

use super::{Life, Sched, Waker};
use crate::class::table::Choice;
use crate::id::TaskId;
use crate::observe::{Asked, Decided, Observed};
use crate::{Violation, hold};

impl Sched<'_> {
    /// Chooses the CPU of a task that wakes up, is forked or calls exec. Returns the CPU, and how
    /// many CPUs the policy examined for it.
    pub(super) fn select(&mut self, task: TaskId, wake: &Wake, waker: Waker) -> (usize, u32) {
        self.end_claim(wake.this_cpu);
        match self.rq.choose(task, wake, self.acting) {
            Choice::Policy => {
                let verdict = self.decide(task, wake, waker);
                (verdict.cpu, verdict.examined)
            }
            Choice::Stays => (wake.prev_cpu, 0),
            Choice::Outside(cpu) => {
                self.apply();
                self.note_outside_choice(task, wake, waker, cpu);
                (cpu, 0)
            }
            Choice::Class(cpu, step) => {
                self.apply();
                self.note_rt_choice(task, wake, waker, (cpu, step));
                (cpu, 0)
            }
        }
    }

    /// Asks the policy for the CPU of `task`, and records its answer.
    pub(crate) fn decide(&mut self, task: TaskId, wake: &Wake, waker: Waker) -> Verdict {
        let load = if self.rules.by_weight() {
            self.predict_weights(task, wake, waker)
        } else {
            self.rq.task_load(task)
        };
        let util = self.rq.util(task);
        let t = self.rq.task_mut(task);
        t.state.load = load;
        t.state.util = util;
        let process = t.state.process();
        if self.rules.scans_by_cost() {
            self.limit_scan(wake, process);
        }
        // A task that calls exec is its own waker, so the policy counts no task's wakee flips.
        let other = match waker {
            Waker::Task(id) if id != task => Some(id),
            Waker::Task(_) | Waker::Idle => None,
        };
        let now = self.rq.now();
        let (wakee, waker_state, allowed) = self.rq.asked(task, other);
        let waker_state = waker_state.unwrap_or(&mut self.idle_tasks[wake.this_cpu]);
        if self.watch.is_any() {
            let asked = Observed::Asked(Asked {
                host: &self.host,
                wake,
                waker: waker_state,
                wakee,
                allowed,
            });
            self.watch.tell(now, &asked);
        }
        let verdict = (self.host).select(&self.policy, wake, waker_state, wakee, allowed);
        if self.rules.scans_by_cost() {
            self.learn_scan_cost(wake.this_cpu, &verdict);
        }
        let from_waker = self.costs.distance(wake.this_cpu, verdict.cpu);
        let from_prev = self.costs.distance(wake.prev_cpu, verdict.cpu);
        let busy = !self.host.is_idle(verdict.cpu);
        debug_assert_eq!(self.check_verdict(&verdict, task), Ok(()));
        let is_new = self.rq.task(task).life() == Life::Unborn;
        self.happened(Observed::Decided(Decided {
            task,
            waker,
            this_cpu: wake.this_cpu,
            prev_cpu: wake.prev_cpu,
            verdict: &verdict,
            is_new,
            from_waker,
            from_prev,
            busy,
        }));
        verdict
    }

    /// Sets how far an idle scan may go in 5.5 (SIS_PROP): a 512th of the average idle time of the
    /// waker's CPU, divided by the average cost of a scan from it, times the number of CPUs in the
    /// LLC, and never less than 4. The kernel's limit counts the target, though it is known to be
    /// busy, and the scan does not look at the last CPU that it counts.
    fn limit_scan(&mut self, wake: &Wake, process: Option<ProcessId>) {
        let idle = self.rq.idleness(wake.this_cpu).avg_idle_ns() / 512;
        let cost = self.cpus[wake.this_cpu].scan_cost_ns + 1;
        let preferred = process.and_then(|p| self.host.preferred_cpu(p));
        for cpu in [wake.this_cpu, wake.prev_cpu].into_iter().chain(preferred) {
            let Some(llc) = self.host.topology().llc(cpu) else {
                continue;
            };
            let weight = u64::from(self.host.topology().llc_span(llc).weight());
            let limit = (weight * idle / cost).max(4);
            self.host.set_nr_idle_scan(llc, (limit - 2).min(weight) as u32);
        }
    }

    /// Adds the cost of a scan to the average of its waker's CPU, with a weight of an eighth. A
    /// scan that met its limit is not counted.
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
            // The scan looked at the target too.
            let cost = self.costs.examine_ns(examined + 1) as i64;
            let average = &mut self.cpus[this_cpu].scan_cost_ns;
            *average = (*average as i64 + (cost - *average as i64) / 8) as u64;
        }
    }

    /// Compares a decision with the state in which it was made: the CPU is allowed (P1); it is idle
    /// where the reason says so; the queue of the task's group is empty there where the reason says
    /// that (P12); and it is busy only where no idle CPU was at hand (P18).
    fn check_verdict(&self, verdict: &Verdict, task: TaskId) -> Result<(), Violation> {
        let (cpu, allowed) = (verdict.cpu, self.rq.allowed(task));
        hold!(allowed.contains(cpu), "cpu {cpu} is not allowed: {verdict:?}");
        let idle = self.host.is_idle(cpu);
        hold!(
            idle || verdict.reason.class() != ReasonClass::Idle,
            "cpu {cpu} is busy: {verdict:?}"
        );
        if verdict.reason == Reason::EmptyQueue {
            return self.rq.check_steered(task, cpu);
        }
        if verdict.reason != Reason::TargetBusy {
            return Ok(());
        }
        let (topology, modes) = (self.host.topology(), self.policy.modes());
        // The capacity scan has the last word where there is one, within its budget: with none left, mode
        // upstream returns the target, idle or not, even if the task does not fit it.
        if modes.capacity != Mode::Off && topology.asym(verdict.target).is_some() {
            return Ok(());
        }
        hold!(!idle, "cpu {cpu} is idle: {verdict:?}");
        // 3.4 knows no clusters.
        if self.rules.by_weight() {
            return Ok(());
        }
        let cluster = topology.cluster_span(verdict.target);
        if let (Mode::Perch, Some(cluster)) = (modes.cluster, cluster) {
            let over = cluster.iter().find(|&c| self.host.is_idle(c) && allowed.contains(c));
            hold!(over.is_none(), "idle cpu {over:?} of its cluster was passed over: {verdict:?}");
        }
        Ok(())
    }

    /// 3.4: predicts how much the queues of a wake-up would weigh with the wakee on the waker's
    /// CPU, and without the waker, as the policy compares them. Returns by how much the waker's CPU
    /// would be heavier.
    #[cold]
    fn predict_weights(&mut self, task: TaskId, wake: &Wake, waker: Waker) -> u32 {
        let (this, prev) = (wake.this_cpu, wake.prev_cpu);
        let weight = i64::from(self.rq.weight(task));
        let shift = self.rq.effective_load(task, prev, 0, weight);
        self.rq.task_mut(task).state.load_shift = shift as i32;
        let heavier = self.rq.effective_load(task, this, weight, weight);
        let leaves = match waker {
            Waker::Task(waker) if wake.sync && waker != task => {
                let weight = i64::from(self.rq.weight(waker));
                let shift = self.rq.effective_load(waker, prev, 0, -weight);
                self.rq.task_mut(waker).state.load_shift = shift as i32;
                -self.rq.effective_load(waker, this, -weight, -weight)
            }
            _ => 0,
        };
        self.host.cpu_mut(this).curr_load = leaves.max(0) as u32;
        heavier.max(0) as u32
    }
}
