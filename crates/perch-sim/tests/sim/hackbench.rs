// SPDX-License-Identifier: GPL-2.0-or-later
//! hackbench: every message arrives, sockets are bounded, the time is the one from go to the end.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Mode, Modes, Policy};
use perch_sim::workload::Op;
use perch_sim::{Dist, Outcome, Scenario};

use crate::common::{
    self, Decision, ERAS, MS, checked, decisions, machine, of_tasks, scenario, task, traced,
    workload,
};

/// A run of `hackbench:…` to its end.
fn run(machine: &Arc<Machine>, era: Era, keys: &str) -> Outcome {
    common::run(machine, era, &format!("hackbench:{keys}"), [0, 60_000])
}

#[test]
fn every_message_is_read_once() {
    let kunpeng = machine("kunpeng920");
    for era in ERAS {
        for (groups, fds, loops) in [(1, 1, 1), (1, 1, 2000), (3, 4, 50), (2, 10, 40)] {
            let pipe = if fds == 10 { "yes" } else { "no" };
            let keys = format!("groups={groups},fds={fds},loops={loops},pipe={pipe},where=cpu0-7");
            let outcome = run(&kunpeng, era, &keys);
            let m = &outcome.metrics;
            assert_eq!(m.counted, groups * fds * fds * loops, "{era} {keys}");
            let score = &outcome.scores[0];
            assert_eq!((score.unit, score.higher_is_better), ("s", false));
            // The counts are those of the time that is the score.
            assert_eq!(score.value, m.simulated_ns as f64 / 1e9, "{era} {keys}");
            assert!(m.busy_ns <= 8 * m.simulated_ns, "{era} {keys}: {m:?}");
        }
    }
}

/// The work is that of its messages: on one CPU it takes what they cost, and more CPUs share it.
#[test]
fn the_time_is_that_of_the_work() {
    let kunpeng = machine("kunpeng920");
    for era in ERAS {
        let costs = "groups=4,fds=5,loops=400,write_ns=4000,read_ns=3000,lines=0,footprint=0";
        let one = run(&kunpeng, era, &format!("{costs},where=cpu0"));
        let work_ns = 4.0 * 5.0 * 5.0 * 400.0 * 7000.0;
        let over = one.scores[0].value * 1e9 / work_ns;
        // Wake-ups, switches, and 40 ends of tasks.
        assert!((1.0..1.6).contains(&over), "{era}: {over}");
        let four = run(&kunpeng, era, &format!("{costs},where=cpu0-3"));
        let share = four.scores[0].value * 4.0 / one.scores[0].value;
        // CPUs idle while tasks wait: 5.5 looks at few CPUs, most of them not allowed here.
        assert!((0.9..1.4).contains(&share), "{era}: {share}");
    }
}

/// One message more in each socket's room, and a writer sleeps: a reader that is away finds as
/// many as fit, and its writers go on when three quarters of them are gone.
#[test]
fn a_full_socket_stops_its_writers_until_it_is_nearly_empty() {
    let kunpeng = machine("kunpeng920");
    let (room, messages) = (8, 40);
    let writer = vec![
        Op::Run(Dist::Const(1000)),
        Op::Write { channel: 0, lines: 1, room, low: room / 4, sync: true },
        Op::Repeat { to: 0, times: messages },
        Op::Exit,
    ];
    // It comes late, and then reads slowly.
    let reader = vec![
        Op::Sleep(Dist::Const(2 * MS)),
        Op::Receive { channel: 0 },
        Op::Run(Dist::Const(100_000)),
        Op::Count,
        Op::Repeat { to: 1, times: 2 * messages },
        Op::Exit,
    ];
    for era in ERAS {
        let tasks = [reader.clone(), writer.clone(), writer.clone()];
        let tasks = tasks.into_iter().enumerate();
        let tasks = tasks.map(|(i, p)| task(&kunpeng, p, i..i + 1)).collect();
        let load = of_tasks(&kunpeng, "a full socket", tasks, 1);
        let scenario = scenario(&kunpeng, era, load, [0, 30]);
        let metrics = checked(&scenario, 0, |_| {});
        assert_eq!(metrics.counted, 2 * messages, "{era}");
        let (trace, _) = traced(&scenario);
        let woken: Vec<u64> = decisions(&trace)
            .iter()
            .filter(|d| d.now_ns > 0 && d.task > 0)
            .map(|d| d.now_ns)
            .collect();
        // 80 messages: 8 before the reader came, then the room that it made, 6 a time.
        assert_eq!(woken.len(), 2 * (80 - 8) / 6, "{era}: {woken:?}");
        // Both writers are woken at once, every six messages.
        for pair in woken.chunks(2) {
            assert!(pair[1] - pair[0] < 50_000, "{era}: {woken:?}");
        }
        for (a, b) in woken.iter().step_by(2).zip(woken.iter().step_by(2).skip(1)) {
            assert!((550_000..650_000).contains(&(b - a)), "{era}: {woken:?}");
        }
    }
}

