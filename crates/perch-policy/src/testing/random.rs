// SPDX-License-Identifier: GPL-2.0-or-later
//! Random moments: near things likelier than chance would have them, and what leads deep into the
//! search likelier still.

use super::dice::Dice;
use super::machines::Shape;
use super::scenario::{Home, Load, SECOND, Scenario};

impl Scenario {
    /// A moment of the dice. Near things are likelier than chance would have them.
    pub fn random(shape: &Shape, dice: &mut Dice) -> Scenario {
        let n = shape.nr_cpus();
        let prev = dice.below(n);
        let this = relative(shape, dice, prev);
        let mut s = Scenario::idle(shape, this, prev);
        let idle_percent = dice.pick(&[0, 3, 3, 8, 15, 40, 90, 98]);
        let sched_idle_percent = dice.pick(&[0, 0, 10, 50]);
        let kind = |cpu: usize| shape.machine.cpus[cpu].capacity;
        let asymmetric = shape.asymmetric();
        // On asymmetric machines real-time tasks and interrupts take a part of some CPUs.
        let same_capacity = dice.chance(60);
        // Light loads are what the absolute margin between nodes is for.
        let unit = dice.pick(&[1024, 1024, 300, 60]);
        for cpu in 0..n {
            let idle = dice.chance(idle_percent);
            let sched_idle = !idle && dice.chance(sched_idle_percent);
            let running = if idle { dice.pick(&[0, 0, 0, 1]) } else { dice.range(1, 4) };
            let load = running * dice.pick(&[0, unit / 2, unit]);
            s.state.idle[cpu] = idle;
            s.state.sched_idle[cpu] = sched_idle;
            s.state.cpus[cpu] = Load {
                nr_running: running,
                nr_delayed: dice.range(0, running.min(1)),
                load,
                runnable: dice.pick(&[load, 0, 700]),
                util: dice.pick(&[0, 100, 500, 1024]),
                capacity: if same_capacity {
                    kind(cpu)
                } else if asymmetric {
                    dice.range(1, kind(cpu)).max(dice.range(1, kind(cpu)))
                } else {
                    dice.range(1, 1024)
                },
                capacity_in_groups: kind(cpu),
                curr_load: dice.pick(&[0, 512, 1024, 2000]),
                idle_exit_ns: dice.pick(&[1, 1000, 1000, 90_000]),
                idle_since_ns: dice.range(1, 5).into(),
            };
            // Something took capacity from some CPUs after their groups were added up.
            if running % 2 == 0 {
                s.state.cpus[cpu].capacity_in_groups = s.state.cpus[cpu].capacity;
            }
            let width = shape.llc[cpu].as_ref().map_or(1, Vec::len) as u32;
            s.state.scan[cpu] =
                dice.pick(&[0, 1, 2, 3, 4, 5, 9, width, width, width / 2]).min(width);
            s.state.idle_cores[cpu] = dice.chance(50);
        }
        for (cpus, (scan, idle_cores)) in &mut s.state.asym {
            let width = cpus.len() as u32;
            *scan = dice.pick(&[0, 1, 2, 3, width, width, width / 2]);
            *idle_cores = dice.chance(50);
        }
        s.wake.now_ns = SECOND * u64::from(dice.range(1, 4)) + u64::from(dice.range(0, 1));
        s.wake.sync = dice.chance(40);
        s.wake.in_task = dice.chance(60);
        s.wake.current = dice.chance(4);
        let new = dice.chance(12);
        s.wake.fork = new && dice.chance(50);
        s.wake.exec = new && !s.wake.fork;
        let width = shape.llc[this].as_ref().map_or(1, Vec::len) as u32;
        for task in [&mut s.waker, &mut s.wakee] {
            task.flips = dice.pick(&[0, 1, width - 1, width, width * width, width * width + 1]);
            task.decay_at_ns = SECOND * u64::from(dice.range(0, 2)) + u64::from(dice.range(0, 1));
            task.load = dice.pick(&[0, 512, 1024, 3000]);
            task.util = dice.pick(&[0, 100, 1024]);
            if asymmetric {
                task.util = dice.range(0, 1024);
                let (a, b) = (dice.pick(&[0, 0, 300, 1024]), dice.pick(&[1024, 1024, 400, 0]));
                task.uclamp = (a.min(b), b.max(a));
            }
        }
        s.waker.last_wakee = dice.pick(&[0, s.wakee.id]);
        s.waker.percpu_kthread = dice.chance(20);
        s.waker.turn_ns = dice.pick(&[1_000_000, 0, 5_000, 5_001, 50_000, 999_999]);
        s.wakee.sched_idle = dice.chance(20);
        s.wakee.recent = dice.chance(80).then(|| relative(shape, dice, prev));
        s.allowed = affinity(shape, dice, prev);
        s.make_likelier(dice);
        if dice.chance(5) {
            s.crowd(shape, dice);
        }
        s.gather(shape, dice);
        s.join(dice);
        s
    }

