// SPDX-License-Identifier: GPL-2.0-or-later
//! The time of the run and its events, for the caller that drives a scheduler.

use perch_engine::{Event, EventQueue};

use super::Sched;
use crate::era::EraRules;

impl Sched<'_> {
    /// Returns the current time of the run, in nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.rq.now()
    }

    /// Lets time pass until `now_ns`; the caller makes sure that no event is pending before it.
    pub fn pass_to(&mut self, now_ns: u64) {
        self.rq.pass_to(now_ns);
        self.catch_up();
    }

    /// Takes the next event up to `until_ns`, and lets time pass to it. With `in_order`, this is
    /// the event of the lowest kind and then the lowest key among those of one moment, which
    /// streaks need; otherwise it is the one that was pushed first.
    #[inline]
    pub fn next(&mut self, until_ns: u64, in_order: bool) -> Option<Event> {
        let event = self.events.pop_until(until_ns)?;
        self.pass_to(event.at_ns);
        let event = if !in_order {
            event
        } else {
            self.events.exchange_for_least(event, |e| (e.kind, e.key))
        };
        self.handled = (event.kind, event.key);
        Some(event)
    }

    /// Returns the pending events.
    pub fn events(&self) -> &EventQueue {
        &self.events
    }

    /// Returns the rules of the stock kernel.
    #[inline]
    pub(crate) fn rules(&self) -> &EraRules {
        &self.rules
    }

    /// Returns the CPU that executes kernel code at this moment.
    #[inline]
    pub(crate) fn acting(&self) -> usize {
        self.acting
    }

    /// Makes `cpu` the one that executes kernel code from now on: the time is charged to it.
    #[inline]
    pub fn act_on(&mut self, cpu: usize) {
        self.acting = cpu;
        self.rq.act_on(cpu);
    }
}
