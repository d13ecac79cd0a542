// SPDX-License-Identifier: GPL-2.0-or-later
//! A run: takes events in their order and sends each to its place.

use std::io::{self, Write};

use perch_engine::Event;
use perch_sched::check::Auditor;
use perch_sched::{Programs, Sched, Violation, kind};

use super::place::Place;
use super::state::World;
use super::{event, scheduler};
use crate::id::{ChannelId, Id, TaskId};
use crate::observe::{Glimpse, Metrics, Requests, SoFar, Text, WAKE_PERCENTILES, Watch, Watcher};
use crate::program::Stopwatch;
use crate::{Scenario, SimError};

/// A simulated machine and what happens on it.
pub struct Simulation<'a> {
    sched: Sched<'a>,
    world: World,
    watcher: Option<Watcher<'a>>,
    /// The scheduler from outside.
    words: String,
}

impl<'a> Simulation<'a> {
    /// A machine where nothing has run yet, and the tasks that will be forked on it.
    ///
    /// # Errors
    /// When the scheduler from outside cannot be loaded.
    pub fn new(scenario: &Scenario) -> Result<Simulation<'a>, SimError> {
        let workload = &scenario.workload;
        let mut sched = scheduler(scenario)?;
        let era = scenario.policy.era();
        let mut world = World::new(workload, sched.nr_cpus(), era, scenario.seed);
        for task in (0..sched.nr_tasks()).map(TaskId::of) {
            if let Some(at_ns) = world.programs.starts_at(task, workload) {
                sched.at(at_ns, event::FORK, task.0, 0);
            }
        }
        world.guests.start_ticks(&mut sched, scenario.seed);
        // Each round of a streak would use the working set again.
        if sched.models_llcs() {
            world.programs.step_by_step();
        }
        Ok(Simulation {
            sched,
            world,
            watcher: None,
            words: scenario.scheduler.as_ref().map_or_else(String::new, |s| s.words().to_string()),
        })
    }

    /// Writes a line for each decision from now on.
    pub fn trace_to(&mut self, out: &'a mut dyn Write) {
        self.sched.observe(Box::new(Text::new(out)));
    }

    /// Makes every step an event from now on, also where many could be one.
    pub fn step_by_step(&mut self) {
        self.world.programs.step_by_step();
    }

    /// Tells `to` what happens from now on, step by step.
    pub fn watch(&mut self, to: &'a mut dyn Watch) {
        self.step_by_step();
        let watcher = Watcher::new(to, &self.sched);
        self.sched.observe(watcher.observer());
        self.watcher = Some(watcher);
    }

    /// The moment, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.sched.now_ns()
    }

    /// The moment of the next event.
    pub fn next_at(&self) -> Option<u64> {
        self.sched.events().next_at()
    }

    /// The moments at which the workload started and stopped its clock.
    pub fn stopwatch(&self) -> Stopwatch {
        self.world.programs.stopwatch()
    }

    /// Handles every event up to `until_ns`, or until the workload stops its clock.
    ///
    /// # Errors
    /// The first I/O error of the observer or the watcher, and the end of a scheduler from outside;
    /// either also ends the run.
    pub fn run_until(&mut self, until_ns: u64) -> Result<(), SimError> {
        let in_order = self.world.programs.has_mutexes();
        while self.stopwatch().stopped_ns.is_none()
            && let Some(event) = self.sched.next(until_ns, in_order)
        {
            self.handle(event);
            if let Some(why) = self.sched.ext_ended() {
                let why = format!("it ended at {} ns: {why}", self.now_ns());
                let words = self.words.clone();
                return Err(SimError::Scheduler { words, why });
            }
            if let Some(watcher) = &mut self.watcher {
                let seen = watcher.look(&self.sched);
                // An observer is dropped after its first I/O error.
                self.sched.take_observer_error().map_or(seen, Err)?;
            }
        }
        self.sched.pass_to(self.stopwatch().stopped_ns.unwrap_or(until_ns));
        Ok(self.sched.take_observer_error().map_or(Ok(()), Err)?)
    }

    fn handle(&mut self, event: Event) {
        let Simulation { sched, world, .. } = self;
        world.events += 1;
        sched.act_on(match event.kind {
            event::TIMER => world.guests.host_cpu(sched, TaskId(event.key)),
            kind::SEGMENT | kind::IPI | kind::PUSH | kind::EXT => event.key as usize,
            event::VCPU => world.guests.cpu_of_vcpu(sched, event.key),
            _ => 0,
        });
        match event.kind {
            kind::SEGMENT => {
                let cpu = event.key as usize;
                match sched.segment_end(cpu, event.tag) {
                    Some(task) => world.advance(sched, cpu, task),
                    None => world.events -= 1,
                }
            }
            kind::IPI if sched.finish_chore(event.key as usize) => world.events -= 1,
            kind::IPI => sched.interrupt(world, event.key as usize),
            kind::PUSH => sched.push_interrupt(world, event.key as usize),
            kind::EXT => sched.ext_timer(world, event.key as usize, event.tag),
            event::TIMER => world.timer(sched, TaskId(event.key)),
            event::FORK => world.appear(sched, TaskId(event.key)),
            event::VCPU => world.vcpu_interrupt(sched, event.key, event.tag),
            event::PACKET => world.packet(sched, ChannelId(event.key), event.tag),
            _ => sched.tick(world),
        }
    }

    /// Forgets what was counted so far: the measured part of the run begins.
    pub fn start_measuring(&mut self) {
        self.world.programs.start_counting();
        self.world.start_counting(&mut self.sched);
    }

    /// Keeps wake-up latencies and requests of the `measure_ns` from now on.
    pub fn measure_requests(&mut self, measure_ns: u64) {
        let requests = Requests::new(self.now_ns(), measure_ns);
        self.world.programs.keep_requests(Some(requests));
    }

    /// Ends a batch of the wake-up latencies that are kept, if they are; see
    /// [`Requests::end_batch`].
    pub fn end_batch(&mut self) -> Option<[f64; WAKE_PERCENTILES.len()]> {
        self.world.programs.end_batch()
    }

    /// The counts up to this moment, since counting began.
    pub fn so_far(&self) -> SoFar {
        let counts = self.sched.counts();
        SoFar {
            now_ns: self.now_ns(),
            counted: self.world.programs.counted(),
            latencies: counts.wake_latency.total(),
            latency_ns: counts.latency_ns,
            busy_ns: self.sched.busy_ns(),
            kernel_ns: counts.kernel_ns,
        }
    }

    /// The wake-up latencies and requests kept so far; the last sample and the last batch are
    /// closed.
    pub fn take_requests(&mut self) -> Option<Requests> {
        let mut requests = self.world.programs.keep_requests(None)?;
        requests.end_batch();
        requests.close(self.now_ns());
        Some(requests)
    }

    /// The metrics of the measured part, which began at `since_ns`.
    pub fn finish(&mut self, since_ns: u64) -> Metrics {
        let busy = self.sched.take_busy();
        let (counts, c2c) = self.sched.take_counts();
        Metrics {
            events: counts.ticks + self.world.events,
            counted: self.world.programs.counted(),
            guest: self.world.guests.take_metrics(&self.sched),
            simulated_ns: self.now_ns() - since_ns,
            c2c,
            ..Metrics::of(counts, busy)
        }
    }

    /// The run is over.
    ///
    /// # Errors
    /// The onlooker's I/O error.
    pub fn end(&mut self) -> io::Result<()> {
        let now_ns = self.now_ns();
        self.watcher.as_mut().map_or(Ok(()), |w| w.end(now_ns))
    }

    /// Walks over the whole world and checks its books.
    ///
    /// # Errors
    /// The statement that does not hold, and the moment.
    pub fn check(&mut self, auditor: &mut Auditor) -> Result<(), Violation> {
        let now_ns = self.now_ns();
        let result = self.world.check(&mut self.sched, auditor);
        result.map_err(|why| why.within(format_args!("at {now_ns} ns")))
    }

    /// The inside of the run at this moment.
    pub fn glimpse(&self) -> Glimpse {
        let mut glimpse = Glimpse::of(&self.sched);
        for (id, task) in (0..).map(TaskId).zip(&mut glimpse.tasks) {
            if let Some(life) = self.world.guests.life(id) {
                let (ran_ns, vcpu) = self.world.guests.ran(id);
                task.is_inside(vcpu, life, ran_ns);
            }
        }
        glimpse
    }
}

