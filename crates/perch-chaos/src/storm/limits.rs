// SPDX-License-Identifier: GPL-2.0-or-later
//! `cpu.max` of groups changes, from a thousandth of a CPU to none at all.

use std::time::Duration;

use perch_engine::Random;

use super::tree::{self, set};
use super::{Blow, pause};
use crate::field::Field;

pub(super) struct Limits;

impl Blow for Limits {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        let group = tree::place(random);
        if random.below(4) == 0 {
            tree::make(&group);
            tree::enter(&group, field.victim(random).pid);
        }
        let period = [1000, 10_000, 100_000, 1_000_000][random.below(4) as usize];
        let value = match random.below(5) {
            0 => "max".to_string(),
            1 => format!("1000 {period}"),
            _ => format!("{} {period}", 1000 + random.below(3 * period)),
        };
        set(&group, "cpu.max", &value);
        if random.below(3) == 0 {
            let burst = random.below(20_000);
            set(&group, "cpu.max.burst", &burst.to_string());
        }
        Ok(pause(random, 0, 50))
    }
}
