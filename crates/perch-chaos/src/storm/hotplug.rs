// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs go offline and come back. The first stays: many machines cannot take it off.

use std::fs;
use std::time::Duration;

use perch_engine::Random;

use super::{Blow, pause};
use crate::field::Field;

pub(super) struct Hotplug;

fn file(cpu: usize) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/online")
}

/// Turns a CPU on or off; the kernel may refuse to, for a deadline task above all.
fn turn(cpu: usize, on: bool) -> bool {
    fs::write(file(cpu), if on { "1" } else { "0" }).is_ok()
}

impl Blow for Hotplug {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        if field.cpus() < 2 {
            return Ok(pause(random, 100, 200));
        }
        let cpu = 1 + random.below(field.cpus() as u64 - 1) as usize;
        let is_on = fs::read_to_string(file(cpu)).is_ok_and(|text| text.trim() == "1");
        turn(cpu, !is_on);
        // Often the scheduler has loaded again before the next CPU goes, and often it has not.
        let most = [50, 500, 2000][random.below(3) as usize];
        Ok(pause(random, 1, most))
    }

    fn settle(&mut self, field: &Field) -> Result<(), String> {
        for cpu in 1..field.cpus() {
            if !turn(cpu, true) {
                return Err(format!("CPU {cpu} does not come back"));
            }
        }
        Ok(())
    }
}
