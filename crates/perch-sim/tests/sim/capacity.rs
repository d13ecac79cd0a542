// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines whose CPUs differ in capacity: the averages of tasks there, misfits, and the CPUs to which
//! the balancer takes tasks.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Mode, Modes, Policy};
use perch_sim::workload::{Op, TaskSpec};
use perch_sim::{Dist, Glimpse, Scenario};
use proptest::prelude::*;

use crate::common::{
    MS, SCANNING, checked, config, decisions, ends, hog, machine, of_tasks, piled_up, scenario,
    task, traced, workload,
};
use crate::load::Dice;

const LIBRARY: [&str; 3] = ["juno", "pixel3", "pixel3-phantom"];

/// A machine of two or three kinds of CPUs, one to four of each, at least a quarter apart (5.5
/// calls nothing less larger): in one LLC, or in one for each kind.
fn unequal(seed: u64) -> Arc<Machine> {
    let mut dice = Dice::new(seed);
    let mut capacities = vec![1024];
    for _ in 0..dice.range(1, 2) {
        let last = capacities[capacities.len() - 1];
        capacities.push(dice.range(last / 4, last * 3 / 4));
    }
    let (mut text, mut llcs, mut first) = (String::new(), String::new(), 0);
    // The largest are first or last, as boards have it.
    if dice.range(0, 1) == 0 {
        capacities.reverse();
    }
    for capacity in capacities {
        let last = first + dice.range(0, 3);
        llcs += &format!("[[llc]]\ncpus = \"{first}-{last}\"\n");
        text += &format!("[[capacity]]\ncpus = \"{first}-{last}\"\nvalue = {capacity}\n");
        first = last + 1;
    }
    if dice.range(0, 1) == 0 {
        llcs = format!("[[llc]]\ncpus = \"0-{}\"\n", first - 1);
    }
    let text = format!("name = \"unequal\"\n{llcs}{text}");
    Arc::new(Machine::from_toml_str(&text, "unequal.toml").expect("a machine"))
}

/// The CPUs of the largest capacity, and the others.
fn kinds(machine: &Machine) -> (Vec<usize>, Vec<usize>) {
    (0..machine.cpus.len()).partition(|&c| machine.cpus[c].capacity == 1024)
}

/// `n` hogs that may run everywhere and start on one CPU.
fn hogs_from(machine: &Machine, n: usize, start: usize) -> Vec<TaskSpec> {
    piled_up(machine, n, start, &(0..machine.cpus.len()).collect::<Vec<_>>())
}

/// A task that runs `work_ns` of full capacity every `period_ns`, by a timer.
fn periodic(work_ns: u64, period_ns: u64) -> Vec<Op> {
    vec![Op::Run(Dist::Const(work_ns)), Op::Count, Op::Sleep(Dist::Const(period_ns)), Op::Jump(0)]
}

/// The CPUs that run something.
fn running(now: &Glimpse) -> Vec<usize> {
    let cpus = 0..now.cpus.len();
    cpus.filter(|&c| now.cpus[c].current.is_some()).collect()
}

