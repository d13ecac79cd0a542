// SPDX-License-Identifier: GPL-2.0-or-later
//! Groups come and go, tasks move between them, and their weights and CPUs change.

use std::time::Duration;

use perch_engine::Random;

use super::tree::{self, set};
use super::{Blow, pause};
use crate::field::Field;

pub(super) struct Groups;

impl Blow for Groups {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        let group = tree::place(random);
        match random.below(10) {
            0..=1 => tree::make(&group),
            2 => tree::remove(&group),
            3..=6 => {
                let victim = field.victim(random);
                if !tree::enter(&group, victim.pid) {
                    // It is not there, or has groups below.
                    let _ = tree::leave(victim.pid);
                }
            }
            7 => {
                let weight = [1, 10, 100, 1000, 10_000][random.below(5) as usize];
                set(&group, "cpu.weight", &format!("{weight}"));
            }
            8 => {
                let idle = random.below(2);
                set(&group, "cpu.idle", &format!("{idle}"));
            }
            _ => {
                let cpus = field.some_cpus(random);
                let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
                set(&group, "cpuset.cpus", &cpus.join(","));
            }
        }
        Ok(pause(random, 0, 20))
    }
}
