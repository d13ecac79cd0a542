// SPDX-License-Identifier: GPL-2.0-or-later
//! Random scenarios: irregular machines, loads of everything that a program can do, affinities,
//! nice levels, eras, modes. The same seed gives the same scenario.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Mode, Modes, Policy};
use perch_sim::workload::{Op, Space, TaskSpec, Workload};
use perch_sim::{Dist, Scenario};

use crate::common::{ERAS, of_tasks, task};

/// SplitMix64: the scenario of a seed must never change with a dependency.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both included.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.range(1, 100) <= percent
    }
}

/// A load under construction.
struct Load<'a> {
    machine: &'a Machine,
    dice: Dice,
    tasks: Vec<TaskSpec>,
    channels: u32,
}

impl Load<'_> {
    fn time(&mut self, low: u64, high: u64) -> Dist {
        let mean = self.dice.range(low, high);
        match self.dice.range(0, 3) {
            0 => Dist::Const(mean),
            1 => Dist::around(mean, 30),
            2 => Dist::Exponential(mean),
            _ => Dist::Mixed { near: mean, far: 4 * mean, one_in: 9 },
        }
    }

    fn affinity(&mut self) -> Vec<usize> {
        let n = self.machine.cpus.len();
        if self.dice.chance(50) {
            return (0..n).collect();
        }
        let percent = self.dice.range(5, 90);
        let mut cpus: Vec<usize> = (0..n).filter(|_| self.dice.chance(percent)).collect();
        if cpus.is_empty() {
            cpus.push(self.dice.range(0, n as u64 - 1) as usize);
        }
        cpus
    }

    fn add(&mut self, program: Vec<Op>, cpus: &[usize], there: bool) {
        let start = Dist::Uniform(0, self.dice.range(0, 3_000_000));
        let mut spec = task(self.machine, program, cpus.iter().copied());
        spec.start = there.then_some(start);
        spec.footprint = (self.dice.range(0, 2000) as u32).into();
        if self.dice.chance(30) {
            spec.nice = self.dice.range(0, 39) as i8 - 20;
        }
        self.tasks.push(spec);
    }

    fn channel(&mut self) -> u32 {
        self.channels += 1;
        self.channels - 1
    }

    fn send(&mut self, channel: u32) -> Op {
        Op::Send { channel, lines: self.dice.range(0, 60) as u32, sync: self.dice.chance(50) }
    }

    fn run(&mut self) -> Op {
        Op::Run(self.time(500, 300_000))
    }

    fn sleepers(&mut self, cpus: &[usize]) {
        for _ in 0..self.dice.range(1, 8) {
            let mut program = vec![Op::Run(self.time(1000, 3_000_000)), Op::Count];
            if self.dice.chance(70) {
                program.push(Op::Sleep(self.time(1000, 3_000_000)));
            }
            program.push(Op::Jump(0));
            self.add(program, cpus, true);
        }
    }

    /// As in hackbench: some send, some answer, all through two channels.
    fn crowd(&mut self, cpus: &[usize]) {
        let (there, back) = (self.channel(), self.channel());
        for _ in 0..self.dice.range(1, 8) {
            let (work, send) = (self.run(), self.send(there));
            self.add(vec![work, send, Op::Receive { channel: back }, Op::Jump(0)], cpus, true);
        }
        for _ in 0..self.dice.range(1, 8) {
            let (work, send) = (self.run(), self.send(back));
            let receive = Op::Receive { channel: there };
            self.add(vec![receive, work, send, Op::Count, Op::Jump(0)], cpus, true);
        }
    }

    /// A parent that forks children, which work and end.
    fn family(&mut self, cpus: &[usize]) {
        let mut parent = Vec::new();
        for _ in 0..self.dice.range(1, 6) {
            let (work, nap) = (self.run(), self.time(1000, 500_000));
            self.add(vec![work, Op::Sleep(nap), work, Op::Count, Op::Exit], cpus, false);
            parent.extend([self.run(), Op::Fork(self.tasks.len() as u32 - 1)]);
        }
        parent.push(Op::Exit);
        self.add(parent, cpus, true);
    }
}

