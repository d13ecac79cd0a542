// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class in cases that can be worked out by hand: order, slices, preemption, where
//! wake-ups go, and the time that is left to fair tasks.

use std::io;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Topology};
use perch_sim::workload::{Class, Op, TaskSpec};
use perch_sim::{Asked, Dist, Glimpse, Metrics, Scenario, Switched, Watch, Woken};

use crate::common::{ERAS, MS, checked, hog, last, machine, of_tasks, scenario, task, traced};

/// This much work, milliseconds, once.
fn work(ms: u64) -> Vec<Op> {
    vec![Op::Run(Dist::Const(ms * MS)), Op::Exit]
}

/// This much work and then this long a sleep, milliseconds both, for ever.
fn turns(run_ms: u64, sleep_ms: u64) -> Vec<Op> {
    vec![Op::Run(Dist::Const(run_ms * MS)), Op::Sleep(Dist::Const(sleep_ms * MS)), Op::Jump(0)]
}

fn spec(machine: &Machine, program: Vec<Op>, class: Class, at_ms: u64, cpus: &[usize]) -> TaskSpec {
    TaskSpec {
        class,
        start: Some(Dist::Const(at_ms * MS)),
        ..task(machine, program, cpus.iter().copied())
    }
}

fn of(
    machine: &Arc<Machine>,
    era: Era,
    tasks: Vec<TaskSpec>,
    channels: usize,
    ms: u64,
) -> Scenario {
    let load = of_tasks(machine, "by hand", tasks, channels);
    scenario(machine, era, load, [0, ms])
}

/// The time that each task has run at these moments; milliseconds both.
fn ran_at(scenario: &Scenario, moments_ms: &[u64]) -> Vec<Vec<f64>> {
    let mut seen: Vec<Glimpse> = Vec::new();
    checked(scenario, MS, |now| seen.push(now.clone()));
    let ran = |ms: &u64| {
        let now = seen.iter().find(|g| g.now_ns >= ms * MS);
        let now = now.expect("a moment of the run");
        now.tasks.iter().map(|t| t.ran_ns as f64 / MS as f64).collect()
    };
    moments_ms.iter().map(ran).collect()
}

/// As expected to a tenth of a millisecond: switches take their time.
fn close(ran: &[f64], expected: &[f64]) {
    let near = ran.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.1);
    assert!(near && ran.len() == expected.len(), "{ran:?}, not {expected:?}");
}

#[test]
fn fifo_tasks_run_in_order_and_the_preempted_goes_on_first() {
    let m = machine("jacobsville");
    for era in ERAS {
        let tasks = vec![
            spec(&m, work(10), Class::Fifo(10), 0, &[3]),
            spec(&m, work(10), Class::Fifo(10), 1, &[3]),
            spec(&m, work(3), Class::Fifo(20), 2, &[3]),
            spec(&m, hog(), Class::Fair, 0, &[3]),
        ];
        // 0 to 2, then the higher one to 5, then the rest of the first to 13, then the second.
        let ran = ran_at(&of(&m, era, tasks, 0, 30), &[4, 9, 14, 22]);
        close(&ran[0][..3], &[2.0, 0.0, 2.0]);
        close(&ran[1][..3], &[6.0, 0.0, 3.0]);
        close(&ran[2][..3], &[10.0, 1.0, 3.0]);
        close(&ran[3][..3], &[10.0, 9.0, 3.0]);
        assert!(ran[3][3] < 0.1, "{era}: a fair task ran beside real-time ones");
    }
}

#[test]
fn round_robin_shares_by_slices_of_100_ms_and_fifo_does_not() {
    let m = machine("jacobsville");
    let two = |first, second| {
        let tasks = [first, second].map(|class| spec(&m, hog(), class, 0, &[0]));
        ran_at(&of(&m, Era::V6_15, tasks.to_vec(), 0, 450), &[90, 190, 290, 390])
    };
    for (ran, expected) in two(Class::Rr(5), Class::Rr(5)).iter().zip([
        [90.0, 0.0],
        [100.0, 90.0],
        [190.0, 100.0],
        [200.0, 190.0],
    ]) {
        let near = ran.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 4.1);
        assert!(near, "{ran:?}, not {expected:?} but for a tick");
    }
    let fifo = two(Class::Fifo(5), Class::Fifo(5));
    assert!(fifo[3][1] < 0.1, "the second never gets its turn: {fifo:?}");
    let mixed = two(Class::Rr(5), Class::Fifo(5));
    assert!((mixed[3][0] - 100.0).abs() <= 4.1, "one slice and no more: {mixed:?}");
}

