// SPDX-License-Identifier: GPL-2.0-or-later
//! nr_idle_scan follows the LLC's utilisation, late; utilisation follows PELT.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::Era;
use perch_sim::workload::Op;
use perch_sim::{Dist, Glimpse};

use crate::common::{
    Decision, ERAS, MS, checked, decisions, hog, machine, of_tasks, scenario, task, traced,
    workload,
};

/// docs/mechanisms/stock.md#scan: W times what is left of 1 after the square of x times 1.17.
fn budget(weight: u32, util: u64) -> f64 {
    let x = util as f64 / (1024.0 * f64::from(weight));
    f64::from(weight) * (1.0 - (x * 1.17).powi(2)).max(0.0)
}

/// `busy` hogs, each pinned, of the 32 CPUs of kunpeng920's first LLC; a look each millisecond.
fn with_hogs(busy: usize, mut look: impl FnMut(&Glimpse)) -> u32 {
    let kunpeng = machine("kunpeng920");
    let tasks = (0..busy).map(|cpu| task(&kunpeng, hog(), cpu..cpu + 1)).collect();
    let load = of_tasks(&kunpeng, "pinned hogs", tasks, 0);
    let mut last = 0;
    checked(&scenario(&kunpeng, ERAS[0], load, [0, 2000]), 2 * MS, |now| {
        last = now.llcs[0].0;
        look(now);
    });
    last
}

#[test]
fn the_budget_follows_utilisation() {
    // Half of 32 CPUs busy leave 21; from 85.5 % on nothing is left.
    for (busy, expected) in
        [(1, 31..=32), (8, 29..=30), (16, 20..=21), (24, 7..=8), (28, 0..=0), (32, 0..=0)]
    {
        let nr = with_hogs(busy, |_| {});
        assert!(expected.contains(&nr), "{busy} of 32 busy: {nr}, expected {expected:?}");
    }
}

#[test]
fn the_budget_is_stale_between_passes() {
    let (mut writes, mut last, mut most_stale) = (0, u32::MAX, 0.0f64);
    with_hogs(24, |now| {
        let (nr, util) = now.llcs[0];
        writes += u32::from(nr != last);
        last = nr;
        most_stale = most_stale.max((f64::from(nr) - budget(32, util)).abs());
    });
    // Utilisation rises for a few hundred milliseconds; passes come 32 ms apart at best.
    assert!(most_stale > 4.0, "the budget was never more than {most_stale:.1} CPUs behind");
    assert!((2..60).contains(&writes), "{writes} changes");
}

#[test]
fn the_budget_is_the_formula_at_each_steady_load() {
    let kunpeng = machine("kunpeng920");
    for era in [Era::V6_5, Era::V7_2] {
        let load = workload(&kunpeng, "runsleep:tasks=20,run_us=20000,sleep_us=0,where=node0");
        let mut seen = (0, 0);
        checked(&scenario(&kunpeng, era, load, [0, 2500]), 50 * MS, |now| seen = now.llcs[0]);
        let due = budget(32, seen.1);
        assert!((f64::from(seen.0) - due).abs() < 1.5, "{era}: {} where {due:.1} is due", seen.0);
    }
}

/// Tasks that move at two of three wake-ups lose no utilisation on the way: what one did since its averages
/// last moved stays with the queue where it ran.
#[test]
fn pairs_that_wander_keep_their_utilisation() {
    let w16 = Arc::new(Machine::regular("w16", 1, 1, 1, 0, 16, 1).unwrap());
    let load = workload(&w16, "tcp_rr:n=10");
    let (mut util, mut n, mut from, mut busy) = (0.0, 0.0, None, 0.0);
    checked(&scenario(&w16, Era::V6_5, load, [0, 400]), 777_777, |now| {
        if now.now_ns < 250 * MS {
            return;
        }
        util += now.llcs[0].1 as f64;
        n += 1.0;
        let ran: u64 = now.tasks.iter().map(|task| task.ran_ns).sum();
        let (at, then) = *from.get_or_insert((now.now_ns, ran));
        busy = (ran - then) as f64 / (now.now_ns - at).max(1) as f64;
    });
    let (shown, due) = (util / n, 1024.0 * busy);
    // Idle CPUs show the utilisation of tasks that have left until somebody updates their queues.
    assert!(shown > due && shown < 1.25 * due, "{shown:.0} shown, {due:.0} due");
}