proptest! {
    #![proptest_config(config(16))]

    /// Started anywhere, all at once on one CPU.
    #[test]
    fn as_many_hogs_as_big_cpus_are_on_them_within_a_second(seed in any::<u64>().no_shrink()) {
        let machine = unequal(seed);
        let (big, _) = kinds(&machine);
        let start = (seed % machine.cpus.len() as u64) as usize;
        for era in SCANNING {
            let load = of_tasks(&machine, "hogs", hogs_from(&machine, big.len(), start), 0);
            let (mut settled, mut last) = (None, None);
            checked(&scenario(&machine, era, load, [0, 1500]), 10 * MS, |now| {
                let on_big = now.tasks[..big.len()].iter().filter(|t| t.running && big.contains(&t.cpu));
                if on_big.count() == big.len() {
                    settled.get_or_insert(now.now_ns);
                } else {
                    settled = None;
                }
                last = Some(now.clone());
            });
            let at = settled.unwrap_or(u64::MAX);
            prop_assert!(at < 1000 * MS, "{}: {} ms, {:?} of {:?}", era, at / MS,
                running(&last.expect("a glimpse")), big);
        }
    }

    /// One hog more than big CPUs: no big CPU idles for it, and it runs on a CPU of its own, if
    /// nothing ever brings it back. It comes back where a small CPU has some seven tenths of a big
    /// one: two hogs that share a big CPU wait there until either would use less than the small CPU
    /// has, or until passes have failed (never in 5.5); and the queue that then gave one away has,
    /// for some ticks, the utilisation of half a CPU, so the big CPU seems to have room and takes
    /// the misfit back although it is busy.
    #[test]
    fn work_is_conserved_beyond_the_big_cpus(seed in any::<u64>().no_shrink()) {
        let machine = unequal(seed);
        let (big, _) = kinds(&machine);
        let start = (seed % machine.cpus.len() as u64) as usize;
        for era in SCANNING {
            let n = big.len() + 1;
            let load = of_tasks(&machine, "hogs", hogs_from(&machine, n, start), 0);
            let (mut apart, mut shared, mut all) = (0, 0, 0);
            checked(&scenario(&machine, era, load, [1000, 1000]), 10 * MS, |now| {
                if now.now_ns <= 1000 * MS {
                    return;
                }
                let busy = running(now);
                let bigs = busy.iter().filter(|c| big.contains(c)).count();
                apart += u32::from(busy.len() == n && bigs == big.len());
                shared += u32::from(busy.len() + 1 == n && bigs == big.len());
                all += 1;
            });
            // Hogs may change places: those on big CPUs never do, the other one may.
            prop_assert!((apart + shared) * 20 >= all * 19, "{}: {} and {} of {} moments",
                era, apart, shared, all);
            prop_assert!(era == Era::V5_5 || apart * 3 >= all, "{}: {} of {}", era, apart, all);
        }
    }

    /// A task that sleeps enough has the same utilisation on every CPU; a task that never sleeps
    /// has 1024.
    #[test]
    fn utilisation_is_of_work_not_of_time(seed in any::<u64>().no_shrink()) {
        let machine = unequal(seed);
        let little = machine.cpus.iter().map(|c| u64::from(c.capacity)).min().unwrap_or(1);
        // At most half of the smallest CPU, in periods of about 10 ms.
        let work = 10 * MS * little / 2048;
        let mut utils = Vec::new();
        for cpu in 0..machine.cpus.len() {
            let capacity = u64::from(machine.cpus[cpu].capacity);
            let sleep = 10 * MS - work * 1024 / capacity;
            let tasks = vec![task(&machine, periodic(work, sleep), cpu..cpu + 1)];
            let load = of_tasks(&machine, "a periodic task", tasks, 0);
            let (mut sum, mut n) = (0, 0);
            checked(&scenario(&machine, SCANNING[0], load, [500, 500]), MS, |now| {
                if now.now_ns > 500 * MS {
                    sum += now.tasks[0].util;
                    n += 1;
                }
            });
            utils.push(sum / n);
            let tasks = vec![task(&machine, hog(), cpu..cpu + 1)];
            let load = of_tasks(&machine, "a hog", tasks, 0);
            let (_, last) = ends(&scenario(&machine, SCANNING[0], load, [100, 2900]), 100 * MS);
            let hog = &last.tasks[0];
            prop_assert!(hog.util > 990 && hog.load > 990, "hog on {}: {:?}", cpu, hog);
        }
        // A slow CPU spreads the work over the period, so the mean of what oscillates differs a
        // little; so does the time that waking up takes.
        let (least, most) = (utils.iter().min(), utils.iter().max());
        let apart = most.unwrap_or(&0) - least.unwrap_or(&0);
        prop_assert!(u64::from(apart) <= 12 + little / 64, "{:?}", utils);
    }

    /// A task that fits every CPU is not a misfit anywhere, once its averages are its own.
    #[test]
    fn small_tasks_are_no_misfits(seed in any::<u64>().no_shrink()) {
        let machine = unequal(seed);
        let little = machine.cpus.iter().map(|c| u64::from(c.capacity)).min().unwrap_or(1);
        let all = 0..machine.cpus.len();
        // A third of the smallest CPU, which leaves room for two periods that run together.
        let work = 4 * MS * little / (3 * 1024);
        for era in SCANNING {
            let one = |_| task(&machine, periodic(work, 4 * MS), all.clone());
            let load = of_tasks(&machine, "small tasks", all.clone().map(one).collect(), 0);
            let mut misfits = Vec::new();
            checked(&scenario(&machine, era, load, [400, 200]), MS, |now| {
                if now.now_ns > 400 * MS {
                    let cpus = now.cpus.iter().enumerate().filter(|(_, c)| c.misfit);
                    misfits.extend(cpus.map(|(cpu, _)| (now.now_ns, cpu)));
                }
            });
            prop_assert!(misfits.is_empty(), "{}: {:?}", era, misfits);
        }
    }
}

