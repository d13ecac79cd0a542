// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups: the books at every level, shares by weight, and the task that goes first when
//! another wakes.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Mode, Modes, Policy};
use perch_sim::workload::{DEFAULT_SHARES, GroupSpec, Op, TaskSpec, Workload};
use perch_sim::{Dist, Scenario};
use proptest::prelude::*;

use crate::common::{
    ERAS, MS, checked, config, ends, hog, machine, of_tasks, scenario, shares, summary, task,
    traced,
};
use crate::load::{Dice, random};

/// Groups of these shares, each in the one of this number.
fn groups(of: &[(Option<usize>, u32)]) -> Vec<GroupSpec> {
    let one = |(number, &(parent, shares)): (usize, &(Option<usize>, u32))| GroupSpec {
        name: format!("g{number}"),
        parent,
        shares,
    };
    of.iter().enumerate().map(one).collect()
}

/// Hogs on the first `cpus` CPUs, each in the group of this number.
fn hogs(machine: &Machine, of: &[Option<usize>], cpus: usize) -> Vec<TaskSpec> {
    let one = |&group| TaskSpec { group, ..task(machine, hog(), 0..cpus) };
    of.iter().map(one).collect()
}

fn grouped(machine: &Machine, groups: Vec<GroupSpec>, tasks: Vec<TaskSpec>) -> Workload {
    Workload { groups, ..of_tasks(machine, "groups", tasks, 0) }
}

/// A random scenario whose tasks are in random groups, nested up to four deep.
pub fn random_grouped(seed: u64, max_cpus: usize) -> Scenario {
    let mut scenario = random(seed, max_cpus);
    let mut dice = Dice::new(!seed);
    let modes = Modes { steer: Mode::ALL[dice.range(0, 3) as usize], ..scenario.policy.modes() };
    let era = match dice.chance(30) {
        true => Era::V3_4,
        false => scenario.policy.era(),
    };
    let modes = match era.check(&modes) {
        Ok(()) => modes,
        Err(_) => Modes { steer: modes.steer, ..Modes::default() },
    };
    scenario.policy = Policy::new(era, modes);
    let count = dice.range(1, 9) as usize;
    let mut specs: Vec<(Option<usize>, u32)> = Vec::new();
    for number in 0..count as u64 {
        let parent = dice.range(0, number) as usize;
        let shares = match dice.range(0, 3) {
            0 => 2,
            1 => 1024,
            2 => dice.range(2, 262_144) as u32,
            _ => dice.range(2, 10_000) as u32,
        };
        specs.push(((parent > 0).then(|| parent - 1), shares));
    }
    for spec in &mut scenario.workload.tasks {
        let group = dice.range(0, count as u64) as usize;
        spec.group = (group > 0).then(|| group - 1);
    }
    scenario.workload.groups = groups(&specs);
    scenario
}

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn groups_without_tasks_change_nothing(seed in any::<u64>().no_shrink()) {
        let plain = random(seed, 24);
        let mut scenario = random_grouped(seed, 24);
        scenario.policy = plain.policy;
        scenario.workload.tasks.iter_mut().for_each(|t| t.group = None);
        prop_assert_eq!(traced(&scenario), traced(&plain));
    }
}

fn share_of(era: Era, load: Workload, machine: &Arc<Machine>, ms: [u64; 2]) -> Vec<f64> {
    let (first, last) = ends(&scenario(machine, era, load, ms), 10 * MS);
    shares(&first, &last)
}

/// Hogs that share some CPUs.
struct Sharing<'a> {
    name: &'a str,
    /// Each group's parent and shares.
    groups: &'a [(Option<usize>, u32)],
    /// Each hog's group and nice level.
    hogs: &'a [(Option<usize>, i8)],
    cpus: usize,
    ms: [u64; 2],
    /// The parts of the whole that each hog is due, and the share of all by which it may be off.
    due: &'a [f64],
    off: f64,
}

