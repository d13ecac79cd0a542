// SPDX-License-Identifier: GPL-2.0-or-later
//! A wake-up that the policy is to decide, and the verdict on it.

use crate::cache::CacheStep;
use crate::ffi;
use crate::ffi::generated::{
    PERCH_WAKE_CURRENT, PERCH_WAKE_EXEC, PERCH_WAKE_FORK, PERCH_WAKE_IN_TASK, PERCH_WAKE_SYNC,
};
use crate::reason::Reason;

/// A wake-up to decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wake {
    /// The time, nanoseconds.
    pub now_ns: u64,
    /// Where the waker runs.
    pub this_cpu: usize,
    /// Where the wakee ran last.
    pub prev_cpu: usize,
    /// The waker says that it is about to sleep.
    pub sync: bool,
    /// A new task's first wake-up.
    pub fork: bool,
    /// The task calls exec.
    pub exec: bool,
    /// The caller asks for the waker's CPU.
    pub current: bool,
    /// The waker runs in task context, not in an interrupt.
    pub in_task: bool,
}

impl Wake {
    /// The causes and circumstances of the wake-up, as the bits of `PERCH_WAKE_*` (policy/include/perch/wake.h).
    pub fn flags(&self) -> u32 {
        let bit = |is: bool, flag: u32| if is { flag } else { 0 };
        bit(self.sync, PERCH_WAKE_SYNC)
            | bit(self.fork, PERCH_WAKE_FORK)
            | bit(self.exec, PERCH_WAKE_EXEC)
            | bit(self.current, PERCH_WAKE_CURRENT)
            | bit(self.in_task, PERCH_WAKE_IN_TASK)
    }

    /// The same wake-up with these bits; those that mean nothing are left out.
    pub fn with_flags(self, flags: u32) -> Wake {
        Wake {
            sync: flags & PERCH_WAKE_SYNC != 0,
            fork: flags & PERCH_WAKE_FORK != 0,
            exec: flags & PERCH_WAKE_EXEC != 0,
            current: flags & PERCH_WAKE_CURRENT != 0,
            in_task: flags & PERCH_WAKE_IN_TASK != 0,
            ..self
        }
    }

    pub(crate) fn raw(&self) -> ffi::Wake {
        ffi::Wake {
            now_ns: self.now_ns,
            this_cpu: self.this_cpu as u32,
            prev_cpu: self.prev_cpu as u32,
            flags: self.flags(),
            pad: 0,
        }
    }
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Where the wakee goes: allowed, unless no CPU is.
    pub cpu: usize,
    /// The reason for the choice.
    pub reason: Reason,
    /// CPUs whose idleness the scans looked at.
    pub examined: u32,
    /// The CPU at which wake_affine aimed.
    pub target: usize,
    /// The cache mechanism's step on the way to the choice.
    pub cache: CacheStep,
}

impl Verdict {
    /// `None` when a number stands for no CPU, reason or step: another version's answer.
    pub(crate) fn from_raw(raw: &ffi::Verdict) -> Option<Verdict> {
        Some(Verdict {
            cpu: raw.cpu as usize,
            reason: *Reason::ALL.get(raw.reason as usize)?,
            examined: raw.examined,
            target: raw.target as usize,
            cache: *CacheStep::ALL.get(raw.cache as usize)?,
        })
    }
}