#[test]
fn hogs_end_on_the_big_cpus_of_the_library() {
    for name in LIBRARY {
        let machine = machine(name);
        let (big, little) = kinds(&machine);
        for era in SCANNING {
            let load = of_tasks(&machine, "hogs", hogs_from(&machine, big.len(), little[0]), 0);
            let mut on_big = 0;
            checked(&scenario(&machine, era, load, [0, 1000]), 10 * MS, |now| {
                on_big = now.tasks[..big.len()].iter().filter(|t| big.contains(&t.cpu)).count();
            });
            assert_eq!(on_big, big.len(), "{name} {era}");
        }
    }
}

#[test]
fn idle_little_cpus_take_nothing_from_big_ones() {
    for name in LIBRARY {
        let machine = machine(name);
        let (big, _) = kinds(&machine);
        for era in SCANNING {
            // The first second is for their way to the big CPUs.
            let hogs = big.iter().map(|_| task(&machine, hog(), 0..machine.cpus.len()));
            let load = of_tasks(&machine, "hogs", hogs.collect(), 0);
            let metrics = checked(&scenario(&machine, era, load, [1000, 3000]), 100 * MS, |_| {});
            assert_eq!(metrics.balanced.iter().sum::<u64>(), 0, "{name} {era}");
            let full = big.len() as u64 * metrics.simulated_ns;
            assert!(metrics.busy_ns.abs_diff(full) < MS, "{name} {era}: {}", metrics.busy_ns);
        }
    }
}

/// Returns whether a task that may run on these CPUs counts as a misfit once its averages have
/// settled.
fn is_misfit(
    machine: &Arc<Machine>,
    era: Era,
    cpus: &[usize],
    program: Vec<Op>,
    uclamp: (u32, u32),
) -> bool {
    let spec = TaskSpec { uclamp, ..task(machine, program, cpus.iter().copied()) };
    let load = of_tasks(machine, "one task", vec![spec], 0);
    let mut is = false;
    checked(&scenario(machine, era, load, [400, 200]), MS, |now| {
        is |= now.now_ns > 400 * MS && now.cpus.iter().any(|c| c.misfit);
    });
    is
}

#[test]
fn clamps_make_misfits_and_unmake_them() {
    let juno = machine("juno");
    let (_, little) = kinds(&juno);
    // On two CPUs it is not pinned. 7.2 knows no misfit where nothing larger is allowed.
    let of = |program: &dyn Fn() -> Vec<Op>, clamp| {
        [Era::V5_5, Era::V6_5].map(|era| is_misfit(&juno, era, &little[..2], program(), clamp))
    };
    assert_eq!(of(&hog, (0, 300)), [false, false]);
    // A cap at what the CPU has: once the margin counts, later the cap alone.
    assert_eq!(of(&hog, (0, 446)), [true, false]);
    let small = || periodic(MS, 20 * MS);
    assert_eq!(of(&small, (0, 1024)), [false, false]);
    assert_eq!(of(&small, (400, 1024)), [true, false]);
    assert_eq!(of(&small, (800, 1024)), [true, true]);
}

