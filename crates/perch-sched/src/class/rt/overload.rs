// SPDX-License-Identifier: GPL-2.0-or-later
//! Overloaded CPUs: pushable tasks, the mask, and the counters of policy/include/perch/overload.h.

use perch_policy::OverloadLevel;

use crate::class::RunQueues;
use crate::class::effect::Effect;
use crate::hardware::{Access, Field, Symbol};
use crate::id::TaskId;
use crate::{Violation, hold};

impl RunQueues {
    /// Adds `task`, which waits on `cpu` and may run elsewhere, to the pushable tasks. The first
    /// one makes the CPU overloaded. The mask is written before the counter, so that a CPU that
    /// sees the counter finds the mask set.
    pub(super) fn enqueue_pushable(&mut self, cpu: usize, task: TaskId) {
        let priority = self.tasks[task].rt.priority;
        let pushable = &mut self.cpus[cpu].rt.pushable;
        let first = pushable.is_empty();
        pushable.push_back(priority, task);
        if first {
            let symbol = Symbol::EnqueuePushableTask;
            self.write_mask(cpu, symbol, true);
            let counter = self.rt_domain().overload.set(cpu);
            self.line(symbol, Field::RtoCount(counter as u16), Access::Store);
            self.effects.push(Effect::Overloaded(cpu));
        }
    }

    /// Takes `task` out of the pushable tasks, if it is one of them. Without any pushable task the
    /// CPU is no longer overloaded.
    pub(super) fn dequeue_pushable(&mut self, cpu: usize, task: TaskId) {
        let pushable = &mut self.cpus[cpu].rt.pushable;
        if pushable.remove(task) && pushable.is_empty() {
            let symbol = Symbol::DequeuePushableTask;
            let counter = self.rt_domain().overload.clear(cpu);
            self.line(symbol, Field::RtoCount(counter as u16), Access::Store);
            self.write_mask(cpu, symbol, false);
        }
    }

    fn write_mask(&mut self, cpu: usize, symbol: Symbol, is: bool) {
        let bit = 1 << (cpu % 64);
        let word = &mut self.rt_domain_mut().mask[cpu / 64];
        if is {
            *word |= bit;
        } else {
            *word &= !bit;
        }
        self.line(symbol, Field::RtoMaskPointer, Access::Load);
        self.line(symbol, Field::RtoMask, Access::Store);
    }

    /// Returns whether a CPU other than `cpu` may be overloaded, as `cpu` reads the counters.
    pub(crate) fn others_overloaded(&mut self, cpu: usize) -> bool {
        let symbol = Symbol::PullRtTask;
        let domain = self.rt_domain();
        let (reading, home) = (domain.overload.read(cpu), domain.overload.home(cpu));
        let counters = domain.overload.counters();
        self.effects.push(Effect::Looked(cpu, reading.loads));
        for step in 0..reading.loads as usize {
            let counter = (home + step) % counters;
            self.line(symbol, Field::RtoCount(counter as u16), Access::Load);
        }
        if reading.level == OverloadLevel::None {
            return false;
        }
        // A CPU that has others push looks at the mask only to find whether it is the one.
        if reading.level == OverloadLevel::One || !self.rules.asks_to_push() {
            self.line(symbol, Field::RtoMaskPointer, Access::Load);
            self.line(symbol, Field::RtoMask, Access::Load);
        }
        let own = self.rt_domain().mask[cpu / 64] >> (cpu % 64) & 1 != 0;
        !(reading.level == OverloadLevel::One && own)
    }

    /// Returns the first overloaded CPU whose number is `from` or more.
    pub(super) fn next_overloaded(&self, from: usize) -> Option<usize> {
        first_of(&self.rt_domain().mask, from)
    }

    /// Checks P10: at any moment between two events the counters add up to the CPUs in the mask,
    /// which are those with a pushable task, and none is below zero. Also checks that cpupri agrees
    /// with the queues.
    pub(super) fn check_rt_domain(&self) -> Result<(), Violation> {
        let domain = self.rt_domain();
        let mut overloaded = 0;
        for (cpu, c) in self.cpus.iter().enumerate() {
            let marked = domain.mask[cpu / 64] >> (cpu % 64) & 1 != 0;
            let is = !c.rt.pushable.is_empty();
            overloaded += i32::from(is);
            hold!(
                marked == is && domain.overload.is_set(cpu) == is,
                "cpu {cpu}: overloaded {is}, marked {marked}"
            );
            let (level, highest) = (domain.cpupri.level(cpu), c.rt.runnable.highest());
            hold!(level == highest, "cpu {cpu}: cpupri says {level}, not {highest}");
        }
        let counts = domain.overload.counts();
        hold!(
            counts.iter().all(|&count| count >= 0) && counts.iter().sum::<i32>() == overloaded,
            "{overloaded} CPUs overloaded, counted {counts:?}"
        );
        Ok(())
    }
}

/// Returns the first CPU of `mask` whose number is `from` or more.
pub(super) fn first_of(mask: &[u64], from: usize) -> Option<usize> {
    let mut at = from / 64;
    let mut word = mask.get(at)? & (!0 << (from % 64));
    while word == 0 {
        at += 1;
        word = *mask.get(at)?;
    }
    Some(at * 64 + word.trailing_zeros() as usize)
}
