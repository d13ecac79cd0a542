// SPDX-License-Identifier: GPL-2.0-or-later
//! Telling a [`Watch`] what happens. Wake-ups are told where they are decided; what CPUs run is
//! compared after each event with what they ran before it, so that the paths that every run takes
//! know nothing of it.

use perch_policy::Verdict;

use super::Kernel;
use super::task::Life;
use super::wake::Waker;
use crate::watch::{Asked, Left, Switched, Watch, Woken};

/// Who looks on, and what was told last.
pub(super) struct Watcher<'a> {
    to: &'a mut dyn Watch,
    /// What each CPU runs.
    runs: Vec<Option<u32>>,
    /// Each LLC's runnable tasks.
    loads: Vec<u32>,
    /// Working memory.
    scratch: Vec<u32>,
}

impl Watcher<'_> {
    /// The policy is about to be asked.
    pub(super) fn asked(&mut self, asked: &Asked) -> std::io::Result<()> {
        self.to.asked(asked)
    }
}

impl<'a> Kernel<'a> {
    /// Tells `to` what happens from now on, step by step.
    pub fn watch(&mut self, to: &'a mut dyn Watch) {
        self.stepwise = true;
        self.watcher = Some(Box::new(Watcher {
            to,
            runs: vec![None; self.cpus.len()],
            loads: vec![0; self.host.topology().nr_llcs()],
            scratch: Vec::new(),
        }));
    }

    /// An event was handled.
    pub(super) fn tell(&mut self) {
        let Some(mut watcher) = self.watcher.take() else {
            return;
        };
        if let Err(error) = self.tell_all(&mut watcher) {
            self.trace_error.get_or_insert(error);
        }
        self.watcher = Some(watcher);
    }

    fn tell_all(&self, watcher: &mut Watcher) -> std::io::Result<()> {
        let at_ns = self.now;
        let loads = &mut watcher.scratch;
        loads.clear();
        loads.resize(watcher.loads.len(), 0);
        for (cpu, c) in self.cpus.iter().enumerate() {
            if let Some(llc) = c.llc {
                loads[llc] += self.nr(cpu);
            }
            let was = std::mem::replace(&mut watcher.runs[cpu], c.current);
            if was != c.current {
                let from = was.map(|task| (task, self.left(task)));
                let to = c.current;
                watcher.to.switched(&Switched {
                    at_ns,
                    cpu,
                    from,
                    to,
                })?;
            }
        }
        for (llc, (was, is)) in watcher.loads.iter_mut().zip(&watcher.scratch).enumerate() {
            if std::mem::replace(was, *is) != *is {
                watcher.to.loaded(at_ns, llc, *is)?;
            }
        }
        Ok(())
    }

    fn left(&self, task: u32) -> Left {
        match self.tasks[task as usize].life {
            Life::Queued | Life::Running | Life::Waking => Left::Runnable,
            Life::Dead => Left::Dead,
            Life::Asleep | Life::Unborn => Left::Asleep,
        }
    }

    /// The policy has placed a task.
    pub(super) fn tell_verdict(&mut self, task: u32, waker: Waker, this_cpu: usize, v: &Verdict) {
        if self.watcher.is_none() {
            return;
        }
        let is_new = self.tasks[task as usize].life == Life::Unborn;
        let (cpu, reason, examined) = (v.cpu, v.reason.name(), v.examined);
        self.tell_woken(task, waker, this_cpu, (cpu, reason), examined, is_new);
    }

    /// A task was woken that another rule than the policy has placed.
    pub(super) fn tell_placed(
        &mut self,
        task: u32,
        waker: Waker,
        this_cpu: usize,
        cpu: usize,
        reason: &'static str,
    ) {
        if self.watcher.is_none() {
            return;
        }
        self.tell_woken(task, waker, this_cpu, (cpu, reason), 0, false);
    }

    fn tell_woken(
        &mut self,
        task: u32,
        waker: Waker,
        this_cpu: usize,
        (cpu, reason): (usize, &'static str),
        examined: u32,
        is_new: bool,
    ) {
        let Some(watcher) = self.watcher.as_mut() else {
            return;
        };
        let told = watcher.to.woken(&Woken {
            at_ns: self.now,
            task,
            waker: who(waker, task),
            this_cpu,
            prev_cpu: self.tasks[task as usize].cpu as usize,
            cpu,
            reason,
            examined,
            is_new,
        });
        if let Err(error) = told {
            self.trace_error.get_or_insert(error);
        }
    }

    /// The run is over.
    pub fn tell_end(&mut self) -> std::io::Result<()> {
        let at_ns = self.now;
        let watcher = self.watcher.as_mut();
        watcher.map_or(Ok(()), |watcher| watcher.to.ended(at_ns))
    }
}

/// A task that calls exec is nobody's wakee.
fn who(waker: Waker, task: u32) -> Option<u32> {
    match waker {
        Waker::Task(waker) => (waker != task).then_some(waker),
        Waker::Idle => None,
    }
}