#[test]
fn who_yields_goes_behind_its_equals() {
    let m = machine("jacobsville");
    let program = vec![Op::Run(Dist::Const(MS)), Op::Yield, Op::Jump(0)];
    let tasks = [9, 9, 9, 8].map(|p| spec(&m, program.clone(), Class::Fifo(p), 0, &[1]));
    let ran = ran_at(&of(&m, Era::V7_2, tasks.to_vec(), 0, 100), &[90]);
    for (id, ms) in ran[0].iter().enumerate() {
        let expected = if id < 3 { 30.0 } else { 0.0 };
        assert!((ms - expected).abs() < 1.5, "{:?}", ran[0]);
    }
}

/// A pinned FIFO task that never stops, beside a fair one.
fn runaway(era: Era, fair: bool) -> (Glimpse, Metrics) {
    let m = machine("jacobsville");
    let mut tasks = vec![spec(&m, hog(), Class::Fifo(99), 0, &[2])];
    if fair {
        tasks.push(spec(&m, hog(), Class::Fair, 0, &[2]));
    }
    last(&of(&m, era, tasks, 0, 10_000), 5 * MS)
}

#[test]
fn a_runaway_task_leaves_fair_ones_their_share() {
    for era in ERAS {
        let (last, metrics) = runaway(era, true);
        let share = last.tasks[1].ran_ns as f64 / last.now_ns as f64;
        assert!((0.04..0.06).contains(&share), "{era}: {share}");
        assert!((8..=11).contains(&metrics.rt.limited), "{era}: {:?}", metrics.rt);
    }
}

#[test]
fn alone_it_is_throttled_up_to_6_11_and_never_since() {
    for era in ERAS {
        let (last, _) = runaway(era, false);
        let share = last.tasks[0].ran_ns as f64 / last.now_ns as f64;
        match era {
            Era::V3_4 | Era::V5_5 | Era::V6_5 => {
                assert!((0.94..0.96).contains(&share), "{era}: {share}");
            }
            _ => assert!(share > 0.999, "{era}: {share}"),
        }
    }
}

#[test]
fn fair_tasks_that_get_their_50_ms_anyway_are_not_served() {
    let m = machine("jacobsville");
    // Real-time 90 % of the time, in periods of 10 ms.
    let program = turns(9, 1);
    let tasks =
        vec![spec(&m, program, Class::Fifo(1), 0, &[2]), spec(&m, hog(), Class::Fair, 0, &[2])];
    let metrics = checked(&of(&m, Era::V6_15, tasks, 0, 5000), 5 * MS, |_| {});
    assert_eq!(metrics.rt.limited, 0);
}

/// The lines of a trace of real-time moves: task, where it was, where it goes, why.
fn moves(trace: &str) -> Vec<(usize, usize, usize, &str)> {
    let number = |line: &str, key: &str| -> usize {
        let rest = line.split(key).nth(1).expect(key);
        rest.split(' ').next().and_then(|n| n.parse().ok()).expect(key)
    };
    let real_time = trace.lines().filter(|line| line.contains(" rt="));
    let read = real_time.map(|line| {
        let why = line.rsplit("rt=").next().expect("a reason");
        (number(line, " task="), number(line, " prev="), number(line, " cpu="), why)
    });
    read.collect()
}

