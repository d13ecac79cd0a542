// SPDX-License-Identifier: GPL-2.0-or-later
//! The weaver, which takes events in the order of time and makes each task's steps from them.
//!
//! A task's work is the time that it was on a CPU. A wake-up is a step of the waker, at the point
//! of the waker's own work where the wake-up happened, and a step of the wakee, which waits for the
//! wake-up. All steps lie in the order of the recording, where every wake-up precedes the wait for
//! it; that is why a script comes to its end on any machine.

mod finish;
mod task;

use std::collections::BTreeMap;

use perch_workload::recorded::{LONGEST_NS, MOST_STEPS, MOST_TASKS};

use crate::ImportError;
use crate::event::{Context, Event, Kind, Name, State};
use task::{Did, Life, Task, Woken};

/// The user's choices for an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The recorded CPUs' capacities, 1024 for the fastest; a CPU without one is taken to have
    /// 1024.
    pub capacities: Vec<u32>,
    /// The commands to keep, as patterns with `*`; where the list is empty, all are kept.
    pub only: Vec<String>,
    /// The commands to leave out, as patterns with `*`.
    pub without: Vec<String>,
}

/// Counts of oddities, which the weaver counts and does not take for events of the workload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Odd {
    /// Wake-ups of tasks that did not sleep.
    pub early: u64,
    /// Tasks that ran again though no event shows their waker.
    pub unseen: u64,
    /// Events that came after events of a later time.
    pub late: u64,
    /// Wake-ups by interrupts that hit a task.
    pub interrupts: u64,
    /// Wake-ups by softirqs on top of a task, which the weaver takes for the task's own.
    pub softirqs: u64,
    /// Moves to another CPU.
    pub moves: u64,
}

/// The maker of scripts from events.
#[derive(Debug)]
pub struct Weaver {
    options: Options,
    tasks: Vec<Task>,
    by_pid: BTreeMap<i32, u32>,
    /// The times of the first event, and of the last so far.
    began_ns: Option<u64>,
    ended_ns: u64,
    /// The time of each CPU's last switch.
    switched_ns: BTreeMap<u32, u64>,
    steps: u64,
    odd: Odd,
    /// The task that each CPU switched to last.
    runs_on: BTreeMap<u32, i32>,
    /// Switches, and how many of them are from a task that the CPU's last switch was not to.
    switches: [u64; 2],
    /// True where the recording has a `sched_waking`: then `sched_wakeup` adds nothing.
    wakings: bool,
    /// Wake-ups for which there is only a `sched_wakeup`.
    wakeups: u64,
    /// What the recording has and the script has not, by name.
    left: BTreeMap<String, u64>,
}

impl Weaver {
    /// Returns a weaver without any events.
    pub fn new(options: &Options) -> Weaver {
        Weaver {
            options: options.clone(),
            tasks: Vec::new(),
            by_pid: BTreeMap::new(),
            began_ns: None,
            ended_ns: 0,
            switched_ns: BTreeMap::new(),
            steps: 0,
            odd: Odd::default(),
            runs_on: BTreeMap::new(),
            switches: [0; 2],
            wakings: false,
            wakeups: 0,
            left: BTreeMap::new(),
        }
    }

    /// Counts events that came too late for the reader to sort.
    pub(crate) fn late(&mut self, count: u64) {
        self.odd.late += count;
    }

    /// Counts what the recording has and the script will not have. Beyond so many names, which a
    /// damaged file may have, the others count together.
    pub(crate) fn leave_out(&mut self, name: &str, count: u64) {
        const NAMES: usize = 500;
        if let Some(before) = self.left.get_mut(name) {
            *before += count;
            return;
        }
        let name = if self.left.len() < NAMES { name } else { "others" };
        let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
        *self.left.entry(name.chars().take(80).map(plain).collect()).or_default() += count;
    }

