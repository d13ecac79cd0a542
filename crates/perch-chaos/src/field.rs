// SPDX-License-Identifier: GPL-2.0-or-later
//! The field on which storms meet: the tasks, the scheduler, and what went wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use perch_engine::Random;

use crate::loader::Loader;
use crate::plan::{Plan, Storm};
use crate::tasks::{Pulses, Task};

/// What all storms of a round share.
pub(crate) struct Field<'a> {
    plan: &'a Plan,
    cpus: usize,
    pulses: &'a Pulses,
    victims: Vec<Task<'a>>,
    loader: Mutex<Loader>,
    over: AtomicBool,
    faults: Mutex<Vec<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Field<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        cpus: usize,
        pulses: &'a Pulses,
        victims: Vec<Task<'a>>,
        loader: Loader,
    ) -> Field<'a> {
        Field {
            plan,
            cpus,
            pulses,
            victims,
            loader: Mutex::new(loader),
            over: AtomicBool::new(false),
            faults: Mutex::default(),
        }
    }

    /// The number of CPUs, those offline included.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus
    }

    /// Where tasks are forked.
    pub(crate) fn pulses(&self) -> &'a Pulses {
        self.pulses
    }

    /// The tasks that storms may do anything to but end.
    pub(crate) fn victims(&self) -> &[Task<'a>] {
        &self.victims
    }

    pub(crate) fn victim(&self, random: &mut Random) -> &Task<'a> {
        &self.victims[random.below(self.victims.len() as u64) as usize]
    }

    /// Some CPUs, at least one: one, a few or all.
    pub(crate) fn some_cpus(&self, random: &mut Random) -> Vec<usize> {
        let one = random.below(self.cpus as u64) as usize;
        let with = random.below(4);
        let mut wanted = |cpu: &usize| *cpu == one || with == 3 || with > 0 && random.below(4) == 0;
        (0..self.cpus).filter(|cpu| wanted(cpu)).collect()
    }

    /// Does that storm blow in this round?
    pub(crate) fn has(&self, storm: Storm) -> bool {
        self.plan.storms.contains(&storm)
    }

    /// The scheduler, when nobody else is at it.
    pub(crate) fn loader(&self) -> MutexGuard<'_, Loader> {
        locked(&self.loader)
    }

    /// The scheduler, or `None` when somebody is at it.
    pub(crate) fn try_loader(&self) -> Option<MutexGuard<'_, Loader>> {
        self.loader.try_lock().ok()
    }

    /// Tells the storms to end.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Shall the storms end?
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Notes what must not have happened, once.
    pub(crate) fn fault(&self, fault: String) {
        let mut faults = locked(&self.faults);
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    /// What was noted.
    pub(crate) fn faults(&self) -> Vec<String> {
        locked(&self.faults).clone()
    }
}