#[test]
fn hogs_share_by_weight_level_by_level() {
    const ROOT: (Option<usize>, i8) = (None, 0);
    let one =
        |name, groups, hogs, ms, due, off| Sharing { name, groups, hogs, cpus: 1, ms, due, off };
    let nice = |name, hogs, due| one(name, &[], hogs, [500, 6000], due, 0.02);
    let eight = |name, groups, hogs, off| Sharing {
        name,
        groups,
        hogs,
        cpus: 8,
        ms: [2000, 4000],
        due: &[1.0; 16],
        off,
    };
    let everyone = "everyone in one group, on eight CPUs";
    let cases = [
        one("equals", &[], &[ROOT; 2], [100, 2000], &[1.0, 1.0], 0.01),
        nice("two levels", &[(None, 0), (None, 5)], &[1024.0, 335.0]),
        nice("far apart", &[(None, -10), (None, 0), (None, 10)], &[9548.0, 1024.0, 110.0]),
        nice(
            "next to each other",
            &[(None, 0), (None, 1), (None, 2), (None, 3)],
            &[1024.0, 820.0, 655.0, 526.0],
        ),
        one(
            "groups by their shares",
            &[(None, 8192), (None, 1024)],
            &[(Some(0), 0), (Some(1), 0)],
            [500, 8000],
            &[8.0, 1.0],
            0.01,
        ),
        one(
            "a group as one, however many its tasks",
            &[(None, DEFAULT_SHARES)],
            &[ROOT, (Some(0), 0), (Some(0), 0)],
            [500, 6000],
            &[2.0, 1.0, 1.0],
            0.01,
        ),
        // a has 3 parts of 4 and divides them 1 : 2 between b and c; d has the rest.
        one(
            "nested groups",
            &[(None, 3072), (Some(0), 1024), (Some(0), 2048), (None, 1024)],
            &[(Some(1), 0), (Some(2), 0), (Some(2), 0), (Some(3), 0)],
            [500, 8000],
            &[1.0; 4],
            0.015,
        ),
        eight("two hogs a CPU", &[], &[ROOT; 16], 0.025 / 8.0),
        eight(everyone, &[(None, DEFAULT_SHARES)], &[(Some(0), 0); 16], 0.03 / 8.0),
    ];
    let machine = machine("jacobsville");
    for Sharing { name, groups: of, hogs, cpus, ms, due, off } in cases {
        // In 5.5 the CPUs of a cluster balance in the same tick, and what one takes of a group the
        // next takes back.
        for era in ERAS.into_iter().filter(|&era| name != everyone || era != Era::V5_5) {
            let spec = |&(group, nice)| TaskSpec { group, nice, ..task(&machine, hog(), 0..cpus) };
            let load = grouped(&machine, groups(of), hogs.iter().map(spec).collect());
            let had = share_of(era, load, &machine, ms);
            let all: f64 = due.iter().sum();
            let near = had.iter().zip(due).all(|(had, due)| (had - due / all).abs() < off);
            assert!(near && had.len() == due.len(), "{era}, {name}: {had:?}, due {due:?}");
        }
    }
}

#[test]
fn groups_share_eight_cpus_by_weight() {
    let machine = machine("jacobsville");
    for era in ERAS {
        // One of each on every CPU, pinned: what is divided is shares, not places.
        let specs = groups(&[(None, 8192), (None, 1024)]);
        let pinned = |cpu: usize, group| TaskSpec {
            group: Some(group),
            ..task(&machine, hog(), cpu..cpu + 1)
        };
        let tasks = (0..16).map(|i| pinned(i / 2, i % 2)).collect();
        let load = grouped(&machine, specs, tasks);
        let had = share_of(era, load, &machine, [1000, 8000]);
        let heavy: f64 = had.iter().step_by(2).sum();
        assert!((heavy - 8.0 / 9.0).abs() < 0.05, "{era}: {heavy}");
    }
}