    /// Takes an event. Events come in the order of time; an out-of-order event takes the previous
    /// timestamp, and is counted.
    ///
    /// # Errors
    /// Returns an error for a recording of more tasks or steps than a workload may have.
    pub fn event(&mut self, event: &Event) -> Result<(), ImportError> {
        let began_ns = *self.began_ns.get_or_insert(event.at_ns);
        let at_ns = event.at_ns.saturating_sub(began_ns);
        if at_ns > LONGEST_NS {
            return Err(ImportError::Input(format!(
                "its events are {} s apart: expected an hour at most; record for a shorter time",
                at_ns / 1_000_000_000
            )));
        }
        self.odd.late += u64::from(at_ns < self.ended_ns);
        self.ended_ns = self.ended_ns.max(at_ns);
        let now = self.ended_ns;
        let cpu = event.cpu;
        match event.kind {
            Kind::Switch { prev, prev_name, prev_prio, state, next, next_prio, next_name } => {
                let before = self.runs_on.insert(cpu, next);
                self.switches[0] += 1;
                self.switches[1] += u64::from(before.is_some_and(|before| before != prev));
                if prev != 0 {
                    let task = self.task(prev)?;
                    if let Some(process) = event.process {
                        self.tasks[task as usize].process = Some(process);
                    }
                    let t = &mut self.tasks[task as usize];
                    t.prio(prev_prio);
                    t.name = prev_name;
                    self.leaves(task, cpu, state, now);
                    if state == State::Dead {
                        self.by_pid.remove(&prev);
                    }
                }
                if next != 0 {
                    let task = self.task(next)?;
                    let t = &mut self.tasks[task as usize];
                    t.prio(next_prio);
                    t.name = next_name;
                    self.runs(task, cpu, now);
                }
                self.switched_ns.insert(cpu, now);
            }
            Kind::Waking { pid, name } => {
                self.wakings = true;
                self.wakes(event, pid, name, now)?;
            }
            Kind::Wakeup { pid, name } if !self.wakings => {
                self.wakeups += 1;
                self.wakes(event, pid, name, now)?;
            }
            Kind::Wakeup { .. } => {}
            Kind::Fork { child, name } => self.forks(event, child, name, now)?,
            Kind::WakeupNew { pid, name } => {
                let known = self.by_pid.get(&pid).map(|&task| self.tasks[task as usize].life);
                match known {
                    Some(Life::New) => {}
                    // The recording has no fork of this task, only this event.
                    _ => self.forks(event, pid, name, now)?,
                }
                if let Some(&task) = self.by_pid.get(&pid) {
                    self.tasks[task as usize].life = Life::Ready;
                }
            }
            Kind::Exec => {
                if let Some(task) = self.actor(event, now)? {
                    self.did(task, Did::Exec);
                }
            }
            Kind::Migrate => self.odd.moves += 1,
        }
        if self.steps > MOST_STEPS {
            return Err(ImportError::Input(format!(
                "more than {MOST_STEPS} steps: record for a shorter time, or fewer tasks"
            )));
        }
        Ok(())
    }

    /// Returns the task of a process number, and adds the task where it is new.
    fn task(&mut self, pid: i32) -> Result<u32, ImportError> {
        match self.by_pid.get(&pid) {
            Some(&task) => Ok(task),
            None => self.add(pid, Life::Unseen, None),
        }
    }

    fn add(&mut self, pid: i32, life: Life, parent: Option<u32>) -> Result<u32, ImportError> {
        // The limit is the number that a file may have, and half as many again that may be left
        // out.
        if self.tasks.len() >= MOST_TASKS + MOST_TASKS / 2 {
            return Err(ImportError::Input(format!(
                "more than {MOST_TASKS} tasks: record for a shorter time"
            )));
        }
        let task = self.tasks.len() as u32;
        self.tasks.push(Task::new(life, parent, self.ended_ns));
        self.by_pid.insert(pid, task);
        Ok(task)
    }

    fn did(&mut self, task: u32, did: Did) {
        self.steps += self.tasks[task as usize].push(did);
    }

    /// Returns the work at full capacity that corresponds to a time on a CPU.
    fn work_ns(&self, cpu: u32, time_ns: u64) -> u64 {
        match self.options.capacities.get(cpu as usize) {
            Some(&capacity) => (u128::from(time_ns) * u128::from(capacity) / 1024) as u64,
            None => time_ns,
        }
    }

    /// Accounts a running task's time on its CPU up to now.
    fn accounts(&mut self, task: u32, now: u64) {
        if let Life::Running { cpu, since } = self.tasks[task as usize].life {
            let (time, work) = (now - since, self.work_ns(cpu, now - since));
            let t = &mut self.tasks[task as usize];
            t.ran(time, work);
            t.life = Life::Running { cpu, since: now };
        }
    }

    /// Returns true where a task that turns out to be on a CPU was there before the first event
    /// about it.
    fn ran_before(&self, cpu: u32, life: Life) -> bool {
        match life {
            Life::Unseen => true,
            // The weaver took the task for asleep when a wake-up found it.
            Life::Ready => !self.switched_ns.contains_key(&cpu),
            _ => false,
        }
    }

    /// A task leaves its CPU.
    fn leaves(&mut self, task: u32, cpu: u32, state: State, now: u64) {
        match self.tasks[task as usize].life {
            Life::Running { cpu: on, .. } if on == cpu => {}
            life if self.ran_before(cpu, life) => {
                let since = self.switched_ns.get(&cpu).copied().unwrap_or(0);
                self.tasks[task as usize].life = Life::Running { cpu, since };
            }
            _ => {
                let t = &mut self.tasks[task as usize];
                t.gaps += 1;
                t.life = Life::Running { cpu, since: now };
            }
        }
        self.accounts(task, now);
        let t = &mut self.tasks[task as usize];
        // The wake-up came while the task was on its way to sleep: either it was in time to keep
        // the task from sleeping, or it is the one that ends this sleep. The next wake-up, or its
        // absence, decides.
        t.race = match state {
            State::Asleep => t.early.pop(),
            _ => None,
        };
        t.life = match state {
            State::Runnable => Life::Ready,
            State::Asleep => Life::Asleep { since: now },
            State::Dead => Life::Dead,
        };
        for woken in std::mem::take(&mut self.tasks[task as usize].early) {
            self.was_early(task, woken);
        }
    }