#[test]
fn half_the_time_is_half_the_utilisation() {
    let machine = machine("jacobsville");
    for era in ERAS {
        for (run, asked) in [(500_000, 0.5), (250_000, 0.25), (900_000, 0.9)] {
            let program =
                vec![Op::Run(Dist::Const(run)), Op::Sleep(Dist::Const(MS - run)), Op::Jump(0)];
            let load = of_tasks(&machine, "one task", vec![task(&machine, program, 3..4)], 0);
            let (mut sum, mut n, mut from) = (0.0, 0.0, None);
            let mut duty = 0.0;
            checked(&scenario(&machine, era, load, [0, 1000]), 777_777, |now| {
                let task = &now.tasks[0];
                if now.now_ns > 500 * MS {
                    sum += f64::from(task.util);
                    n += 1.0;
                    let (at, ran) = *from.get_or_insert((now.now_ns, task.ran_ns));
                    duty = (task.ran_ns - ran) as f64 / (now.now_ns - at).max(1) as f64;
                }
            });
            // Waking from idle takes its time, so the task runs a little less than it would.
            let (mean, due) = (sum / n, 1024.0 * duty);
            assert!((duty - asked).abs() < 0.1, "{era}: runs {duty} of the time");
            assert!((mean - due).abs() < 16.0, "{era}: {mean:.0} where {due:.0} is due");
        }
    }
}

#[test]
fn utilisation_rises_to_half_in_32_ms() {
    let machine = machine("jacobsville");
    let mut program = vec![Op::Sleep(Dist::Const(900 * MS))];
    program.extend(hog().into_iter().map(|op| if let Op::Jump(_) = op { Op::Jump(1) } else { op }));
    let load = of_tasks(&machine, "a late hog", vec![task(&machine, program, 3..4)], 0);
    let mut scenario = scenario(&machine, ERAS[0], load, [0, 1200]);
    scenario.hz = 1000;
    let mut at_32 = 0;
    checked(&scenario, MS, |now| {
        if now.now_ns == 933 * MS {
            at_32 = now.tasks[0].util;
        }
    });
    assert!((490..=534).contains(&at_32), "{at_32} after 32 ms");
}

/// How many CPUs the last scans looked at for a wakee whose CPUs are all busy, woken from a CPU
/// that idles for `idle_ns` at a time.
fn examined_from(idle_ns: u64, era: Era) -> Vec<u64> {
    let kunpeng = machine("kunpeng920");
    let waker = vec![
        Op::Run(Dist::Const(500)),
        Op::Send { channel: 0, lines: 1, sync: false },
        Op::Sleep(Dist::Const(idle_ns)),
        Op::Jump(0),
    ];
    let wakee = vec![Op::Receive { channel: 0 }, Op::Run(Dist::Const(100)), Op::Jump(0)];
    let mut tasks: Vec<_> = (1..32).map(|cpu| task(&kunpeng, hog(), cpu..cpu + 1)).collect();
    tasks.push(task(&kunpeng, waker, 0..1));
    tasks.push(task(&kunpeng, wakee, 1..32));
    let load = of_tasks(&kunpeng, "a wakee among hogs", tasks, 1);
    let (trace, _) = traced(&scenario(&kunpeng, era, load, [0, 200]));
    let of_wakee = |d: &Decision| d.task == 32 && d.reason == "target busy";
    let found: Vec<u64> =
        decisions(&trace).iter().filter(|d| of_wakee(d)).map(|d| d.examined).collect();
    found[found.len().saturating_sub(10)..].to_vec()
}

/// docs/mechanisms/stock.md#scan, the era before it: 5.5 scans for as long as its waker's CPU has time.
#[test]
fn scans_of_5_5_are_as_long_as_their_cpu_idles() {
    let idler = examined_from(5 * MS, Era::V5_5);
    assert!(idler.len() == 10 && idler.iter().all(|&n| n >= 30), "{idler:?}");
    let busy = examined_from(1000, Era::V5_5);
    assert!(busy.len() == 10 && busy.iter().all(|&n| n <= 2), "{busy:?}");
    // Later the utilisation of the LLC decides, and that of 31 busy CPUs leaves nothing.
    let later = examined_from(5 * MS, Era::V6_5);
    assert!(later.len() == 10 && later.iter().all(|&n| n == 0), "{later:?}");
}
