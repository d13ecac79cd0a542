// SPDX-License-Identifier: GPL-2.0-or-later
//! Groups are frozen, and tasks stopped.

use std::time::Duration;

use perch_engine::Random;

use super::tree::{Tree, set};
use super::{Blow, pause};
use crate::calls;
use crate::field::Field;

#[derive(Default)]
pub(super) struct Freezes(Tree);

impl Blow for Freezes {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        let victim = field.victim(random);
        match random.below(6) {
            0 => calls::signal(victim.pid, libc::SIGSTOP),
            1..=2 => calls::signal(victim.pid, libc::SIGCONT),
            kind => {
                let group = self.0.place(random);
                if random.below(4) == 0 {
                    self.0.make(&group);
                    self.0.enter(&group, victim.pid);
                }
                set(&group, "cgroup.freeze", if kind == 3 { "1" } else { "0" });
            }
        }
        Ok(pause(random, 0, 30))
    }

    fn settle(&mut self, field: &Field) -> Result<(), String> {
        self.0.each(&mut |group| {
            set(group, "cgroup.freeze", "0");
        });
        for victim in field.victims() {
            calls::signal(victim.pid, libc::SIGCONT);
        }
        Ok(())
    }
}
