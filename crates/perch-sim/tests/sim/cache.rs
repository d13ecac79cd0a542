// SPDX-License-Identifier: GPL-2.0-or-later
//! Cache-aware wake-up in the kernel around it: the figures it goes by and their age, the tasks that
//! stay in an LLC, and the counts.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{CacheStep, Era, Mode, Modes, Policy};
use perch_sim::workload::{Op, Space, TaskSpec, Workload};
use perch_sim::{Dist, Glimpse, Metrics, Scenario};
use proptest::prelude::*;

use crate::common::{
    MS, checked, config, decisions, hog, of_tasks, scenario, task, traced, wakee, waker, workload,
};
use crate::load::random;

const ON: [Mode; 3] = [Mode::Posted, Mode::Upstream, Mode::Perch];

/// A package with two LLCs of this many CPUs each, without threads.
fn two_llcs(cpus: usize) -> Arc<Machine> {
    let machine = Machine::regular("two-llcs", 1, 1, 2, 0, cpus, 1);
    Arc::new(machine.expect("a machine"))
}

fn with(scenario: Scenario, cache: Mode) -> Scenario {
    let modes = Modes { cache, ..scenario.policy.modes() };
    Scenario { policy: Policy::new(scenario.policy.era(), modes), ..scenario }
}

/// One process that has all of these tasks.
fn process(machine: &Machine, name: &str, tasks: Vec<TaskSpec>, channels: usize) -> Workload {
    let tasks = tasks.into_iter().map(|task| TaskSpec { space: Some(0), ..task });
    Workload {
        spaces: vec![Space::default()],
        ..of_tasks(machine, name, tasks.collect(), channels)
    }
}

fn llc(machine: &Machine, cpu: usize) -> usize {
    machine.cpus[cpu].llc as usize
}

fn without_processes(mut scenario: Scenario) -> Scenario {
    let tasks = scenario.workload.tasks.iter_mut();
    tasks.for_each(|task| task.space = None);
    scenario.workload.spaces.clear();
    scenario
}

proptest! {
    #![proptest_config(config(20))]

    /// Off is a kernel that knows of no processes, and no mode concerns a task that has no
    /// process.
    #[test]
    fn off_and_tasks_without_a_process_are_alike(seed in any::<u64>().no_shrink()) {
        let off = with(random(seed, 24), Mode::Off);
        let plain = traced(&without_processes(off.clone()));
        prop_assert!(traced(&off) == plain, "seed {}: off asks for processes", seed);
        // 7.2 moves no task to a CPU where it would be a misfit, whatever process it belongs to.
        let mode = ON[(seed % 3) as usize];
        let unequal = off.machine.cpus.iter().any(|cpu| cpu.capacity < 1024);
        prop_assume!(mode != Mode::Upstream || !unequal);
        let on = with(without_processes(off), mode);
        prop_assert!(traced(&on) == plain, "seed {}: a task without one is moved", seed);
    }

    /// P3: where there is one LLC every mode is off.
    #[test]
    fn one_llc_leaves_nothing_to_choose(seed in any::<u64>().no_shrink()) {
        let mut scenario = random(seed, 24);
        let mut machine = Machine::clone(&scenario.machine);
        let first = machine.cpus[0].clone();
        for cpu in &mut machine.cpus {
            (cpu.package, cpu.node) = (first.package, first.node);
            (cpu.llc, cpu.declared_llc) = (first.llc, first.declared_llc);
        }
        scenario.topology = perch_policy::Topology::new(&machine);
        scenario.machine = Arc::new(machine);
        prop_assert!(scenario.topology.nr_llcs() <= 1);
        let off = traced(&with(scenario.clone(), Mode::Off));
        for mode in ON {
            prop_assert!(traced(&with(scenario.clone(), mode)) == off, "seed {}: {}", seed, mode);
        }
    }

    /// P8 in whole traces: 7.2 has no step in the wake-up path. A task that the mechanism sent to
    /// another LLC without an idle CPU goes back to the LLC of its previous CPU or of its waker,
    /// and the search looks at no CPU of the two LLCs twice.
    #[test]
    fn a_wake_up_is_tried_twice_at_most(seed in any::<u64>().no_shrink()) {
        let scenario = random(seed, 48);
        let trace = traced(&scenario).0;
        let mode = scenario.policy.modes().cache;
        if matches!(mode, Mode::Off | Mode::Upstream) {
            prop_assert!(!trace.contains(" cache="), "{}: {}", mode, trace);
        }
        let topology = &scenario.topology;
        for (line, d) in trace.lines().zip(decisions(&trace)) {
            if line.ends_with(" cache=returned") && d.reason != "affinity" {
                let at = [d.cpu, d.prev, d.waker].map(|cpu| topology.llc(cpu));
                prop_assert!(d.reason == "fallback" || at[1..].contains(&at[0]), "{}", line);
            }
        }
    }
}

