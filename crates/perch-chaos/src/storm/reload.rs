// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler is killed and started, stopped and started, told to read its file again, and started
//! while it is there.

use std::time::Duration;

use perch_engine::Random;

use super::{Blow, pause};
use crate::field::Field;
use crate::plan::Storm;

pub(super) struct Reload;

impl Blow for Reload {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        let kind = random.below(6);
        let balance_ms = 3 + random.below(3);
        let mut loader = field.loader();
        match kind {
            0..=1 => {
                loader.stop(libc::SIGKILL)?;
                loader.start()?;
            }
            2 => {
                loader.stop(libc::SIGINT)?;
                loader.start()?;
            }
            // While a CPU goes or comes the place may be free for a moment.
            3 if !field.has(Storm::Hotplug) => loader.second()?,
            _ => loader.reload(balance_ms)?,
        }
        drop(loader);
        Ok(pause(random, 10, 1500))
    }
}
