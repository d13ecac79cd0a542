// SPDX-License-Identifier: GPL-2.0-or-later
//! The storms. Each does one thing after another until the round tells it to end, and then undoes
//! what lasts.

mod affinity;
mod classes;
mod forks;
mod freezes;
mod groups;
mod hotplug;
mod limits;
mod memory;
mod reload;
pub(crate) mod tree;

use std::fs;
use std::time::Duration;

use perch_engine::Random;
use perch_lab::kernel::numbers;

use crate::calls::{self, Class};
use crate::field::Field;
use crate::plan::Storm;

/// The time that a storm's own tasks may take to end.
const END_NS: u64 = 30_000_000_000;

/// What a storm does.
trait Blow {
    /// Does one thing, and returns how long to wait before the next. A kernel that refuses it (the
    /// task is gone, the group in use) is no fault.
    ///
    /// # Errors
    /// In words, what must not happen.
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String>;

    /// Undoes what lasts.
    ///
    /// # Errors
    /// As `blow`.
    fn settle(&mut self, _field: &Field) -> Result<(), String> {
        Ok(())
    }
}

/// A time from `least` to `most` ms.
fn pause(random: &mut Random, least: u64, most: u64) -> Duration {
    Duration::from_micros(1000 * least + random.below(1000 * (most - least) + 1))
}

/// The numbers of this kernel's release: 7, 2 and so on.
fn release() -> Vec<u32> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    numbers(&release)
}

/// Has a storm blow until the field is over, on a real-time thread, and returns the number of things
/// that it did.
pub(crate) fn run(storm: Storm, seed: u64, field: &Field) -> u64 {
    // Below the thread that controls the round.
    if let Err(error) = calls::set_class(0, Class::Fifo { priority: 10 }) {
        field.fault(format!("{} cannot be a real-time task: {error}", storm.name()));
        return 0;
    }
    let mut random = Random::new(seed, 1 + storm as u64);
    let mut blows: Box<dyn Blow> = match storm {
        Storm::Hotplug => Box::new(hotplug::Hotplug),
        Storm::Affinity => Box::new(affinity::Affinity),
        Storm::Groups => Box::new(groups::Groups),
        Storm::Limits => Box::new(limits::Limits),
        Storm::Classes => Box::new(classes::Classes::new(field)),
        Storm::Forks => Box::new(forks::Forks::default()),
        Storm::Freezes => Box::new(freezes::Freezes),
        Storm::Memory => Box::new(memory::Memory::default()),
        Storm::Reload => Box::new(reload::Reload::new(field)),
    };
    let mut done = 0;
    while !field.is_over() {
        match blows.blow(field, &mut random) {
            Ok(pause) => std::thread::sleep(pause),
            Err(fault) => {
                field.fault(format!("{}: {fault}", storm.name()));
                break;
            }
        }
        done += 1;
    }
    if let Err(fault) = blows.settle(field) {
        field.fault(format!("{}, at its end: {fault}", storm.name()));
    }
    done
}
