// SPDX-License-Identifier: GPL-2.0-or-later
//! What settings mean on a machine, before a program is planned.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Modes, Topology};

use crate::fits::number_of;
use crate::kernel::Kernel;
use crate::site::Site;
use crate::tree::Tree;
use perch_plan::Plan;
use perch_plan::settings::{Settings, SettingsError};

/// What is to be loaded on a machine.
pub(crate) struct Intent<'a> {
    machine: &'a Machine,
    settings: &'a Settings,
    pub topology: Arc<Topology>,
    /// CPUs that may come online, those of the machine at least.
    possible: usize,
    pub modes: Modes,
    /// What the settings ask for and do not get, or may not mean.
    pub notes: Vec<String>,
}

impl<'a> Intent<'a> {
    pub fn new(kernel: &Kernel, site: &'a Site, settings: &'a Settings) -> Intent<'a> {
        let topology = site.topology();
        let (modes, mut notes) = settings.modes_for(&topology);
        notes.extend(settings.without_effect(&topology, modes));
        notes.extend(settings.open_bands());
        let possible = kernel.possible().unwrap_or(0).max(topology.nr_cpus());
        Intent { machine: &site.machine, settings, topology, possible, modes, notes }
    }

    /// Lays the program's memory out, with the users of the system below `tree`.
    ///
    /// # Errors
    /// [`SettingsError::Memory`] when a table would take more than it may, [`SettingsError::Rule`] when a
    /// rule's user is unknown.
    pub fn plan(&self, tree: &Tree) -> Result<Plan, SettingsError> {
        Plan::new(
            self.machine,
            &self.topology,
            self.possible,
            self.modes,
            &self.settings.with_users(|user| number_of(tree, user))?,
        )
    }
}