    /// Puts the wakee into a task group that has something queued on some CPUs, at times on most
    /// of them, and lets weights move with it.
    fn join(&mut self, dice: &mut Dice) {
        self.waker.load_shift = dice.pick(&[0, 0, 90, 1500]);
        self.wakee.load_shift = -dice.pick(&[0, 0, 90, 1500]);
        if dice.chance(25) {
            return;
        }
        let percent = dice.pick(&[5, 50, 50, 90, 98, 100]);
        let queued = self.state.cpus.iter();
        let queued = queued.map(|load| load.nr_running > 0 && dice.chance(percent));
        self.group = Some(queued.collect());
    }

    /// Gives the wakee a process that prefers LLCs, full ones and others.
    fn gather(&mut self, shape: &Shape, dice: &mut Dice) {
        let leads = |cpu: usize| shape.llc[cpu].as_ref().is_some_and(|llc| llc[0] == cpu);
        let leaders: Vec<usize> = (0..shape.nr_cpus()).filter(|&c| leads(c)).collect();
        for &cpu in &leaders {
            let width = shape.llc[cpu].as_ref().map_or(1, Vec::len) as u32;
            let percent = dice.pick(&[0, 10, 24, 25, 39, 40, 60, 80]);
            let nr = dice.pick(&[0, 1, width / 3, width / 3 + 1, width / 2, width]);
            // No balance has looked at one in ten.
            let noted = dice.chance(90);
            let load = noted.then_some((width * 1024 * percent / 100, nr));
            self.state.full[cpu] = load.unwrap_or_default();
            self.state.spread[cpu] = (dice.range(0, 1024), dice.pick(&[0, 0, 1, 3]));
        }
        if leaders.is_empty() || dice.chance(20) {
            return;
        }
        let own = dice.pick(&leaders);
        let llc = shape.llc[own].as_deref().unwrap_or_default();
        let mut llcs = vec![own];
        if dice.chance(40) {
            llcs.extend(leaders.iter().filter(|&&c| c != own && dice.chance(50)));
        }
        llcs.sort_unstable();
        let width = llc.len() as u32;
        self.home = Some(Home {
            threads: dice.pick(&[1, 2, width - 1, width, 4 * width]),
            pref: dice.chance(85).then(|| dice.pick(llc)),
            llcs,
        });
    }

    /// The LLC of the wakee is too busy for a look, and some of its CPUs run SCHED_IDLE tasks only.
    fn crowd(&mut self, shape: &Shape, dice: &mut Dice) {
        let llc = shape.llc[self.wake.prev].as_deref().unwrap_or_default();
        for &cpu in llc {
            self.busy(cpu, 1);
            self.state.sched_idle[cpu] = cpu != self.wake.prev && dice.chance(30);
        }
        if let Some(first) = llc.first() {
            self.state.scan[*first] = 0;
        }
    }

    /// A busy waker about to sleep, and prev or recent idle: what leads deep into the search.
    fn make_likelier(&mut self, dice: &mut Dice) {
        if dice.chance(40) {
            let this = self.wake.this;
            (self.state.idle[this], self.state.sched_idle[this]) = (false, false);
            self.state.cpus[this].nr_running = 1;
            self.state.cpus[this].nr_delayed = 0;
            self.wake.sync = true;
        }
        for cpu in [Some(self.wake.prev), self.wakee.recent].into_iter().flatten() {
            if cpu != self.wake.this && dice.chance(25) {
                (self.state.idle[cpu], self.state.sched_idle[cpu]) = (true, false);
                self.state.cpus[cpu].nr_running = 0;
                self.state.cpus[cpu].nr_delayed = 0;
            }
        }
    }
}

/// A CPU that shares something with `cpu`, or any.
fn relative(shape: &Shape, dice: &mut Dice, cpu: usize) -> usize {
    let any: Vec<usize> = (0..shape.nr_cpus()).collect();
    let among = match dice.below(8) {
        0 => &shape.core[cpu],
        1 => shape.cluster[cpu].as_ref().unwrap_or(&any),
        2..=5 => shape.llc[cpu].as_ref().unwrap_or(&any),
        _ => &any,
    };
    dice.pick(among)
}

fn affinity(shape: &Shape, dice: &mut Dice, prev: usize) -> Vec<bool> {
    let n = shape.nr_cpus();
    let mut allowed = vec![false; n];
    match dice.below(30) {
        0 => {}
        1 => allowed[dice.below(n)] = true,
        2 | 3 => shape.llc[prev].iter().flatten().for_each(|&c| allowed[c] = true),
        4 => shape.llc[dice.below(n)].iter().flatten().for_each(|&c| allowed[c] = true),
        5..=10 => {
            let percent = dice.pick(&[3, 20, 50, 90]);
            allowed.iter_mut().for_each(|a| *a = dice.chance(percent));
        }
        _ => allowed.fill(true),
    }
    allowed
}