    /// Takes a wake-up that found its task awake: the task does not go on before this wake-up
    /// either.
    fn was_early(&mut self, task: u32, woken: Woken) {
        self.odd.early += 1;
        if let Woken::By(by) = woken {
            self.did(task, Did::Await { by, ns: 0 });
        }
    }

    /// A task gets its CPU.
    fn runs(&mut self, task: u32, cpu: u32, now: u64) {
        let t = &mut self.tasks[task as usize];
        let race = t.race.take();
        match (t.life, race) {
            (Life::Asleep { since }, Some(woken)) => self.ends_sleep(task, woken, now - since, now),
            (Life::Asleep { since }, None) => {
                self.odd.unseen += 1;
                self.ends_sleep(task, Woken::Outside, now - since, now);
            }
            (Life::Running { .. }, _) => self.tasks[task as usize].gaps += 1,
            _ => {}
        }
        self.tasks[task as usize].life = Life::Running { cpu, since: now };
    }

    /// Ends a sleep: writes its length, and the wake-up that ended it.
    fn ends_sleep(&mut self, task: u32, woken: Woken, ns: u64, now: u64) {
        let did = match woken {
            Woken::By(by) => Did::Await { by, ns },
            Woken::Outside => {
                self.tasks[task as usize].alarms.push(now);
                Did::Sleep { ns }
            }
        };
        self.did(task, did);
    }

    /// Returns the task in whose name an event was written, if the event is the task's own doing;
    /// accounts the task's work up to here.
    fn actor(&mut self, event: &Event, now: u64) -> Result<Option<u32>, ImportError> {
        if event.pid == 0 {
            return Ok(None);
        }
        let task = self.task(event.pid)?;
        match self.tasks[task as usize].life {
            Life::Running { cpu, .. } if cpu == event.cpu => {}
            life if self.ran_before(event.cpu, life) => {
                let (cpu, switched_ns) = (event.cpu, self.switched_ns.get(&event.cpu));
                let since = switched_ns.copied().unwrap_or(0);
                self.tasks[task as usize].life = Life::Running { cpu, since };
            }
            _ => {
                self.tasks[task as usize].gaps += 1;
                return Ok(None);
            }
        }
        if let Some(process) = event.process {
            self.tasks[task as usize].process = Some(process);
        }
        self.accounts(task, now);
        Ok(Some(task))
    }

    /// Takes a wake-up.
    fn wakes(&mut self, event: &Event, pid: i32, name: Name, now: u64) -> Result<(), ImportError> {
        if pid == 0 {
            return Ok(());
        }
        if event.pid != 0 {
            match event.context {
                Context::Task => {}
                Context::Softirq => self.odd.softirqs += 1,
                Context::Interrupt => self.odd.interrupts += 1,
            }
        }
        let task = self.task(pid)?;
        self.tasks[task as usize].name = name;
        let by = match event.context {
            Context::Interrupt => None,
            // The kernel's threads sleep on timers, which fire in softirqs.
            Context::Softirq if self.tasks[task as usize].is_the_kernels() => None,
            // A task that seems to wake itself is woken by an interrupt on its own CPU, or did not
            // sleep yet.
            _ if event.pid == pid => None,
            _ => self.actor(event, now)?,
        };
        let woken = match by {
            Some(by) => {
                self.did(by, Did::Wake { task });
                Woken::By(by)
            }
            None => Woken::Outside,
        };
        let t = &mut self.tasks[task as usize];
        match t.life {
            Life::Asleep { since } => {
                if let Some(race) = t.race.take() {
                    // Another wake-up ends the sleep, so the earlier one came in time.
                    self.was_early(task, race);
                }
                self.ends_sleep(task, woken, now - since, now);
                self.tasks[task as usize].life = Life::Ready;
            }
            Life::Unseen => {
                self.ends_sleep(task, woken, now, now);
                self.tasks[task as usize].life = Life::Ready;
            }
            Life::Running { .. } | Life::Ready | Life::New => t.early.push(woken),
            Life::Dead => t.gaps += 1,
        }
        Ok(())
    }

    /// Takes a fork. A process number that is used again names a new task.
    fn forks(
        &mut self,
        event: &Event,
        child: i32,
        name: Name,
        now: u64,
    ) -> Result<(), ImportError> {
        let parent = self.actor(event, now)?;
        let task = self.add(child, Life::New, parent)?;
        self.tasks[task as usize].name = name;
        if let Some(parent) = parent {
            self.did(parent, Did::Fork { task });
        }
        Ok(())
    }
}
