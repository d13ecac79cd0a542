// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of random recordings of a made-up machine, and of the properties that every import must
//! have.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use perch_import::{Context, Event, Kind, Name, Options, Origin, State, Weaver};
use perch_machine::Machine;
use perch_policy::{Era, Modes, Policy};
use perch_sim::Scenario;
use perch_workload::Workload;
use perch_workload::recorded::{Script, Step};
use proptest::prelude::*;

/// A stream of numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Life {
    Asleep,
    Ready,
    Running,
    Dead,
}

/// A recording, and the tasks that were on the CPUs while it was made.
pub struct Recording {
    pub events: Vec<Event>,
    /// The time on CPUs by task.
    pub time_ns: BTreeMap<i32, u64>,
    /// The number of wake-ups of one task by another, by waker and wakee.
    pub wakes: BTreeMap<(i32, i32), u64>,
}

/// Makes up a recording: CPUs switch between tasks that wake each other, fork, sleep and end.
pub fn recording(seed: u64, cpus: usize, tasks: usize, moments: usize) -> Recording {
    let mut world = World::new(seed, cpus, tasks);
    for _ in 0..moments {
        world.moment();
    }
    // The accounts of the tasks on CPUs go up to the last event, whether or not an event shows the
    // task.
    let mut made = world.made;
    let end = made.events.last().map_or(0, |event| event.at_ns);
    for (pid, since) in world.running.into_iter().flatten() {
        *made.time_ns.entry(pid).or_default() += end - since;
    }
    made
}

/// A machine whose recording is being made up.
struct World {
    chance: Chance,
    lives: BTreeMap<i32, Life>,
    /// The task that runs on each CPU, and the time since when it does.
    running: Vec<Option<(i32, u64)>>,
    made: Recording,
    at_ns: u64,
    /// The number of the next child.
    next_pid: i32,
}

impl World {
    /// A third of the tasks are ready, and half of the CPUs run one of them.
    fn new(seed: u64, cpus: usize, tasks: usize) -> World {
        let mut chance = Chance(seed);
        let mut lives: BTreeMap<i32, Life> =
            (1..=tasks as i32).map(|pid| (pid, Life::Asleep)).collect();
        for pid in 1..=tasks as i32 {
            if chance.below(3) == 0 {
                lives.insert(pid, Life::Ready);
            }
        }
        let mut running: Vec<Option<(i32, u64)>> = vec![None; cpus];
        for cpu in &mut running {
            let ready = lives.iter().find(|(_, life)| **life == Life::Ready).map(|(pid, _)| *pid);
            if let Some(pid) = ready.filter(|_| chance.below(2) == 0) {
                lives.insert(pid, Life::Running);
                *cpu = Some((pid, 0));
            }
        }
        World {
            chance,
            lives,
            running,
            made: Recording {
                events: Vec::new(),
                time_ns: BTreeMap::new(),
                wakes: BTreeMap::new(),
            },
            at_ns: 0,
            next_pid: tasks as i32 + 1,
        }
    }

    /// Returns the tasks for whose state the given test holds.
    fn those(&self, is: impl Fn(i32, Life) -> bool) -> Vec<i32> {
        let lives = self.lives.iter().map(|(pid, life)| (*pid, *life));
        lives.filter(|(pid, life)| is(*pid, *life)).map(|(pid, _)| pid).collect()
    }

    fn add(&mut self, cpu: usize, pid: i32, context: Context, kind: Kind) {
        self.made.events.push(Event {
            at_ns: self.at_ns,
            cpu: cpu as u32,
            pid,
            process: None,
            context,
            kind,
        });
    }

    /// Lets time pass; then on some CPU a task is woken or born, or another one runs.
    fn moment(&mut self) {
        // The clock starts with the first event, where the recording begins.
        if !self.made.events.is_empty() {
            self.at_ns += self.chance.below(50_000) as u64;
        }
        let cpu = self.chance.below(self.running.len());
        let pid = self.running[cpu].map_or(0, |(pid, _)| pid);
        let others = self.those(|other, life| other != pid && life != Life::Dead);
        let choice = self.chance.below(10);
        if choice < 4 && !others.is_empty() {
            self.wake(cpu, pid, &others);
        } else if choice == 4 && pid != 0 && self.next_pid < 200 {
            self.fork(cpu, pid);
        } else {
            self.switch(cpu, pid);
        }
    }

