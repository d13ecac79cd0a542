// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks are born and end: processes that fork, threads, programs.

use std::process::{Command, Stdio};
use std::time::Duration;

use perch_engine::Random;

use super::{Blow, END_NS, pause};
use crate::calls;
use crate::field::Field;
use crate::tasks::Work;

#[derive(Default)]
pub(super) struct Forks {
    parents: Vec<i32>,
}

impl Forks {
    /// The number of parents at the same time.
    const MOST: usize = 16;
}

impl Blow for Forks {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        self.parents.retain(|parent| !calls::reap(*parent));
        match random.below(4) {
            0 => {
                let mut command = Command::new("/bin/busybox");
                command.arg("true").stdin(Stdio::null());
                let status = command.stdout(Stdio::null()).status();
                if !status.is_ok_and(|status| status.success()) {
                    return Err("a program cannot be run".to_string());
                }
            }
            1 => std::thread::scope(|scope| {
                for _ in 0..1 + random.below(8) {
                    let us = random.below(2000);
                    scope.spawn(move || calls::spin_us(us));
                }
            }),
            _ if self.parents.len() < Self::MOST => {
                let work = Work::Parent { children: random.below(12), run_us: random.below(5000) };
                let parent = field.pulses().fork(c"parent", work);
                let parent = parent.map_err(|error| format!("no task can be forked: {error}"))?;
                self.parents.push(parent.pid);
            }
            _ => {}
        }
        Ok(pause(random, 0, 20))
    }

    fn settle(&mut self, _field: &Field) -> Result<(), String> {
        calls::reap_all(&mut self.parents, END_NS);
        match self.parents.len() {
            0 => Ok(()),
            left => Err(format!("{left} tasks do not end")),
        }
    }
}