/// As in sysbench: tasks that lock, some of which yield, each the mutex that it draws.
fn lockers(load: &mut Load<'_>, cpus: &[usize], mutexes: u32) {
    let [wait, wake] = [0; 2].map(|_| match load.dice.chance(50) {
        true => Dist::Const(load.dice.range(0, 900)),
        false => load.time(1, 900),
    });
    for _ in 0..load.dice.range(1, 8) {
        let first = load.dice.range(0, 1) as u32;
        let of = load.dice.range(1, u64::from(mutexes - first)) as u32;
        let held = match load.dice.chance(70) {
            true => Dist::Const(load.dice.range(1, 2000)),
            false => load.time(100, 20_000),
        };
        let mut program = vec![Op::Draw { counter: 0, of }];
        if load.dice.chance(30) {
            program.push(Op::Sleep(load.time(1000, 100_000)));
        }
        let to = program.len() as u32;
        program.extend([Op::Lock { first, wait }, Op::Run(held)]);
        if load.dice.chance(80) {
            program.push(Op::Yield);
        }
        program.extend([
            Op::Unlock { first, wake },
            Op::Run(Dist::Const(load.dice.range(0, 300))),
            Op::Repeat { to, times: load.dice.range(1, 400) },
            Op::Count,
            Op::Jump(0),
        ]);
        load.add(program, cpus, true);
    }
}

/// As in hackbench: writers to a socket that holds little, and its reader.
fn sockets(load: &mut Load<'_>, cpus: &[usize]) {
    let channel = load.channel();
    let room = load.dice.range(1, 12) as u32;
    for _ in 0..load.dice.range(1, 6) {
        let lines = load.dice.range(0, 60) as u32;
        let write = Op::Write { channel, lines, room, low: room / 4, sync: lines % 2 == 0 };
        let program = vec![Op::Run(load.time(500, 30_000)), write, Op::Jump(0)];
        load.add(program, cpus, true);
    }
    for _ in 0..load.dice.range(1, 2) {
        let work = Op::Run(load.time(500, 30_000));
        let program = vec![Op::Receive { channel }, work, Op::Count, Op::Jump(0)];
        load.add(program, cpus, true);
    }
}

/// The scenario of a seed: 21 ms on at most `max_cpus` CPUs.
pub fn random(seed: u64, max_cpus: usize) -> Scenario {
    let mut dice = Dice::new(seed);
    let machine = Arc::new(Machine::random(dice.next(), max_cpus));
    let era = match ERAS[dice.range(0, 2) as usize] {
        // By a bit of its own, as below.
        Era::V7_2 if seed >> 48 & 1 != 0 => Era::V6_15,
        era => era,
    };
    let mode = Mode::ALL[dice.range(0, 3) as usize];
    // By its own number: a mechanism more changes no scenario of the others.
    let capacity = Mode::ALL[(seed >> 40) as usize % 4];
    let cache = Mode::ALL[(seed >> 50) as usize % 4];
    let hz = [100, 250, 1000, 3333][dice.range(0, 3) as usize];
    let parts = dice.range(1, 5);
    let mut load = Load { machine: &machine, dice, tasks: Vec::new(), channels: 0 };
    for _ in 0..parts {
        let cpus = load.affinity();
        match load.dice.range(0, 2) {
            0 => load.sleepers(&cpus),
            1 => load.crowd(&cpus),
            _ => load.family(&cpus),
        }
    }
    // By bits of their own: every other seed is without them.
    let mutexes = if seed >> 43 & 3 == 0 { 4 } else { 0 };
    if mutexes > 0 {
        let cpus = load.affinity();
        lockers(&mut load, &cpus, mutexes);
    }
    if seed >> 45 & 3 == 0 {
        let cpus = load.affinity();
        sockets(&mut load, &cpus);
    }
    let Load { mut tasks, channels, .. } = load;
    // One to four processes, and now and then a task without one.
    let spaces = 1 + (seed >> 52) as usize % 4;
    for (i, task) in tasks.iter_mut().enumerate() {
        task.space = (i % 7 < 6).then_some((i % spaces) as u32);
    }
    let workload = Workload {
        mutexes: mutexes as usize,
        counters: 1,
        spaces: vec![Space::default(); spaces],
        ..of_tasks(&machine, "random", tasks, channels as usize)
    };
    Scenario {
        policy: Policy::new(era, Modes { cluster: mode, capacity, cache, ..Modes::default() }),
        hz,
        warmup_ns: 1_000_000,
        seed,
        ..Scenario::plain(machine, workload, 20_000_000)
    }
}
