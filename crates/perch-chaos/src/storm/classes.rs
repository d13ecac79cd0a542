// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks change policy and niceness. Of those that never sleep none is a real-time task for long: the
//! others would have only the share that the kernel keeps for them.

use std::time::Duration;

use perch_engine::Random;

use super::{Blow, pause, release};
use crate::calls::{self, Class};
use crate::field::Field;
use crate::plan::Storm;

pub(super) struct Classes {
    /// Tasks may be of SCHED_DEADLINE.
    deadlines: bool,
}

impl Classes {
    pub(super) fn new(field: &Field) -> Classes {
        Classes { deadlines: !field.has(Storm::Hotplug) || !panics() }
    }
}

/// True if this kernel panics when a CPU goes soon after a task there left SCHED_DEADLINE
/// (docs/live/operator.md). 7.2 does, under its own scheduler too.
fn panics() -> bool {
    release().starts_with(&[7, 2])
}

impl Blow for Classes {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        let victim = field.victim(random);
        let nice = random.below(40) as i32 - 20;
        let priority = 1 + random.below(5) as u32;
        let class = match random.below(9) {
            0..=2 => Class::Other { nice },
            3 => Class::Batch { nice },
            4 => Class::Idle,
            5 => Class::Ext { nice },
            6 => Class::Fifo { priority },
            7 => Class::RoundRobin { priority },
            _ if !self.deadlines => Class::Other { nice },
            _ => Class::Deadline {
                runtime_us: 500 + random.below(1500),
                period_us: 10_000 + random.below(50_000),
            },
        };
        // A deadline task must be allowed all CPUs, and there is room for so many.
        let _ = calls::set_class(victim.pid, class);
        let real_time = matches!(class, Class::Fifo { .. } | Class::RoundRobin { .. });
        if real_time && victim.name == c"hog" {
            std::thread::sleep(pause(random, 1, 50));
            let _ = calls::set_class(victim.pid, Class::Other { nice: 0 });
        }
        Ok(pause(random, 0, 20))
    }

    fn settle(&mut self, field: &Field) -> Result<(), String> {
        for victim in field.victims() {
            calls::set_class(victim.pid, Class::Other { nice: 0 })
                .map_err(|error| format!("{} does not go back: {error}", victim.title()))?;
        }
        Ok(())
    }
}
