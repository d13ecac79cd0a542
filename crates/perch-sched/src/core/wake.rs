// SPDX-License-Identifier: GPL-2.0-or-later
//! Waking a task: the policy is asked, the wakee goes to a queue, an interrupt goes out.

use perch_policy::{Mode, ProcessId, Reason, Verdict, Wake};

use super::task::Life;
use super::{Programs, Sched, kind};
use crate::class::fair::pelt::Average;
use crate::observe::{Asked, Decided, Observed};

/// Who wakes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// The running task, or an interrupt on top of it.
    Task(u32),
    /// An interrupt on an idle CPU.
    Idle,
}

impl Sched<'_> {
    /// The waker when an interrupt on `cpu` wakes a task.
    pub fn interrupted(&self, cpu: usize) -> Waker {
        self.cpus[cpu].current.map_or(Waker::Idle, Waker::Task)
    }

    /// Wakes a sleeping task from `this_cpu`. Returns what the wake-up cost the waker, nanoseconds of
    /// work.
    pub fn wake(&mut self, task: u32, this_cpu: usize, waker: Waker, sync: bool) -> u64 {
        let now = self.now;
        let t = &mut self.tasks[task as usize];
        debug_assert_eq!(t.life, Life::Asleep);
        t.woken_ns = now;
        t.waits_since_ns = now;
        let prev = t.cpu as usize;
        if self.entities[task as usize].delayed {
            return self.wake_delayed(task, this_cpu, waker);
        }
        let wake = Wake {
            now_ns: now,
            this_cpu,
            prev_cpu: prev,
            sync,
            ..Wake::default()
        };
        let (cpu, examined) = match self.is_rt(task) {
            true => (self.wake_rt(task, waker, this_cpu, prev), 0),
            false => {
                let verdict = self.decide(task, &wake, waker);
                (verdict.cpu, verdict.examined)
            }
        };
        if self.caches.mode == Mode::Perch {
            self.reserve(cpu, 1);
        }
        if cpu != prev {
            if !self.is_rt(task) {
                self.leave_cpu(task);
            }
            self.tasks[task as usize].cpu = cpu as u32;
        }
        let cost = self.costs.wake_ns(examined);
        self.send_to(task, cpu, this_cpu, cost);
        cost
    }

    /// Wakes a task that EEVDF left on its queue when it fell asleep.
    fn wake_delayed(&mut self, task: u32, this_cpu: usize, waker: Waker) -> u64 {
        let cpu = self.tasks[task as usize].cpu as usize;
        if self.caches.mode == Mode::Perch {
            self.reserve(cpu, 1);
        }
        self.requeue_delayed(cpu, task);
        self.counts.delayed_wakeups += 1;
        if self.is_observed() {
            self.tell(&Observed::Requeued {
                task,
                waker,
                this_cpu,
                cpu,
            });
        }
        let cost = self.costs.wake_ns(0);
        self.preempt_from(cpu, task, this_cpu, cost);
        cost
    }

    /// Chooses a real-time task's CPU, and tells who looks on.
    fn wake_rt(&mut self, task: u32, waker: Waker, this_cpu: usize, prev: usize) -> usize {
        let prev_cpu = self.tasks[task as usize].cpu as usize;
        let cpu = self.place_rt(task, prev);
        if self.is_observed() {
            self.tell(&Observed::RtWoken {
                task,
                waker,
                this_cpu,
                prev_cpu,
                cpu,
            });
        }
        cpu
    }

    /// Asks the policy, and writes down what it said.
    pub(crate) fn decide(&mut self, task: u32, wake: &Wake, waker: Waker) -> Verdict {
        let load = match self.rules.balance.by_weight {
            true => self.predict_weights(task, wake, waker),
            false => self.task_load(task),
        };
        let t = &mut self.tasks[task as usize];
        t.state.load = load;
        let se = &self.entities[task as usize];
        t.state.util = se.average.util.max(se.est());
        let (mut wakee, affinity) = (t.state, t.affinity as usize);
        if self.rules.scan_by_cost {
            self.limit_scan(wake, wakee.process());
        }
        let waker_state = match waker {
            // A task that calls exec decides for itself: nobody's flips are counted.
            Waker::Task(id) if id == task => &mut self.idle_tasks[wake.this_cpu],
            Waker::Task(id) => &mut self.tasks[id as usize].state,
            Waker::Idle => &mut self.idle_tasks[wake.this_cpu],
        };
        if let Some(observer) = self.observer.as_mut() {
            let asked = Observed::Asked(Asked {
                host: &self.host,
                wake,
                waker: waker_state,
                wakee: &wakee,
                allowed: &self.affinities[affinity],
            });
            if let Err(error) = observer.see(self.now, &asked) {
                self.observer_error.get_or_insert(error);
            }
        }
        let verdict = self.host.select(
            &self.policy,
            wake,
            waker_state,
            &mut wakee,
            &self.affinities[affinity],
        );
        self.tasks[task as usize].state = wakee;
        if self.rules.scan_by_cost {
            self.learn_scan_cost(wake.this_cpu, &verdict);
        }
        let from_waker = self.costs.distance(wake.this_cpu, verdict.cpu);
        let from_prev = self.costs.distance(wake.prev_cpu, verdict.cpu);
        let busy = !self.host.is_idle(verdict.cpu);
        debug_assert_eq!(self.check_verdict(&verdict, task), Ok(()));
        self.counts.decision(&verdict, from_waker, from_prev, busy);
        if self.is_observed() {
            let is_new = self.tasks[task as usize].life == Life::Unborn;
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
        let c = &self.cpus[wake.this_cpu];
        let (idle, cost) = (c.avg_idle_ns / 512, c.scan_cost_ns + 1);
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
            let average = &mut self.cpus[this_cpu].scan_cost_ns;
            *average = (*average as i64 + (cost - *average as i64) / 8) as u64;
        }
    }

    /// Brings a woken task to its CPU. An idle CPU, and one that does not share the waker's
    /// cache, enqueues it itself when the interrupt arrives; elsewhere the waker does it.
    fn send_to(&mut self, task: u32, cpu: usize, this_cpu: usize, cost_ns: u64) {
        let topology = self.host.topology();
        let local = cpu == this_cpu && self.cpus[cpu].current.is_some();
        let near = cpu == this_cpu
            || topology
                .llc(cpu)
                .is_some_and(|llc| topology.llc(this_cpu) == Some(llc));
        if local || (near && self.nr(cpu) > 0) {
            self.enqueue(cpu, task, false);
            self.preempt_from(cpu, task, this_cpu, cost_ns);
            return;
        }
        self.tasks[task as usize].life = Life::Waking;
        self.cpus[cpu].wake_list.push_back(task);
        self.host.set_idle(cpu, false);
        self.send_ipi(cpu, this_cpu, cost_ns);
    }

    /// Lets a task just queued on `cpu` preempt; tells a remote CPU by interrupt.
    fn preempt_from(&mut self, cpu: usize, task: u32, this_cpu: usize, cost_ns: u64) {
        let before = self.cpus[cpu].need_resched;
        self.check_preempt(cpu, task);
        if self.cpus[cpu].need_resched && !before && cpu != this_cpu {
            self.send_ipi(cpu, this_cpu, cost_ns);
        }
    }

    /// Sends an interrupt in `after_ns`, when the sender has got that far, unless one is on its
    /// way already.
    pub(crate) fn send_ipi(&mut self, cpu: usize, from: usize, after_ns: u64) {
        if self.cpus[cpu].ipi_pending {
            return;
        }
        self.cpus[cpu].ipi_pending = true;
        let mut delay = after_ns + self.waited_ns(from);
        if cpu != from {
            delay += self.costs.ipi_ns(from, cpu);
        }
        if self.cpus[cpu].current.is_none() {
            delay += u64::from(self.host.cpu(cpu).idle_exit_ns);
        }
        // An interrupt on an idle CPU had to wake that CPU first.
        if cpu != from && self.cpus[from].idle {
            delay += u64::from(self.host.cpu(from).idle_exit_ns);
        }
        let at_ns = self.now + delay;
        self.at(at_ns, kind::IPI, cpu as u32, 0);
    }

    /// An interrupt arrives: enqueue the tasks that were sent here, then reschedule if need be.
    pub fn interrupt<P: Programs>(&mut self, programs: &mut P, cpu: usize) {
        self.cpus[cpu].ipi_pending = false;
        while let Some(task) = self.cpus[cpu].wake_list.pop_front() {
            self.enqueue(cpu, task, false);
            self.check_preempt(cpu, task);
        }
        if self.cpus[cpu].current.is_none() {
            if self.nr(cpu) > 0 {
                self.schedule(programs, cpu);
            } else {
                self.host.set_idle(cpu, true);
            }
        } else {
            self.resched_if_needed(programs, cpu);
        }
    }

    /// A task that nobody in the simulation forks appears, as if its parent were on `parent`.
    pub fn appear<P: Programs>(&mut self, programs: &mut P, task: u32, parent: usize) {
        self.acting = parent;
        let (cpu, _) = self.start(task, parent);
        self.send_to(task, cpu, parent, 0);
        if self.is_rt(task) {
            self.resched_if_needed(programs, parent);
        }
    }

    /// A task's first wake-up, from its parent, which runs on this CPU. Returns what it cost the
    /// parent: the CPUs that the slow path looked at. The rest of a fork is the workload's.
    pub fn fork(&mut self, task: u32, parent: usize) -> u64 {
        let (cpu, cost) = self.start(task, parent);
        self.send_to(task, cpu, parent, cost);
        cost
    }

    /// Makes a task that is about to wake up for the first time: where, and what choosing costs.
    fn start(&mut self, task: u32, parent: usize) -> (usize, u64) {
        let t = &mut self.tasks[task as usize];
        t.cpu = parent as u32;
        // The kernel starts a child's recent_used_cpu with its parent's CPU: a server forked on
        // another node comes back to where its daemon ran, not next to its client.
        t.state.set_recent_cpu(Some(parent));
        let wake = Wake {
            now_ns: self.now,
            this_cpu: parent,
            prev_cpu: parent,
            fork: true,
            ..Wake::default()
        };
        self.count_thread(task, 1);
        if self.is_rt(task) {
            let cpu = self.wake_rt(task, Waker::Idle, parent, parent);
            self.reserve(cpu, 1);
            let t = &mut self.tasks[task as usize];
            (t.cpu, t.woken_ns) = (cpu as u32, self.now);
            return (cpu, 0);
        }
        let verdict = self.decide(task, &wake, Waker::Idle);
        let cpu = verdict.cpu;
        self.reserve(cpu, 1);
        self.touch_queue(cpu);
        let queue = self.queues[cpu].average;
        let t = &mut self.tasks[task as usize];
        t.cpu = cpu as u32;
        t.woken_ns = self.now;
        // A new task counts as fully loading, and as using half of what its CPU has left.
        let capacity = self.host.topology().capacity(cpu);
        let spare = capacity.saturating_sub(queue.util) / 2;
        let se = &mut self.entities[task as usize];
        se.average = Average::starting(self.now, se.weight, spare);
        se.vruntime = 0;
        (cpu, self.costs.examine_ns(verdict.examined))
    }
}
