// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks of a group use up its memory, and the kernel kills them.

use std::time::Duration;

use perch_engine::Random;

use super::tree::{self, set};
use super::{Blow, END_NS, pause};
use crate::calls;
use crate::field::Field;
use crate::tasks::Work;

#[derive(Default)]
pub(super) struct Memory {
    takers: Vec<i32>,
}

const GROUP: &str = "/sys/fs/cgroup/chaos/memory";
/// Tasks at the same time, the memory that each takes, and that of the group, MiB.
const TAKERS: usize = 4;
const EACH: usize = 6;
const ALL: usize = 16;

impl Blow for Memory {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        let group = GROUP.as_ref();
        self.takers.retain(|taker| !calls::reap(*taker));
        if self.takers.len() < TAKERS {
            tree::make(group);
            set(group, "memory.max", &format!("{ALL}M"));
            let mib = EACH + random.below(4) as usize;
            let taker = field.pulses().fork(c"taker", Work::Memory { mib });
            let taker = taker.map_err(|error| format!("no task can be forked: {error}"))?;
            tree::enter(group, taker.pid);
            self.takers.push(taker.pid);
        } else if random.below(4) == 0 {
            let high = 4 + random.below(ALL as u64);
            set(group, "memory.high", &format!("{high}M"));
        }
        Ok(pause(random, 1, 100))
    }

    fn settle(&mut self, _field: &Field) -> Result<(), String> {
        set(GROUP.as_ref(), "memory.high", "max");
        for taker in &self.takers {
            calls::signal(*taker, libc::SIGKILL);
        }
        calls::reap_all(&mut self.takers, END_NS);
        match self.takers.len() {
            0 => Ok(()),
            left => Err(format!("{left} killed tasks do not end")),
        }
    }
}
