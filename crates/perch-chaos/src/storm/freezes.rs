// SPDX-License-Identifier: GPL-2.0-or-later
//! Groups are frozen, and tasks stopped.

use std::time::Duration;

use perch_engine::Random;

use super::tree::{self, set};
use super::{Blow, pause};
use crate::calls;
use crate::field::Field;

pub(super) struct Freezes;

impl Blow for Freezes {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        let victim = field.victim(random);
        match random.below(6) {
            0 => calls::signal(victim.pid, libc::SIGSTOP),
            1..=2 => calls::signal(victim.pid, libc::SIGCONT),
            kind => {
                let group = tree::place(random);
                if random.below(4) == 0 {
                    tree::make(&group);
                    tree::enter(&group, victim.pid);
                }
                set(&group, "cgroup.freeze", if kind == 3 { "1" } else { "0" });
            }
        }
        Ok(pause(random, 0, 30))
    }

    fn settle(&mut self, field: &Field) -> Result<(), String> {
        tree::each(&mut |group| {
            set(group, "cgroup.freeze", "0");
        });
        for victim in field.victims() {
            calls::signal(victim.pid, libc::SIGCONT);
        }
        Ok(())
    }
}