/// A task of the heavy group that sleeps for less than a latency, on a CPU with a hog of the light
/// one; `busy`: with a hog of its own group too. The mean and the longest wait of its wake-ups.
fn wait_ns(era: Era, busy: bool) -> [u64; 2] {
    let machine = machine("jacobsville");
    let mut tasks = hogs(&machine, &[Some(1)], 1);
    if busy {
        tasks.extend(hogs(&machine, &[Some(0)], 1));
    }
    let (work, rest) = (Op::Run(Dist::Const(500_000)), Op::Sleep(Dist::around(3 * MS, 30)));
    tasks.push(TaskSpec {
        group: Some(0),
        ..task(&machine, vec![work, rest, Op::Count, Op::Jump(0)], 0..1)
    });
    let load = grouped(&machine, groups(&[(None, 8192), (None, 1024)]), tasks);
    let metrics = checked(&scenario(&machine, era, load, [500, 4000]), MS, |_| {});
    assert!(metrics.counted > 100, "{era}: it got through {} times", metrics.counted);
    [metrics.latency_ns / metrics.latencies, metrics.max_latency_ns]
}

#[test]
fn in_cfs_an_empty_group_queue_lends_its_wakee_the_credit() {
    for era in [Era::V3_4, Era::V5_5, Era::V6_5] {
        let [mean, longest] = wait_ns(era, false);
        assert!(mean < MS / 10 && longest < MS, "{era}: mean {mean}, longest {longest}");
        // A hog of its own group keeps the group's entity where it is: the wakee's own credit only
        // counts against that hog.
        let [joined, _] = wait_ns(era, true);
        assert!(joined > 5 * mean, "{era}: {joined} against {mean}");
    }
}

#[test]
fn in_eevdf_an_empty_group_queue_gives_no_credit_but_what_is_owed() {
    for era in [Era::V6_15, Era::V7_2] {
        // It uses a seventh of the CPU and weighs eight times as much as the hog: it is owed time
        // whenever it wakes, and waits until the hog's slice of 2.8 ms is over, ticks 4 ms apart.
        let [mean, longest] = wait_ns(era, false);
        assert!(mean < 4 * MS && longest < 9 * MS, "{era}: mean {mean}, longest {longest}");
    }
}

/// A small case of 3.4, whole: two groups on four CPUs, a pair that talks in the heavy one, hogs in
/// the light one.
#[test]
fn two_groups_in_3_4() {
    let machine =
        Arc::new(Machine::regular("four", 1, 1, 1, 4, 1, 1).expect("a machine of 4 CPUs"));
    let mut tasks = hogs(&machine, &[Some(1); 4], 4);
    let send = |channel| Op::Send { channel, lines: 10, sync: true };
    let work = Op::Run(Dist::Const(40_000));
    let wait = |channel| Op::Receive { channel };
    let asks = vec![work, send(0), wait(1), Op::Count, Op::Jump(0)];
    let answers = vec![wait(0), work, send(1), Op::Jump(0)];
    for program in [asks, answers] {
        tasks.push(TaskSpec { group: Some(0), ..task(&machine, program, 0..4) });
    }
    let load = Workload {
        groups: groups(&[(None, 8192), (None, 1024)]),
        ..of_tasks(&machine, "two groups", tasks, 2)
    };
    let mut text = String::new();
    for steer in [Mode::Off, Mode::Posted, Mode::Perch] {
        let mut scenario = scenario(&machine, Era::V3_4, load.clone(), [0, 12]);
        let modes = Modes { steer, ..Modes::default() };
        scenario.policy = Policy::new(Era::V3_4, modes);
        let (trace, outcome) = traced(&scenario);
        let shown = |now_ns, _: &str| now_ns < 4_400_000;
        text += &format!("steer={steer}\n{}", summary(&trace, &outcome, shown));
    }
    insta::assert_snapshot!(text);
}
