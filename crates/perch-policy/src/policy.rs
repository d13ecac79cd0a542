// SPDX-License-Identifier: GPL-2.0-or-later
//! A policy: the stock kernel's wake-up path and the mechanisms in it.

use crate::era::Era;
use crate::ffi;
use crate::mode::Mode;
use crate::modes::Modes;

include!(concat!(env!("OUT_DIR"), "/mirror.rs"));

/// Modes and rules: everything that tells one policy from another.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    raw: ffi::Policy,
    modes: Modes,
    era: Era,
}

impl Policy {
    /// The stock wake-up path of `era` with each mechanism in its mode.
    pub fn new(era: Era, modes: Modes) -> Policy {
        let rules = era.rules();
        let raw = ffi::Policy {
            modes: modes.into(),
            rules: ffi::Rules {
                flip_decay_ns: rules.flip_decay_ns,
                idle_sees_policy: rules.idle_sees_policy.into(),
                empty_mask_fails_early: rules.empty_mask_fails_early.into(),
                groups_by_affinity: rules.groups_by_affinity.into(),
                wake_cap: rules.wake_cap.into(),
                early_groups: rules.early_groups.into(),
                recent_when_taken: rules.recent_when_taken.into(),
                far_imbalance_pct: rules.far_imbalance_pct,
                near_imbalance_pct: rules.near_imbalance_pct,
                early_path: rules.early_path.into(),
                pad: [0; 7],
            },
        };
        Policy { raw, modes, era }
    }

    /// The mechanisms' modes.
    pub fn modes(&self) -> Modes {
        self.modes
    }

    /// The stock kernel around them.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The policy as C knows it, for a program that has the policy compiled in.
    pub fn raw(&self) -> &ffi::Policy {
        &self.raw
    }

    /// True if the cluster mechanism is on in any mode.
    pub fn cluster_on(&self) -> bool {
        self.modes.cluster != Mode::Off
    }
}
