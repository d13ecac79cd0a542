// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler is killed and started, stopped and started, told to read its file again, and started
//! while it is there.

use std::time::Duration;

use perch_engine::Random;

use super::{Blow, pause, release};
use crate::field::Field;
use crate::plan::Storm;

pub(super) struct Reload {
    /// The process may end while a CPU goes.
    may_end: bool,
}

impl Reload {
    pub(super) fn new(field: &Field) -> Reload {
        Reload { may_end: !field.has(Storm::Hotplug) || frees_maps() }
    }
}

/// True if this kernel can free the maps of a scheduler that ends while a CPU goes, as Linux can from
/// 7.0 on (perch-scheduler's `storage.rs`).
fn frees_maps() -> bool {
    release() >= vec![7]
}

impl Blow for Reload {
    fn blow(&mut self, field: &Field, random: &mut Random) -> Result<Duration, String> {
        let kind = random.below(6);
        let balance_ms = 3 + random.below(3);
        let mut loader = field.loader();
        match kind {
            0..=1 if self.may_end => {
                loader.stop(libc::SIGKILL)?;
                loader.start()?;
            }
            2 if self.may_end => {
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