/// A reader that is away finds sixteen pages. Since 6.14 each page that it empties wakes one writer, in
/// turn, and a woken writer that leaves room wakes the next; since 5.5 each message that it reads from a
/// full pipe does so, and most of these writers find no room; before, each page and each message wakes
/// all that wait. The reader, once it sleeps, is woken by the first message and by no other.
#[test]
fn a_pipe_wakes_one_writer_for_each_page_that_is_read() {
    let kunpeng = machine("kunpeng920");
    let (fits, messages) = (5, 200);
    let write = Op::WritePipe { pipe: 0, lines: 1, fits };
    let writer =
        vec![Op::Run(Dist::Const(1000)), write, Op::Repeat { to: 0, times: messages }, Op::Exit];
    let reader = vec![
        Op::Sleep(Dist::Const(2 * MS)),
        Op::ReadPipe { pipe: 0 },
        Op::Run(Dist::Const(100_000)),
        Op::Count,
        Op::Repeat { to: 1, times: 2 * messages },
        // It sleeps, and two messages come while it is woken.
        Op::ReadPipe { pipe: 0 },
        Op::ReadPipe { pipe: 0 },
        Op::Count,
        Op::Exit,
    ];
    let last = vec![Op::Sleep(Dist::Const(60 * MS)), write, write, Op::Exit];
    // 400 messages, 80 of which are there before the reader comes: 64 pages for the others, the last
    // writer sleeps no more. Until it has written its last page the pipe is full at each read: 315
    // to 320 of these. Where all wake, both writers do for each of the pages until one has written
    // its last, after 32 pages at the earliest.
    for (era, expected, apart_us) in [
        ("7.2", 62..=64, 490..1100),
        ("6.14", 62..=64, 490..1100),
        ("6.12", 312..=320, 90..220),
        ("5.5", 312..=320, 90..220),
        ("5.4", 96..=128, 490..1100),
        ("3.4", 96..=128, 490..1100),
    ] {
        let era = era.parse().expect("an era");
        let tasks = [reader.clone(), writer.clone(), writer.clone(), last.clone()];
        let tasks = tasks.into_iter().enumerate();
        let tasks = tasks.map(|(i, p)| task(&kunpeng, p, i..i + 1)).collect();
        let mut load = of_tasks(&kunpeng, "a full pipe", tasks, 0);
        load.pipes = 1;
        let scenario = scenario(&kunpeng, era, load, [0, 80]);
        assert_eq!(checked(&scenario, 0, |_| {}).counted, 2 * messages + 1, "{era}");
        let (trace, _) = traced(&scenario);
        let woken = |task: usize| {
            let all = decisions(&trace);
            let of = all.iter().filter(move |d| d.now_ns > 0 && d.task == task);
            of.map(|d| d.now_ns).collect::<Vec<u64>>()
        };
        let times = woken(1).len() + woken(2).len();
        assert!(expected.contains(&times), "{era}: {times}");
        let first = woken(1);
        let apart: Vec<u64> = first.windows(2).map(|w| (w[1] - w[0]) / 1000).collect();
        assert!(apart.iter().all(|us| apart_us.contains(us)), "{era}: {apart:?}");
        // By its timer, and by the first of the two messages.
        assert_eq!(woken(0).len(), 2, "{era}");
    }
}

/// The byte that lets the children go wakes all children that poll for it before any of them can
/// take the CPU from the parent: a CPU full of children does not hold back the others. If the parent
/// let them go one by one, most of a machine would idle while the first of them worked.
#[test]
fn all_children_are_let_go_at_once() {
    let juno = machine("juno");
    for era in ERAS {
        let load = workload(&juno, "hackbench:loops=50");
        let (trace, outcome) = traced(&scenario(&juno, era, load, [0, 60_000]));
        let all = decisions(&trace);
        // The run ends with the last child, which has just woken the parent.
        let end_ns = all.last().expect("decisions").now_ns;
        let go_ns = end_ns.saturating_sub(outcome.metrics.simulated_ns);
        let mut soon = [false; 400];
        let since = |d: &&Decision| d.now_ns >= go_ns && d.now_ns < go_ns + 10 * MS;
        for d in all.iter().filter(since).filter(|d| d.task < 400) {
            soon[d.task] = true;
        }
        let soon = soon.iter().filter(|&&s| s).count();
        assert!(soon > 380, "{era}: {soon} of 400 are up within 10 ms");
    }
}

#[test]
fn the_same_seed_gives_the_same_time() {
    let pixel = machine("pixel3");
    let load = workload(&pixel, "hackbench:groups=2,fds=5,loops=20");
    for era in ERAS {
        let one = scenario(&pixel, era, load.clone(), [0, 5000]);
        assert_eq!(traced(&one), traced(&one), "{era}");
        // Neither does it depend on how much longer it might have taken.
        let limit = Scenario { measure_ns: 9000 * MS, warmup_ns: 100 * MS, ..one.clone() };
        assert_eq!(traced(&one), traced(&limit), "{era}");
        let other = Scenario { seed: 2, ..one.clone() };
        assert_ne!(traced(&one), traced(&other), "{era}");
    }
}

/// A reader wakes the writers that wait when it begins to, and no others: here those come back to
/// the full socket so fast that a reader which woke them again never came to an end.
#[test]
fn a_reader_wakes_each_writer_once() {
    let juno = machine("juno");
    let load = workload(&juno, "hackbench:write_ns=3000,read_ns=2200,footprint=90");
    let mut scenario = scenario(&juno, Era::V5_5, load, [0, 5_000]);
    scenario.hz = 250;
    scenario.seed = 15388480050515110149;
    let modes = Modes { capacity: Mode::Posted, ..Modes::default() };
    scenario.policy = Policy::new(Era::V5_5, modes);
    let outcome = scenario.run().expect("a run that ends");
    assert_eq!(outcome.metrics.counted, 400_000);
}
