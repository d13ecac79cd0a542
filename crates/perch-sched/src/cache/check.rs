// SPDX-License-Identifier: GPL-2.0-or-later
//! The check of the cache mechanism's books against the state of the scheduler.

use std::collections::BTreeMap;

use perch_policy::Mode;

use crate::class::Task;
use crate::core::{Life, Sched};
use crate::id::TaskId;
use crate::{Violation, hold};

impl Sched<'_> {
    /// Checks that a process has as many threads, alive and running, as the tasks show; that an LLC
    /// has as many tasks and as much utilisation, where the mode keeps these; and that preferences
    /// are counted where tasks are queued.
    pub(crate) fn check_caches(&self) -> Result<(), Violation> {
        let mode = self.caches.mode;
        if mode == Mode::Off {
            let told = self.rq.tasks().any(|(_, t)| t.state.process().is_some());
            hold!(!told, "a task has a process with the mechanism off");
            return Ok(());
        }
        self.check_threads()?;
        match mode {
            Mode::Perch => self.check_loads(),
            Mode::Upstream => self.check_wishes(),
            _ => Ok(()),
        }
    }

    fn check_threads(&self) -> Result<(), Violation> {
        let mut processes = BTreeMap::new();
        for (_, t) in self.rq.tasks() {
            let Some(process) = t.state.process() else {
                continue;
            };
            let (threads, running): &mut (u32, u32) = processes.entry(process).or_default();
            *threads += u32::from(!matches!(t.life(), Life::Unborn | Life::Dead));
            *running += u32::from(t.life() == Life::Running);
        }
        for (process, walked) in processes {
            let kept = self.host.nr_threads(process);
            hold!(
                kept == walked,
                "{process:?} has {kept:?} threads, alive and running, not {walked:?}"
            );
        }
        Ok(())
    }

    /// Checks the loads of the LLCs: a task counts from the choice of its CPU until it sleeps.
    fn check_loads(&self) -> Result<(), Violation> {
        let topology = self.host.topology();
        for llc in 0..topology.nr_llcs() {
            let here = |(_, t): &(TaskId, &Task)| {
                let awake = matches!(t.life(), Life::Waking | Life::Queued | Life::Running);
                awake && self.llc(t.cpu()) == Some(llc)
            };
            let nr = self.rq.tasks().filter(here).count() as u32;
            let cpus = topology.llc_span(llc).iter();
            let util = cpus.map(|c| self.host.cpu(c).util).sum::<u32>();
            let load = self.host.llc_load(llc);
            hold!(
                (load.nr, load.util) == (nr, util),
                "LLC {llc} has {} tasks and {} utilisation, not {nr} and {util}",
                load.nr,
                load.util
            );
        }
        Ok(())
    }

    fn check_wishes(&self) -> Result<(), Violation> {
        let llcs = self.host.topology().nr_llcs();
        let mut walked = vec![0; self.nr_cpus() * llcs];
        let mut away = vec![0; llcs];
        for (id, t) in self.rq.tasks() {
            if !self.rq.on_queue(id) {
                continue;
            }
            if let Some(llc) = t.cache.wants {
                walked[t.cpu() * llcs + llc] += 1;
                let home = self.llc(t.cpu()) == Some(llc);
                away[llc] += u32::from(!home);
            }
        }
        for llc in 0..llcs {
            let kept = self.caches.away(llc);
            hold!(kept == away[llc], "{kept} of {} tasks away from LLC {llc}", away[llc]);
            for cpu in 0..self.nr_cpus() {
                let (kept, walked) = (self.caches.wanting(cpu, llc), walked[cpu * llcs + llc]);
                hold!(kept == walked, "{kept} of {walked} tasks on cpu {cpu} prefer LLC {llc}");
            }
        }
        Ok(())
    }
}
