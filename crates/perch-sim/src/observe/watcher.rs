// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of the scheduler's events that tells a [`Watch`] what happens. It tells of a wake-up
//! when the scheduler decides it. After each event it compares the tasks that CPUs run with those
//! that they ran before, so that the code that every run executes knows nothing of it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use perch_sched::observe::{Observed, Observer};
use perch_sched::{Life, Sched, Waker};

use super::watch::{Left, Switched, Watch, Woken};
use crate::id::TaskId;

type Shared<'a> = Rc<RefCell<&'a mut dyn Watch>>;

/// The watch, and the state that it was told last.
pub struct Watcher<'a> {
    to: Shared<'a>,
    /// The task that each CPU runs.
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

    /// The observer of those events that the watch hears of at once.
    pub fn observer(&self) -> Box<dyn Observer + 'a> {
        Box::new(Teller(self.to.clone()))
    }

    /// The simulation has handled an event: says which CPUs turned to other tasks, and which LLCs
    /// have more tasks or fewer.
    ///
    /// # Errors
    /// When the watch cannot keep what it hears.
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

/// Tells the watch what happens while the simulation handles an event.
struct Teller<'a>(Shared<'a>);

impl Observer for Teller<'_> {
    fn see(&mut self, now_ns: u64, what: &Observed<'_>) -> io::Result<()> {
        let woken = |task: TaskId, waker, this_cpu, prev_cpu, cpu, reason| Woken {
            at_ns: now_ns,
            task: task.0,
            waker: waker_of(waker, task),
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
            Observed::Stayed { task, waker, this_cpu, cpu, reason } => {
                to.woken(&woken(task, waker, this_cpu, cpu, cpu, reason))
            }
            Observed::RtWoken { task, waker, this_cpu, prev_cpu, cpu, .. } => {
                to.woken(&woken(task, waker, this_cpu, prev_cpu, cpu, "real-time"))
            }
            _ => Ok(()),
        }
    }
}

/// The task that woke another one. A task that calls exec has no waker.
fn waker_of(waker: Waker, task: TaskId) -> Option<u32> {
    match waker {
        Waker::Task(waker) => (waker != task).then_some(waker.0),
        Waker::Idle => None,
    }
}
