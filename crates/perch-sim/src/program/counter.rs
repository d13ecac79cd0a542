// SPDX-License-Identifier: GPL-2.0-or-later
//! Counters that the threads of one process share, each a number that an atomic instruction reads
//! and increments.

use super::shared_line::SharedLine;
use super::system::System;
use super::thread::Thread;
use crate::id::{CounterId, IdVec};

#[derive(Debug, Default)]
struct Counter {
    next: u64,
    line: SharedLine,
}

/// All counters of a run.
#[derive(Debug)]
pub struct Counters {
    counters: IdVec<CounterId, Counter>,
}

impl Counters {
    /// This many counters, at 0.
    pub fn new(n: usize) -> Counters {
        Counters { counters: (0..n).map(|_| Counter::default()).collect() }
    }

    /// The running task takes the next number of a counter, and keeps its remainder by `of`.
    pub fn draw<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        counter: CounterId,
        of: u32,
    ) {
        let c = &mut self.counters[counter];
        let cost = c.line.write(system, cpu);
        let number = c.next;
        c.next += 1;
        thread.drawn = (number % u64::from(of)) as u32;
        thread.step();
        system.charge(thread.task, cost);
    }
}