/// How far apart the statistics of LLCs were written, and how old they got, nanoseconds.
fn notes(scenario: &Scenario) -> Vec<u64> {
    let mut seen: Vec<Vec<u64>> = vec![Vec::new(); scenario.topology.nr_llcs()];
    checked(scenario, MS, |now| {
        for (times, load) in seen.iter_mut().zip(&now.loads) {
            if let Some(at) = load.noted_ns
                && times.last() != Some(&at)
            {
                times.push(at);
            }
        }
    });
    let gaps = seen.iter().flat_map(|t| t.windows(2).map(|w| w[1] - w[0]));
    gaps.collect()
}

/// docs/mechanisms/cache.md#defects, the rush: span-weight milliseconds while there are idle CPUs to balance, up to
/// twice that, and 16 times as much when all are busy. Each of the two LLCs has a CPU that
/// balances for it and writes both LLCs' figures, so the pauses between two writes are shorter
/// than an interval, and no figure is older than the longest interval.
#[test]
fn statistics_are_as_old_as_the_interval_of_the_domain_above() {
    let machine = two_llcs(8);
    let span_ns = 16 * MS;
    for (mode, era) in [(Mode::Posted, Era::V6_15), (Mode::Upstream, Era::V7_2)] {
        let busy = |cpus: usize| {
            let tasks = (0..cpus).map(|cpu| task(&machine, hog(), cpu..cpu + 1));
            let load = process(&machine, "pinned hogs", tasks.collect(), 0);
            with(scenario(&machine, era, load, [0, 6000]), mode)
        };
        let gaps = notes(&busy(16));
        let longest = gaps.iter().max().expect("it was written down");
        assert!(gaps.len() >= 12, "{mode}: {gaps:?}");
        assert!((16 * span_ns / 2..=32 * span_ns).contains(longest), "{mode}: {} ms", longest / MS);
        // Two busy CPUs in one LLC wake the idle ones to balance.
        let gaps = notes(&busy(2));
        let longest = gaps.iter().max().expect("it was written down");
        assert!(
            (span_ns / 2..=2 * span_ns + 8 * MS).contains(longest),
            "{mode}: {} ms with idle CPUs",
            longest / MS
        );
    }
}

#[test]
fn newly_idle_cpus_write_no_statistics() {
    // All but two CPUs are busy for good; those run out of tasks every millisecond.
    let machine = two_llcs(8);
    let mut tasks: Vec<TaskSpec> = (0..14).map(|i| task(&machine, hog(), [i + i / 7])).collect();
    let blink = vec![Op::Run(Dist::Const(MS)), Op::Sleep(Dist::Const(MS)), Op::Jump(0)];
    tasks.extend([7, 15].map(|cpu| task(&machine, blink.clone(), [cpu])));
    let load = process(&machine, "hogs and blinkers", tasks, 0);
    let scenario = with(scenario(&machine, Era::V6_15, load, [0, 2000]), Mode::Posted);
    let gaps = notes(&scenario);
    let shortest = gaps.iter().min().expect("it was written down");
    assert!(*shortest >= 4 * MS, "written {shortest} ns after the last time");
}

/// Hogs of a process in the first LLC, and sleepers of it that all run at once, again and again.
fn rush(machine: &Arc<Machine>, sleepers: usize, mode: Mode) -> (u32, Metrics) {
    let cpus = machine.cpus.len();
    let half = cpus / 2;
    let mut tasks: Vec<TaskSpec> = (0..3).map(|cpu| task(machine, hog(), cpu..cpu + 1)).collect();
    // Alone on its own CPU in the other LLC, it wakes them one after the other.
    let mut waker = vec![Op::Sleep(Dist::Const(100 * MS))];
    for channel in 0..sleepers as u32 {
        waker.push(Op::Send { channel, lines: 0, sync: false });
    }
    waker.push(Op::Jump(0));
    tasks.push(task(machine, waker, cpus - 1..cpus));
    for channel in 0..sleepers as u32 {
        let program = vec![Op::Receive { channel }, Op::Run(Dist::Const(5 * MS)), Op::Jump(0)];
        tasks.push(task(machine, program, 0..cpus - 1));
    }
    let load = process(machine, "a rush", tasks, sleepers);
    let scenario = with(scenario(machine, Era::V6_15, load, [0, 2000]), mode);
    let mut most = 0;
    let metrics = checked(&scenario, MS, |now| most = most.max(awake_in(machine, now, 0, half)));
    (most, metrics)
}