#[test]
fn a_higher_wakee_stays_and_the_lower_one_is_pushed_away() {
    let m = machine("jacobsville");
    let sleeper = vec![Op::Sleep(Dist::Const(5 * MS)), Op::Run(Dist::Const(2 * MS)), Op::Exit];
    let tasks = vec![
        spec(&m, sleeper, Class::Fifo(50), 0, &[0, 1]),
        spec(&m, hog(), Class::Fifo(10), 1, &[0, 1]),
    ];
    let (trace, outcome) = traced(&of(&m, Era::V6_15, tasks, 0, 20));
    let moves = moves(&trace);
    let cpu = moves[0].2;
    let hog_at = moves[1].2;
    let wake = moves.iter().find(|(task, _, _, why)| *task == 0 && *why == "stay");
    assert!(wake.is_some(), "{trace}");
    if cpu == hog_at {
        let other = 1 - hog_at;
        assert!(moves.contains(&(1, hog_at, other, "push")), "{trace}");
        assert_eq!(outcome.metrics.rt.pushes, 1);
    }
}

#[test]
fn an_equal_wakee_goes_where_something_lower_runs() {
    let m = machine("jacobsville");
    let sleeper = vec![
        Op::Run(Dist::Const(MS)),
        Op::Sleep(Dist::Const(5 * MS)),
        Op::Run(Dist::Const(2 * MS)),
        Op::Exit,
    ];
    // The sleeper has CPU 0; the hog is pinned there and comes while it sleeps.
    let tasks = vec![
        spec(&m, sleeper, Class::Fifo(50), 0, &[0, 1]),
        spec(&m, hog(), Class::Fifo(50), 3, &[0]),
        // The higher one on CPU 1 leaves at 4 ms.
        spec(&m, work(4), Class::Fifo(60), 0, &[1]),
        spec(&m, vec![Op::Sleep(Dist::Const(4 * MS)), Op::Exit], Class::Fifo(1), 0, &[1]),
    ];
    let (trace, outcome) = traced(&of(&m, Era::V7_2, tasks, 0, 20));
    let moves = moves(&trace);
    assert!(moves.contains(&(0, 0, 1, "lowest")), "{trace}");
    assert_eq!(outcome.metrics.rt.lowest, 1);
}

#[test]
fn a_cpu_that_becomes_free_pulls_who_waits() {
    let m = machine("jacobsville");
    for era in ERAS {
        let tasks = vec![
            spec(&m, hog(), Class::Fifo(50), 0, &[0]),
            spec(&m, work(6), Class::Fifo(50), 0, &[1]),
            // Waits on one of them until the second is done.
            spec(&m, work(3), Class::Fifo(40), 1, &[0, 1]),
        ];
        let scenario = of(&m, era, tasks, 0, 20);
        let (trace, outcome) = traced(&scenario);
        let ran = ran_at(&scenario, &[5, 10]);
        assert!(ran[0][2] < 0.01 && (ran[1][2] - 3.0).abs() < 0.1, "{ran:?}");
        let waits_at = moves(&trace).iter().find(|m| m.0 == 2).map(|m| m.2);
        let pulled = moves(&trace).contains(&(2, 0, 1, "pull"));
        assert_eq!(pulled, waits_at == Some(0), "{trace}");
        assert!(outcome.metrics.rt.pull_reads >= 2, "{:?}", outcome.metrics.rt);
    }
}

#[test]
fn a_real_time_task_takes_the_cpu_from_a_fair_one_at_once() {
    let m = machine("jacobsville");
    let sleeper = vec![Op::Run(Dist::Const(100_000)), Op::Sleep(Dist::Const(MS)), Op::Jump(0)];
    for era in ERAS {
        let mut tasks = vec![spec(&m, sleeper.clone(), Class::Rr(1), 0, &[5])];
        tasks.extend((0..4).map(|_| spec(&m, hog(), Class::Fair, 0, &[5])));
        let metrics = checked(&of(&m, era, tasks, 0, 300), MS, |_| {});
        // Rounds of 1.1 ms; waiting for a slice of the fair ones would make them 3 to 12.
        assert!((255..=273).contains(&metrics.rt.wakeups), "{era}: {:?}", metrics.rt);
    }
}

