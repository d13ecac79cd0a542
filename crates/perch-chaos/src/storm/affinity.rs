// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks are allowed other CPUs: one, some, all.

use std::time::Duration;

use perch_engine::Random;

use super::{Blow, pause};
use crate::calls;
use crate::field::Field;

pub(super) struct Affinity;

impl Blow for Affinity {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        let cpus = field.some_cpus(random);
        // A CPU may be offline, and the task's group may not have it.
        let _ = calls::set_affinity(field.victim(random).pid, &cpus);
        Ok(pause(random, 0, 10))
    }

    fn settle(&mut self, field: &Field) -> Result<(), String> {
        let all: Vec<usize> = (0..field.cpus()).collect();
        for victim in field.victims() {
            calls::set_affinity(victim.pid, &all)
                .map_err(|error| format!("{} gets no CPUs: {error}", victim.title()))?;
        }
        Ok(())
    }
}
