// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs that wakers have chosen. A waker looks for an idle CPU first, and lists or enqueues its task
//! there (`ttwu_pending`, `nr_running`) as the last of its work. In between others see the CPU idle
//! and may choose it as well: then two tasks wait for one CPU.

use super::Sched;
use super::later::Due;

/// The CPU that a CPU's latest waker chose, while others still see it idle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claim(Option<(u64, usize)>);

impl Sched<'_> {
    /// Lets others see `cpu`, which the waker on `this_cpu` has chosen, idle for `takes_ns` more, until
    /// the waker is done.
    pub(super) fn claim(&mut self, cpu: usize, this_cpu: usize, takes_ns: u64) {
        self.host.set_idle(cpu, takes_ns > 0);
        if takes_ns == 0 {
            return;
        }
        let done_ns = self.rq.now() + takes_ns;
        self.cpus[this_cpu].claim = Claim(Some((done_ns, cpu)));
        self.later.add(done_ns, Due::Woken(this_cpu));
    }

    /// Lets everybody see that the CPU is taken that the latest waker on `this_cpu` chose. Whatever
    /// `this_cpu` does now comes after that wake-up.
    #[inline]
    pub(super) fn end_claim(&mut self, this_cpu: usize) {
        let Some((_, cpu)) = self.cpus[this_cpu].claim.0.take() else {
            return;
        };
        if !self.is_free(cpu) {
            self.host.set_idle(cpu, false);
        }
    }

    /// Does the same when that waker is done, which was to be at `done_ns`. A later wake-up on
    /// `this_cpu` may have ended its claim already.
    #[inline]
    pub(super) fn end_claim_of(&mut self, this_cpu: usize, done_ns: u64) {
        match self.cpus[this_cpu].claim.0 {
            Some((at_ns, _)) if at_ns == done_ns => self.end_claim(this_cpu),
            _ => {}
        }
    }

    /// Returns whether a waker has chosen `cpu` and is not done yet.
    pub(crate) fn is_claimed(&self, cpu: usize) -> bool {
        let mut claims = self.cpus.iter().filter_map(|c| c.claim.0);
        claims.any(|(_, chosen)| chosen == cpu)
    }
}
