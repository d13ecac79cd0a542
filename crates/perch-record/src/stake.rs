// SPDX-License-Identifier: GPL-2.0-or-later
//! The stake of a recorded choice: whether there was an idle CPU to win, and whether more than one
//! CPU was possible.

use perch_policy::{CpuMask, Host, Reason};

use crate::format::Moment;
use crate::moment::UNSEEN_ROWS;

/// The stake of a choice, as far as the recorder looked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stake {
    /// A CPU that the wakee may use was idle.
    pub(crate) to_win: bool,
    /// Nothing that the recorder looked at twice changed while the kernel chose.
    pub(crate) unchanged: bool,
    /// No CPU that the wakee may use was idle, and the CPUs from which `wake_affine` chooses, the
    /// waker's and the one where the wakee ran last, were one CPU.
    one_left: bool,
}

impl Stake {
    /// Returns the stake of the choice at a moment. `all` are the CPUs of a task without an affinity
    /// of its own. The recorder looked at the caches of waker and wakee, or at every CPU.
    pub(crate) fn of(moment: &Moment, host: &Host, all: &CpuMask) -> Stake {
        let (w, topology) = (moment.wake_up(), host.topology());
        let everywhere = w.unseen & UNSEEN_ROWS == 0;
        let near = [w.this_cpu, w.prev_cpu].map(|cpu| topology.llc(cpu as usize));
        let allowed = moment.affinity().unwrap_or(all);
        let is_near = |cpu: usize| {
            let llc = topology.llc(cpu);
            llc.is_some_and(|llc| near.contains(&Some(llc)))
        };
        let any_seen = |words: &[u64]| {
            let mut both = allowed.words().iter().zip(words);
            let is_in = |&cpu: &usize| words[cpu / 64] >> (cpu % 64) & 1 != 0;
            if everywhere {
                both.any(|(allowed, word)| allowed & word != 0)
            } else {
                allowed.iter().filter(is_in).any(is_near)
            }
        };
        let to_win = any_seen(host.idle_words());
        // The search may also take a busy CPU that has only SCHED_IDLE tasks.
        let to_take = to_win || any_seen(host.sched_idle_words());
        // A waker whose CPU the wakee may not use leaves only the previous CPU.
        let one_aim = w.this_cpu == w.prev_cpu || !allowed.contains(w.this_cpu as usize);
        Stake { to_win, unchanged: w.later.is_empty(), one_left: one_aim && !to_take }
    }

    /// Returns true if only one CPU was possible for a choice with this reason. The slow path and
    /// the rules of old kernels that look for spare capacity choose among busy CPUs too.
    pub(crate) fn forces(self, reason: Reason) -> bool {
        match reason {
            Reason::Affinity => true,
            Reason::TargetBusy => self.one_left,
            _ => false,
        }
    }
}