/// Tasks that run or wait on the first `cpus` CPUs of an LLC.
fn awake_in(machine: &Machine, now: &Glimpse, number: usize, cpus: usize) -> u32 {
    let cpus = now.cpus.iter().enumerate().take(cpus * (number + 1));
    let here = cpus.filter(|(cpu, _)| llc(machine, *cpu) == number);
    here.map(|(_, c)| c.nr).sum()
}

#[test]
fn wake_ups_rush_in_between_two_looks_unless_they_are_reserved() {
    // 20 sleepers and 3 hogs: more threads than one LLC has CPUs, so that posted checks its
    // figures; those are of calm moments when the burst comes.
    let machine = two_llcs(16);
    let (posted, counted) = rush(&machine, 20, Mode::Posted);
    let (perch, reserved) = rush(&machine, 20, Mode::Perch);
    let redirected = |m: &Metrics| m.by_cache_step[CacheStep::Redirected as usize];
    assert!(redirected(&counted) > 0 && redirected(&reserved) > 0);
    // Posted stops at a third of the LLC's CPUs, if it knew; perch at four fifths of its cores.
    assert!(posted >= 14, "{posted} of 16 CPUs: nobody rushed");
    assert!(perch <= 13, "{perch} tasks on 16 CPUs");
}

/// Three threads on 32 CPUs: while none of its CPUs needs help, an LLC has no statistics for
/// seconds. posted takes it for unused all that time, and sends the wakee there.
#[test]
fn posted_acts_on_a_mostly_idle_machine() {
    let machine = two_llcs(16);
    let tasks = vec![
        task(&machine, hog(), [16]),
        task(&machine, waker(Op::Sleep(Dist::Const(20 * MS))), [17]),
        task(&machine, wakee(MS), 0..32),
    ];
    let load = process(&machine, "mostly idle", tasks, 1);
    let run = scenario(&machine, Era::V6_15, load, [0, 200]);
    let metrics = with(run, Mode::Posted).run().expect("it runs").metrics;
    let steps = metrics.by_cache_step;
    assert!(steps[CacheStep::Redirected as usize] > 0, "{steps:?}");
    assert_eq!(steps[CacheStep::FullUtil as usize], 0, "{steps:?}");
}

/// A task that is woken in turns by two others, each on a CPU of its own LLC; it follows them.
fn to_and_fro(pause_ns: u64) -> Metrics {
    let machine = two_llcs(4);
    let waker = |start| {
        vec![
            Op::Sleep(Dist::Const(start)),
            Op::Send { channel: 0, lines: 0, sync: true },
            Op::Sleep(Dist::Const(2 * pause_ns - start)),
            Op::Jump(0),
        ]
    };
    let tasks = vec![
        task(&machine, waker(MS), [0]),
        task(&machine, waker(MS + pause_ns), [4]),
        task(&machine, wakee(1000), 0..8),
    ];
    let load = process(&machine, "to and fro", tasks, 1);
    let outcome = scenario(&machine, Era::V6_15, load, [0, 2000]).run();
    outcome.expect("a scenario that runs").metrics
}

#[test]
fn a_change_that_is_soon_undone_is_a_bounce() {
    for (pause_ns, bounces) in [(10 * MS, true), (49 * MS, true), (60 * MS, false)] {
        let metrics = to_and_fro(pause_ns);
        let wakes = 2000 * MS / pause_ns;
        let (changes, back) = (metrics.llc_changes, metrics.bounces);
        assert!(changes >= wakes - 3, "{pause_ns}: {changes} of {wakes}");
        // The first time it goes there is no way back yet.
        let expected = if bounces { changes - 1 } else { 0 };
        assert_eq!(back, expected, "{pause_ns}: of {changes} changes");
    }
}

