// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of the scheduler's events that tells a [`Watch`] what happens. Wake-ups are told where
//! they are decided; what CPUs run is compared after each event with what they ran before it, so
//! that the paths that every run takes know nothing of it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use perch_sched::observe::{Observed, Observer};
use perch_sched::{Life, Sched, Waker};

use super::watch::{Left, Switched, Watch, Woken};
use crate::id::TaskId;

type Shared<'a> = Rc<RefCell<&'a mut dyn Watch>>;

/// The watch, and what it was told last.
pub struct Watcher<'a> {
    to: Shared<'a>,
    /// What each CPU runs.
    runs: Vec<Option<TaskId>>,
    /// Each LLC's runnable tasks.
    loads: Vec<u32>,
    /// Working memory.
    scratch: Vec<u32>,
}

impl<'a> Watcher<'a> {
    /// Nothing has been told yet.
    pub fn new(to: &'a mut dyn Watch, sched: &Sched<'_>) -> Watcher<'a> {
        Watcher {
            to: Rc::new(RefCell::new(to)),
            runs: vec![None; sched.nr_cpus()],
            loads: vec![0; sched.host().topology().nr_llcs()],
            scratch: Vec::new(),
        }
    }

    /// What the scheduler has to tell at once.
    pub fn observer(&self) -> Box<dyn Observer + 'a> {
        Box::new(Teller(self.to.clone()))
    }

    /// An event was handled: tells which CPUs turned to other tasks, and which LLCs have more tasks
    /// or fewer.
    ///
    /// # Errors
    /// When the watch cannot keep what it is told.
    pub fn look(&mut self, sched: &Sched<'_>) -> io::Result<()> {
        let at_ns = sched.now_ns();
        let mut to = self.to.borrow_mut();
        let loads = &mut self.scratch;
        loads.clear();
        loads.resize(self.loads.len(), 0);
        for (cpu, runs) in self.runs.iter_mut().enumerate() {
            if let Some(llc) = sched.llc(cpu) {
                loads[llc] += sched.nr(cpu);
            }
            let now = sched.current(cpu);
            let was = std::mem::replace(runs, now);
            if was != now {
                to.switched(&Switched {
                    at_ns,
                    cpu,
                    from: was.map(|task| (task.0, left(sched.life(task)))),
                    to: now.map(|task| task.0),
                })?;
            }
        }
        for (llc, (was, is)) in self.loads.iter_mut().zip(loads).enumerate() {
            if std::mem::replace(was, *is) != *is {
                to.loaded(at_ns, llc, *is)?;
            }
        }
        Ok(())
    }

    /// The run is over.
    ///
    /// # Errors
    /// When the watch cannot keep that.
    pub fn end(&mut self, now_ns: u64) -> io::Result<()> {
        self.to.borrow_mut().ended(now_ns)
    }
}

fn left(life: Life) -> Left {
    match life {
        Life::Queued | Life::Running | Life::Waking => Left::Runnable,
        Life::Dead => Left::Dead,
        Life::Asleep | Life::Unborn => Left::Asleep,
    }
}

/// Tells what happens in between.
struct Teller<'a>(Shared<'a>);

impl Observer for Teller<'_> {
    fn see(&mut self, now_ns: u64, what: &Observed<'_>) -> io::Result<()> {
        let woken = |task: TaskId, waker, this_cpu, prev_cpu, cpu, reason| Woken {
            at_ns: now_ns,
            task: task.0,
            waker: who(waker, task),
            this_cpu,
            prev_cpu,
            cpu,
            reason,
            examined: 0,
            is_new: false,
        };
        let mut to = self.0.borrow_mut();
        match *what {
            Observed::Asked(ref asked) => to.asked(asked),
            Observed::Decided(d) => {
                let (cpu, reason) = (d.verdict.cpu, d.verdict.reason.name());
                to.woken(&Woken {
                    examined: d.verdict.examined,
                    is_new: d.is_new,
                    ..woken(d.task, d.waker, d.this_cpu, d.prev_cpu, cpu, reason)
                })
            }
            Observed::Requeued {
                task,
                waker,
                this_cpu,
                cpu,
            } => to.woken(&woken(
                task,
                waker,
                this_cpu,
                cpu,
                cpu,
                "never left its queue",
            )),
            Observed::RtWoken {
                task,
                waker,
                this_cpu,
                prev_cpu,
                cpu,
            } => to.woken(&woken(task, waker, this_cpu, prev_cpu, cpu, "real-time")),
            Observed::RtMoved(_) => Ok(()),
        }
    }
}

/// A task that calls exec is nobody's wakee.
fn who(waker: Waker, task: TaskId) -> Option<u32> {
    match waker {
        Waker::Task(waker) => (waker != task).then_some(waker.0),
        Waker::Idle => None,
    }
}
