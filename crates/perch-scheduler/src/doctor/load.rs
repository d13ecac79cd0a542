// SPDX-License-Identifier: GPL-2.0-or-later
//! Plans what `perch run` would load, and loads nothing.

use std::path::Path;

use perch_machine::{CapacitySource, Machine, MachineError};
use perch_policy::Modes;

use crate::intent::Intent;
use crate::kernel::Kernel;
use crate::site::Site;
use crate::tree::Tree;
use perch_plan::Abilities;
use perch_plan::settings::{Chosen, Settings, SettingsError};

/// What `perch run` would load on a machine.
#[derive(Debug)]
pub struct Load {
    /// The machine: every CPU that is online.
    pub machine: Machine,
    /// Where its capacities come from.
    pub capacity_source: CapacitySource,
    /// What to know of that source, as in [`perch_machine::Host::capacity_notes`].
    pub capacity_notes: Vec<String>,
    /// Where CPUs rank as preferred cores, as in [`perch_machine::Host::ranking_note`].
    pub ranking_note: Option<String>,
    /// The mechanisms' modes.
    pub modes: Modes,
    /// Each mechanism's mode and the reason for it.
    pub choices: Vec<Chosen>,
    /// What `perch run` would say of settings.
    pub notes: Vec<String>,
    /// Bytes of the arena that perch would fill.
    pub memory: Result<u64, SettingsError>,
    /// Callbacks that the kernel would not be told of.
    pub left_out: Vec<&'static str>,
}

/// Plans for the machine below `root`.
///
/// # Errors
/// When the machine cannot be told from its /sys, as in [`perch_machine::detect()`].
pub(super) fn look(
    root: &Path,
    kernel: &Kernel,
    settings: &Settings,
    abilities: Abilities,
) -> Result<Load, MachineError> {
    let mut site = Site::look(root)?;
    let split = site.split_llcs(settings.split_llc());
    let intent = Intent::new(kernel, &site, settings);
    let choices = settings.choices(&intent.topology).collect();
    let plan = split.map_err(SettingsError::Split).and_then(|()| intent.plan(&Tree::new(root)));
    let left_out = plan.as_ref().map(|plan| plan.left_out(abilities));
    let Intent { modes, notes, .. } = intent;
    Ok(Load {
        modes,
        choices,
        notes,
        left_out: left_out.unwrap_or_default(),
        memory: plan.map(|plan| plan.image().len() as u64),
        machine: site.whole,
        capacity_source: site.capacity_source,
        capacity_notes: site.capacity_notes,
        ranking_note: site.ranking_note,
    })
}
