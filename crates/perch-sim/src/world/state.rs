// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts of a run beside the scheduler, and the view that a program has of them.

use perch_policy::Era;
use perch_sched::Sched;
use perch_workload::Workload;

use super::guest::Guests;
use super::here::Here;
use super::net::Net;
use crate::program::Interpreter;

/// The parts of a run beside the scheduler. The files of this room handle events on them; each part
/// keeps its own state for itself.
pub struct World {
    pub(super) programs: Interpreter,
    pub(super) guests: Guests,
    /// The network, if the workload has tasks on other computers.
    pub(super) net: Option<Box<Net>>,
    /// Events that the simulation has handled since counting began.
    pub(super) events: u64,
}

impl World {
    /// The world of a workload, whose tasks a kernel of `era` serves.
    pub fn new(workload: &Workload, nr_cpus: usize, era: Era, seed: u64) -> World {
        World {
            programs: Interpreter::new(workload, nr_cpus, era, seed),
            guests: Guests::new(workload),
            net: Net::new(workload),
            events: 0,
        }
    }

    /// The programs, and the world as they see it.
    pub(super) fn here<'w, 'a>(
        &'w mut self,
        sched: &'w mut Sched<'a>,
    ) -> (&'w mut Interpreter, Here<'w, 'a>) {
        let here = Here { sched, guests: &mut self.guests, net: self.net.as_deref() };
        (&mut self.programs, here)
    }

    /// Counts anew from now on.
    pub(super) fn start_counting(&mut self, sched: &mut Sched<'_>) {
        sched.start_counting();
        self.guests.start_counting(sched);
        self.events = 0;
    }

    /// The task that runs on a CPU begins to work off what it owes.
    #[inline]
    pub(super) fn work(&mut self, sched: &mut Sched<'_>, cpu: usize) {
        self.guests.carry(sched, cpu);
        sched.begin_segment(cpu);
    }
}