#[test]
fn on_unequal_cpus_it_goes_to_a_large_one_that_runs_nothing_higher() {
    let m = machine("juno");
    let topology = Topology::new(&m);
    let all: Vec<usize> = (0..m.cpus.len()).collect();
    let nap = turns(1, 1);
    let run = |uclamp| {
        let mut one = spec(&m, nap.clone(), Class::Fifo(30), 0, &all);
        one.uclamp = uclamp;
        topology.capacity(last(&of(&m, Era::V6_15, vec![one], 0, 50), MS).0.tasks[0].cpu)
    };
    // Without a word on utilisation real-time tasks ask for all.
    assert_eq!(run((0, 1024)), 1024);
    // A task that asks for little stays where it is: the draw of seed 1.
    assert!(run((1, 1024)) <= 1024);
}

#[test]
fn capacity_for_fair_tasks_is_what_real_time_leaves() {
    let m = machine("jacobsville");
    // A fair pair that could run anywhere avoids no CPU by its idleness alone: the real-time
    // task takes 80 % of CPU 0, and balancing sees that.
    let busy = turns(8, 2);
    let tasks =
        vec![spec(&m, busy, Class::Fifo(2), 0, &[0]), spec(&m, hog(), Class::Fair, 0, &[0, 1])];
    let (last, _) = last(&of(&m, Era::V7_2, tasks, 0, 2000), 10 * MS);
    assert!((0.7..0.9).contains(&(1.0 - f64::from(last.cpus[0].capacity) / 1024.0)), "{last:?}");
    assert_eq!(last.cpus[1].capacity, 1024);
}

/// Sees the capacities of CPUs and groups at every choice.
#[derive(Default)]
struct Capacities {
    /// By CPU, the smallest and the largest capacity that it has had.
    range: Vec<(u32, u32)>,
    lowered: u64,
    old: u64,
}

impl Watch for Capacities {
    fn asked(&mut self, asked: &Asked) -> io::Result<()> {
        let (host, topology) = (asked.host, asked.host.topology());
        self.range.resize(topology.nr_cpus(), (u32::MAX, 0));
        for (cpu, range) in self.range.iter_mut().enumerate() {
            let now = host.cpu(cpu).capacity;
            *range = (range.0.min(now), range.1.max(now));
        }
        for domain in topology.domains(0) {
            for group in (0..domain.groups()).map(|g| domain.group(g)) {
                let sum = |of: &dyn Fn(usize) -> u32| group.iter().map(of).sum::<u32>();
                let (capacity, _) = host.group_capacity(group.number());
                let least = sum(&|c| self.range[c].0);
                let most = sum(&|c| self.range[c].1);
                assert!((least..=most).contains(&capacity), "{capacity} of {}", group.number());
                self.lowered += u64::from(capacity < 1024 * group.weight());
                self.old += u64::from(capacity != sum(&|c| host.cpu(c).capacity));
            }
        }
        Ok(())
    }

    fn woken(&mut self, _: &Woken) -> io::Result<()> {
        Ok(())
    }

    fn switched(&mut self, _: &Switched) -> io::Result<()> {
        Ok(())
    }

    fn loaded(&mut self, _: u64, _: usize, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn ended(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// A pass updates the capacity of its own group, so a group's is one that its CPUs have had, and at
/// times no longer have.
#[test]
fn capacity_of_a_group_is_that_of_its_last_pass() {
    let m = machine("jacobsville");
    let busy = turns(30, 30);
    let nap = turns(1, 1);
    let tasks = vec![
        spec(&m, busy, Class::Fifo(2), 0, &[0]),
        spec(&m, nap, Class::Fair, 0, &[0, 1, 2, 3]),
        spec(&m, hog(), Class::Fair, 0, &[0, 1]),
        spec(&m, hog(), Class::Fair, 0, &[1, 2]),
    ];
    let mut seen = Capacities::default();
    of(&m, Era::V7_2, tasks, 0, 1000).run_watched(&mut seen).expect("a scenario that runs");
    assert!(seen.lowered > 100 && seen.old > 100, "{} {}", seen.lowered, seen.old);
}