    /// Wakes one of `others`: mostly a task that sleeps, now and then one that does not.
    fn wake(&mut self, cpu: usize, pid: i32, others: &[i32]) {
        let asleep = self.those(|other, life| other != pid && life == Life::Asleep);
        let pool = if asleep.is_empty() || self.chance.below(8) == 0 { others } else { &asleep };
        let wakee = pool[self.chance.below(pool.len())];
        let context = match self.chance.below(6) {
            0 => Context::Interrupt,
            1 => Context::Softirq,
            _ => Context::Task,
        };
        if pid == 0 && self.lives[&wakee] != Life::Asleep {
            return;
        }
        let name = Name::new(b"t");
        self.add(cpu, pid, context, Kind::Waking { pid: wakee, name });
        if pid != 0 && context != Context::Interrupt {
            *self.made.wakes.entry((pid, wakee)).or_default() += 1;
        }
        if self.lives[&wakee] == Life::Asleep {
            self.lives.insert(wakee, Life::Ready);
        }
    }

    fn fork(&mut self, cpu: usize, pid: i32) {
        let (child, name) = (self.next_pid, Name::new(b"t"));
        self.add(cpu, pid, Context::Task, Kind::Fork { child, name });
        let name = Name::new(b"t");
        self.add(cpu, pid, Context::Task, Kind::WakeupNew { pid: child, name });
        self.lives.insert(child, Life::Ready);
        self.next_pid += 1;
    }

    /// Switches the CPU to another task, or to none.
    fn switch(&mut self, cpu: usize, pid: i32) {
        let ready = self.those(|_, life| life == Life::Ready);
        let next = match ready.len() {
            0 => 0,
            n if pid == 0 => ready[self.chance.below(n)],
            n => [0, ready[self.chance.below(n)]][self.chance.below(2)],
        };
        if next == pid {
            return;
        }
        let state = match self.chance.below(8) {
            0..=1 => State::Runnable,
            2 if pid > 3 => State::Dead,
            _ => State::Asleep,
        };
        let kind = Kind::Switch {
            prev: pid,
            prev_name: Name::new(b"t"),
            prev_prio: 120,
            state,
            next,
            next_prio: 120,
            next_name: Name::new(b"t"),
        };
        self.add(cpu, pid, Context::Task, kind);
        if let Some((pid, since)) = self.running[cpu].take() {
            *self.made.time_ns.entry(pid).or_default() += self.at_ns - since;
            let life = match state {
                State::Runnable => Life::Ready,
                State::Asleep => Life::Asleep,
                State::Dead => Life::Dead,
            };
            self.lives.insert(pid, life);
        }
        if next != 0 {
            self.lives.insert(next, Life::Running);
            self.running[cpu] = Some((next, self.at_ns));
        }
    }
}

fn woven(recording: &Recording) -> Script {
    let origin = Origin { tool: "nobody", ..Origin::default() };
    let mut weaver = Weaver::new(&Options::default());
    for event in &recording.events {
        weaver.event(event).expect("few enough");
    }
    let (script, summary) = weaver.finish(&origin).expect("a script");
    assert_eq!(summary.gaps, 0, "{summary:?}");
    assert_eq!(summary.late, 0);
    assert_eq!(summary.work_ns, script.work_ns());
    script
}