/// Shares of time that the threads of each of two processes spent in the LLC that they prefer,
/// after six seconds: 7.2 has its balancer alone, and that takes its time.
fn gathered(mode: Mode) -> Vec<f64> {
    let machine = two_llcs(16);
    let half = |first: usize| {
        let burst = vec![Op::Run(Dist::Const(2 * MS)), Op::Sleep(Dist::Const(2 * MS)), Op::Jump(0)];
        // Five threads are bound to its LLC, the other two start where they like. Each that has a
        // CPU for itself occupies it, so the five must be more than twice the others.
        let bound = (first..first + 5).map(|cpu| task(&machine, hog(), cpu..cpu + 1));
        let free = task(&machine, burst, 0..32);
        bound.chain([free.clone(), free]).collect::<Vec<_>>()
    };
    let tasks: Vec<TaskSpec> = [half(0), half(16)].concat();
    let tasks = tasks
        .into_iter()
        .enumerate()
        .map(|(i, task)| TaskSpec { space: Some(i as u32 / 7), ..task });
    let load = Workload {
        spaces: vec![Space::default(); 2],
        ..of_tasks(&machine, "two processes", tasks.collect(), 0)
    };
    let mut home = [0.0; 2];
    let mut looks = 0.0;
    let scenario = with(scenario(&machine, Era::V7_2, load, [6000, 1000]), mode);
    checked(&scenario, MS, |now| {
        if now.now_ns <= 6000 * MS {
            return;
        }
        looks += 2.0;
        for (i, t) in now.tasks.iter().enumerate().filter(|(i, _)| i % 7 > 4) {
            home[i / 7] += f64::from(u8::from(llc(&machine, t.cpu) == i / 7));
        }
    });
    home.map(|n| n / looks).to_vec()
}

#[test]
fn balancing_brings_tasks_to_the_llc_that_they_prefer() {
    for mode in ON {
        let shares = gathered(mode);
        assert!(shares.iter().all(|share| *share > 0.9), "{mode}: {shares:?}");
    }
    let shares = gathered(Mode::Off);
    assert!(shares.iter().any(|share| *share < 0.9), "off gathers them too: {shares:?}");
}

#[test]
fn a_busy_process_leaves_no_llc_idle() {
    let machine = two_llcs(4);
    for mode in ON {
        let tasks = (0..8).map(|_| task(&machine, hog(), 0..8)).collect();
        let load = process(&machine, "eight hogs", tasks, 0);
        let scenario = with(scenario(&machine, Era::V6_15, load, [1000, 500]), mode);
        checked(&scenario, MS, |now| {
            let idle = now.cpus.iter().filter(|c| c.idle).count();
            assert!(now.now_ns < 1000 * MS || idle == 0, "{mode}: {idle} idle");
        });
    }
}

#[test]
fn a_scan_is_paid_by_the_thread_that_does_it() {
    // Two hogs of one process, or of two processes, on CPUs of their own: what differs is the scans.
    let mut machine = Machine::clone(&two_llcs(8));
    machine.hardware.examine_ns = 5000;
    let machine = Arc::new(machine);
    let work = |spaces: [u32; 2], mode| {
        let tasks = [0, 1].map(|cpu| TaskSpec {
            space: Some(spaces[cpu]),
            ..task(&machine, hog(), cpu..cpu + 1)
        });
        let load = Workload {
            spaces: vec![Space::default(); 2],
            ..of_tasks(&machine, "two hogs", tasks.to_vec(), 0)
        };
        let run = with(scenario(&machine, Era::V6_15, load, [0, 1000]), mode).run();
        run.expect("a scenario that runs").metrics.counted as f64
    };
    let off = work([0, 1], Mode::Off);
    for mode in ON {
        // 16 CPUs of 5 us every 10 ms, and one thread of the two at a time.
        let scans = 16.0 * 5e-6 / 10e-3 / 2.0;
        // Only posted scans for a process with one thread.
        let alone = if mode == Mode::Posted { 2.0 } else { 0.0 };
        for (spaces, expected) in [([0, 0], scans), ([0, 1], alone * scans)] {
            let lost = 1.0 - work(spaces, mode) / off;
            assert!(
                (lost - expected).abs() <= expected / 4.0,
                "{mode}: {lost} lost with {spaces:?}, not {expected}"
            );
        }
    }
}

/// Two processes of one thread each that pass a byte to and fro: what is left of the mechanism is its
/// accounting, 120 instructions for each of the two runs of a round.
#[test]
fn accounting_takes_its_time() {
    let machine = two_llcs(8);
    let round_ns = |mode| {
        let load = workload(&machine, "pipe:pairs=1");
        let run = with(scenario(&machine, Era::V6_15, load, [50, 400]), mode).run();
        let rounds = run.expect("a scenario that runs").metrics.counted;
        400e6 / rounds as f64
    };
    let hardware = &machine.hardware;
    let ghz = f64::from(hardware.frequency_mhz) / 1000.0;
    let ipc = f64::from(hardware.core.instructions_per_100_cycles) / 100.0;
    let expected = 2.0 * 120.0 / (ghz * ipc);
    let off = round_ns(Mode::Off);
    for mode in ON {
        let more = round_ns(mode) - off;
        // Scans, where a process with one thread makes them, take 16 CPUs' time every 10 ms.
        assert!(
            (expected - 2.0..expected * 1.5).contains(&more),
            "{mode}: {more} ns more than {off}, not {expected}"
        );
    }
}
