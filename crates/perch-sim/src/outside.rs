// SPDX-License-Identifier: GPL-2.0-or-later
//! Schedulers from outside of the simulated kernel.

use std::fmt;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::Topology;
use perch_sched::ExtClass;

/// A function that makes a scheduler anew for a run.
type Make = dyn Fn(&Machine, &Arc<Topology>) -> Result<Box<dyn ExtClass>, String> + Send + Sync;

/// A scheduler that a run loads in place of the kernel's fair class.
#[derive(Clone)]
pub struct Outside {
    words: String,
    image: Arc<[u8]>,
    make: Arc<Make>,
}

impl Outside {
    /// Returns the scheduler that `make` makes for each run. `image` tells it from others: two
    /// schedulers with the same image decide alike.
    pub fn new(
        words: String,
        image: impl Into<Arc<[u8]>>,
        make: impl Fn(&Machine, &Arc<Topology>) -> Result<Box<dyn ExtClass>, String>
        + Send
        + Sync
        + 'static,
    ) -> Outside {
        Outside { words, image: image.into(), make: Arc::new(make) }
    }

    /// Returns the scheduler in the words of whoever asked for it.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Returns what tells the scheduler from others.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Makes it for a run on this machine.
    ///
    /// # Errors
    /// The reason for which it cannot be loaded there.
    pub fn make(
        &self,
        machine: &Machine,
        topology: &Arc<Topology>,
    ) -> Result<Box<dyn ExtClass>, String> {
        (self.make)(machine, topology)
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl PartialEq for Outside {
    fn eq(&self, other: &Outside) -> bool {
        self.words == other.words && self.image == other.image
    }
}

impl Eq for Outside {}