/// Runs a script on a machine of so many CPUs, and records all that happens.
fn runs(script: &Script, cpus: usize, name: &str) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.workload"));
    let mut file = Vec::new();
    script.write(&mut file).expect("memory takes it");
    std::fs::write(&path, &file).expect("a file");
    assert_eq!(Script::read(&mut &file[..]).expect("what perch wrote"), *script);
    let machine = Arc::new(Machine::regular("m", 1, 1, 1, 0, cpus, 1).expect("a machine"));
    let spec = format!("recorded:{},spread=0", path.display());
    let workload = Workload::parse(&spec, &machine).unwrap_or_else(|error| panic!("{error}"));
    let eras = [Era::V5_5, Era::V6_5, Era::V6_15, Era::V7_2];
    let scenario = Scenario {
        policy: Policy::new(eras[script.tasks.len() % 4], Modes::default()),
        ..Scenario::plain(machine, workload, 1_000_000_000_000)
    };
    let outcome = scenario.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.metrics.counted, script.wakes(), "every wake-up happens");
    assert!(outcome.metrics.busy_ns >= script.work_ns(), "all the work is done");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)) })]

    #[test]
    fn nothing_is_lost_and_everything_ends(seed in any::<u64>().no_shrink(), cpus in 1usize..9, tasks in 1usize..40) {
        let made = recording(seed, cpus, tasks, 600);
        prop_assume!(made.events.iter().any(|e| matches!(e.kind, Kind::Switch { .. })));
        let script = woven(&made);
        // A script's work is the time on CPUs, but without the tasks that ran from the first event
        // to the last and wrote no event.
        let seen: u64 = made.time_ns.iter().filter(|(pid, _)| made.events.iter().any(|event| {
            event.pid == **pid || matches!(event.kind, Kind::Switch { next, .. } if next == **pid)
        })).map(|(_, ns)| *ns).sum();
        prop_assert!(script.work_ns() <= seen);
        // An event in an interrupt is not its task's, so a task that wrote nothing else is not
        // seen.
        let own: u64 = made.time_ns.iter().filter(|(pid, _)| made.events.iter().any(|event| match event.kind {
            Kind::Switch { prev, next, .. } => prev == **pid || next == **pid,
            _ => event.pid == **pid && event.context != Context::Interrupt,
        })).map(|(_, ns)| *ns).sum();
        prop_assert_eq!(script.work_ns(), own);
        // Each task wakes the same tasks as in the recording, and as often.
        prop_assert_eq!(script.wakes(), made.wakes.values().sum::<u64>());
        let mut matrix: BTreeMap<(usize, u32), [u64; 2]> = BTreeMap::new();
        for (number, task) in script.tasks.iter().enumerate() {
            for step in &task.steps {
                match *step {
                    Step::Wake(other) => matrix.entry((number, other)).or_default()[0] += 1,
                    Step::Await(other) => matrix.entry((other as usize, number as u32)).or_default()[1] += 1,
                    _ => {}
                }
            }
        }
        let mut counts: Vec<u64> = matrix.values().map(|[wakes, _]| *wakes).collect();
        let mut expected: Vec<u64> = made.wakes.values().copied().collect();
        counts.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(counts, expected);
        // A dead task waits for nothing more; all others wait for each wake-up of theirs.
        for ([wakes, waits], pair) in matrix.values().zip(matrix.keys()) {
            prop_assert!(waits <= wakes, "{pair:?}: {waits} waits for {wakes} wake-ups");
        }
        for cpus in [1, 1 + seed as usize % 16] {
            runs(&script, cpus, "random");
        }
    }
}

#[test]
fn who_is_left_out_becomes_the_world_outside() {
    let at = |at_ns, pid, kind| Event {
        at_ns,
        cpu: 0,
        pid,
        process: None,
        context: Context::Task,
        kind,
    };
    let switch = |prev, state, next, name: &[u8]| Kind::Switch {
        prev,
        prev_name: Name::new(if prev == 1 { b"kept" } else { b"gone" }),
        prev_prio: 120,
        state,
        next,
        next_prio: 110,
        next_name: Name::new(name),
    };
    let events = [
        at(100, 0, switch(0, State::Runnable, 1, b"kept")),
        at(1_100, 1, switch(1, State::Asleep, 2, b"gone")),
        at(1_500, 2, Kind::Waking { pid: 1, name: Name::new(b"kept") }),
        at(2_100, 2, switch(2, State::Asleep, 1, b"kept")),
        at(5_100, 1, Kind::Waking { pid: 2, name: Name::new(b"gone") }),
        at(6_100, 1, switch(1, State::Dead, 0, b"swapper/0")),
    ];
    let options =
        Options { without: vec!["go*".to_string()], capacities: vec![512], ..Options::default() };
    let mut weaver = Weaver::new(&options);
    for event in &events {
        weaver.event(event).expect("few enough");
    }
    let (script, summary) = weaver.finish(&Origin::default()).expect("a script");
    assert_eq!(script.tasks.len(), 1);
    // A CPU of half the capacity makes the work half the time; the wake-up by the task that is gone
    // becomes a sleep.
    assert_eq!(script.tasks[0].steps, [Step::Compute(500), Step::Sleep(400), Step::Compute(2_000)]);
    assert_eq!(script.tasks[0].nice, -10);
    assert_eq!((summary.cpu_ns, summary.wakes_in, summary.wakes_out), (5_000, 1, 1));
}