impl World {
    /// A task's timer fires, on the CPU on which it went to sleep. Every third event of tasks that run
    /// and sleep is one, and one place handles them all, so this function is inlined there.
    #[inline(always)]
    fn timer(&mut self, sched: &mut Sched<'_>, task: TaskId) {
        match self.guests.place(task) {
            Place::Guest(guest) => return self.guests.timer(guest, task),
            Place::Outside => return self.go_on_outside(sched, task),
            Place::Host | Place::Vcpu(..) => {}
        }
        let cpu = sched.cpu_of_task(task);
        let waker = sched.interrupted(cpu);
        sched.wake(task, cpu, waker, false);
        sched.resched_if_needed(self, cpu);
    }

    /// A task appears that no task of the simulation forks: its parent is on a CPU drawn at random
    /// among those that the task may use.
    fn appear(&mut self, sched: &mut Sched<'_>, task: TaskId) {
        self.programs.appears(task, sched.now_ns());
        match self.guests.place(task) {
            Place::Guest(guest) => {
                let vcpu = self.guests.appear(sched, guest, task);
                self.rouse(sched, vcpu);
            }
            Place::Outside => self.go_on_outside(sched, task),
            Place::Host | Place::Vcpu(..) => {
                let parent = self.programs.draw_cpu(task, sched.allowed(task));
                sched.appear(self, task, parent);
            }
        }
    }
}