#[test]
fn who_has_nowhere_to_go_is_no_misfit_in_later_kernels() {
    let juno = machine("juno");
    let (big, little) = kinds(&juno);
    let every = [Era::V5_5, Era::V6_5, Era::V6_15, Era::V7_2];
    let of = |cpus: &[usize]| every.map(|era| is_misfit(&juno, era, cpus, hog(), (0, 1024)));
    assert_eq!(of(&little[..1]), [true, false, false, false]);
    assert_eq!(of(&little[..2]), [true, true, false, false]);
    // A hog fits nowhere, but a big CPU is the best there is.
    assert_eq!(of(&big), [true, true, false, false]);
    let mixed = [little[0], big[0]];
    assert_eq!(of(&mixed), [true, true, false, false]);
}

/// Small tasks fit everywhere, and stay where they are; a clamp from below makes them need more
/// than a small CPU has. A clamp from above lets a large one fit where it would not.
#[test]
fn a_clamp_decides_what_fits() {
    let pixel = machine("pixel3");
    // The least share of wake-ups, over some seeds, that big CPUs get.
    let big = |keys: &str| {
        let spec = format!("runsleep:sleep_us=4000,{keys}");
        let modes = Modes { capacity: Mode::Posted, ..Modes::default() };
        let share = |seed| {
            let run = Scenario {
                policy: Policy::new(Era::V5_5, modes),
                seed,
                ..scenario(&pixel, Era::V5_5, workload(&pixel, &spec), [0, 400])
            };
            let later = decisions(&traced(&run).0).into_iter();
            let later: Vec<_> = later.filter(|d| d.now_ns > 200 * MS).collect();
            assert!(later.len() > 5, "{spec}: {later:?}");
            later.iter().filter(|d| d.cpu >= 4).count() as f64 / later.len() as f64
        };
        (0..8).map(share).fold(1.0, f64::min)
    };
    // Three tasks of a fiftieth of a big CPU: they fit where they were forked.
    let small = "tasks=3,run_us=100";
    assert!(big(small) < 1.0, "somebody is forked onto a small CPU");
    assert_eq!(big(&format!("{small},uclamp_min=600")), 1.0);
    // One that a small CPU cannot hold.
    let large = "tasks=1,run_us=6000,where=cpu3-4";
    assert_eq!(big(large), 1.0);
    assert_eq!(big(&format!("{large},uclamp_max=200")), 0.0);
}

/// The regression that 5.10 fixed: a pair that alternates on two CPUs which it fits goes on to
/// another CPU at nearly every wake-up, because posted scans from the target before it looks at
/// where the wakee was. hikey960's pipe benchmark lost a fifth of its operations by it.
#[test]
fn only_posted_bounces_a_pair_that_fits_where_it_is() {
    for name in LIBRARY {
        let machine = machine(name);
        let run = |era, capacity| {
            let modes = Modes { capacity, ..Modes::default() };
            let pair = workload(&machine, "pipe:pairs=1");
            let metrics = Scenario {
                policy: Policy::new(era, modes),
                ..scenario(&machine, era, pair, [100, 200])
            };
            let metrics = metrics.run().expect("a scenario that runs").metrics;
            let moved = metrics.wakeups - metrics.migrations[0];
            (moved as f64 / metrics.wakeups as f64, metrics.counted)
        };
        for era in [Era::V5_5, Era::V6_5] {
            let (bounced, slow) = run(era, Mode::Posted);
            assert!(bounced > 0.9, "{name}, {era}: {bounced} of the wake-ups move");
            for mode in [Mode::Upstream, Mode::Perch] {
                let (moved, fast) = run(era, mode);
                assert!(moved < 0.01, "{name}, {era}, {mode}: {moved} of the wake-ups move");
                assert!(fast > slow, "{name}, {era}, {mode}: {fast} rounds, posted {slow}");
            }
        }
    }
}
