// SPDX-License-Identifier: GPL-2.0-or-later
//! Transcoders: their threads, the CPUs that these may use, and the rates that their times allow.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Mode, Modes, Policy};
use perch_sim::workload::{Class, Op, Workload};
use perch_sim::{Outcome, Scenario};

use crate::common::{self, machine, scenario, score, traced, workload};

fn fps(outcome: &Outcome) -> f64 {
    score(outcome, "fps")
}

fn run(machine_name: &str, spec: &str, ms: [u64; 2]) -> Outcome {
    common::run(&machine(machine_name), Era::V6_15, spec, ms)
}

/// The source: 60 instances, each on 4 physical cores, 8 logical CPUs; their threads FIFO 99.
#[test]
fn by_itself_it_is_what_was_measured_on_the_machine_with_480_cpus() {
    let rt480 = machine("rt480");
    let load = workload(&rt480, "ffmpeg");
    assert_eq!(load.spaces.len(), 60);
    let mut used = vec![false; 480];
    for instance in 0..60u32 {
        let threads: Vec<_> = load.tasks.iter().filter(|t| t.space == Some(instance)).collect();
        // 9 decoders, 8 filters, a lookahead, 12 encoders, FFmpeg's own five, and the main thread.
        let rt = threads.iter().filter(|t| t.class == Class::Fifo(99)).count();
        let fair = threads.iter().filter(|t| t.class == Class::Fair).count();
        assert_eq!((rt, fair), (35, 1));
        let cpus: Vec<usize> = threads[0].allowed.iter().collect();
        assert!(threads.iter().all(|t| t.allowed.iter().eq(cpus.iter().copied())));
        let mut cores: Vec<u32> = cpus.iter().map(|&cpu| rt480.cpus[cpu].core).collect();
        cores.sort_unstable();
        cores.dedup();
        let first = 4 * instance;
        assert_eq!((cpus.len(), cores), (8, (first..first + 4).collect()));
        cpus.iter().for_each(|&cpu| used[cpu] = true);
    }
    assert!(used.iter().all(|&used| used));
    let bound = load.tasks.iter().filter(|t| t.space.is_none());
    assert!(bound.clone().all(|t| t.class == Class::Fair && t.allowed.weight() == 1));
    assert_eq!(bound.count(), 480);
}

#[test]
fn keys_that_make_no_sense_are_refused() {
    let refused = |machine: &Machine, spec: &str, words: &[&str]| {
        let why = Workload::parse(spec, machine).expect_err(spec).to_string();
        for word in words {
            assert!(why.contains(word), "{spec}: no \"{word}\" in: {why}");
        }
    };
    let (rt480, x5570) = (machine("rt480"), machine("x5570"));
    refused(&rt480, "ffmpeg:instances=61", &["488 CPUs", "480"]);
    refused(&rt480, "ffmpeg:instances=0", &["instances=0", "from 1 to 480"]);
    refused(&rt480, "ffmpeg:cpus_per_instance=7", &["would share a core", "whole cores"]);
    refused(&x5570, "ffmpeg:cpus_per_instance=17", &["from 1 to 16"]);
    refused(&x5570, "ffmpeg:priority=100", &["from 1 to 99"]);
    refused(&x5570, "ffmpeg:encoders=0", &["from 1 to 32"]);
    refused(&x5570, "ffmpeg:decoders=33", &["from 1 to 32"]);
    refused(&x5570, "ffmpeg:rows=0", &["from 1 to 1000"]);
    refused(&x5570, "ffmpeg:encode_us=0", &["from 1 to"]);
    refused(&x5570, "ffmpeg:threads=4", &["no key \"threads\"", "encoders"]);
    refused(&x5570, "ffmpeg:kernel_us=some", &["kernel_us=some", "whole number"]);
}

/// The work of a frame does not depend on how many threads share it.
#[test]
fn a_frame_is_the_same_work_whatever_the_threads() {
    let x5570 = machine("x5570");
    let mean = |spec: &str| {
        let load = workload(&x5570, spec);
        let mut sum = 0.0;
        for task in load.tasks.iter().filter(|t| t.class != Class::Fair) {
            // One turn of the program: a frame.
            let (mut pc, mut rounds, mut ns, mut frames) = (0, 0, 0, 0);
            loop {
                match task.program[pc] {
                    Op::Run(time) | Op::Kernel(time) => ns += time.mean(),
                    Op::Count => frames += 1,
                    Op::Repeat { to, times } => {
                        rounds += 1;
                        if rounds < times {
                            pc = to as usize;
                            continue;
                        }
                        rounds = 0;
                    }
                    Op::Jump(_) => break,
                    _ => {}
                }
                pc += 1;
            }
            let thread = ns as f64 / f64::from(frames.max(1));
            // Of the threads of a pool each does one frame of as many as they are.
            sum += match frames {
                0 => thread / pool(&task.program, &load),
                _ => thread,
            };
        }
        sum / load.spaces.len() as f64
    };
    let whole = 400e3 + 4e6 + 2e6 + 3e6 + 30e6 + 5e6;
    for spec in [
        "ffmpeg",
        "ffmpeg:decoders=1,filters=0,encoders=1",
        "ffmpeg:decoders=7,filters=3,encoders=5,rows=17",
        "ffmpeg:cpus_per_instance=2,rows=1",
        "ffmpeg:cpus_per_instance=16,encoders=32,rows=270",
    ] {
        let mean = mean(spec);
        assert!((mean / whole - 1.0).abs() < 0.002, "{spec}: {mean}, not {whole}");
    }
}

/// How many threads of the first instance take turns with frames as this one does: those that go
/// through rows do. Slices and the lookahead are there for every frame.
fn pool(program: &[Op], load: &Workload) -> f64 {
    let row = |program: &[Op]| {
        let by_rows = program.iter().any(|op| matches!(op, Op::Repeat { .. }));
        let row = program.iter().find(|op| matches!(op, Op::Run(_))).copied();
        row.filter(|_| by_rows)
    };
    let Some(own) = row(program) else {
        return 1.0;
    };
    let first = load.tasks.iter().filter(|t| t.space == Some(0));
    first.filter(|t| row(&t.program) == Some(own)).count() as f64
}

/// One thread of each kind, one CPU each: the encoder sets the pace. No thread waits for rows of
/// its own, and nothing is lost.
#[test]
fn the_slowest_stage_sets_the_pace() {
    let outcome = run(
        "kunpeng920",
        "ffmpeg:instances=1,decoders=1,filters=0,encoders=1,rows=10,kernel_us=0,kworker_ms=0",
        [500, 2000],
    );
    let (found, most) = (fps(&outcome), 1e9 / 30e6);
    assert!(found < most * 1.02 && found > most * 0.96, "{found} of {most}");
    assert_eq!(outcome.metrics.counted as f64, found * 2.0);
}

/// Twelve encoding threads on eight CPUs keep them busy: rows that wait for rows cost some of that.
#[test]
fn threads_that_wait_for_rows_still_fill_their_cpus() {
    let outcome = run("kunpeng920", "ffmpeg:instances=1,kworker_ms=0", [500, 2000]);
    let most = 8.0 * 1e9 / 44.4e6;
    let found = fps(&outcome);
    assert!(found < most && found > most * 0.75, "{found} of {most}");
    // Whole frames make 14 wake-ups at most: the others are rows'.
    let wakeups = outcome.metrics.rt.wakeups as f64 / outcome.metrics.counted as f64;
    assert!(wakeups > 16.0, "{wakeups} wake-ups a frame");
    let names: Vec<_> = outcome.scores.iter().map(|s| (s.name.as_str(), s.unit)).collect();
    assert_eq!(names, [("fps", "frames/s"), ("kernel", "%")]);
    // 5 of 44.4 ms, and what scheduling takes.
    assert!(outcome.scores[1].value > 10.0, "{}", outcome.scores[1].value);
}

fn counted(scenario: &Scenario, overload: Mode) -> Scenario {
    let modes = Modes { overload, ..Modes::default() };
    Scenario { policy: Policy::new(Era::V6_15, modes), ..scenario.clone() }
}

fn laid_out(scenario: &Scenario, modes: &str) -> Scenario {
    let modes = modes.parse().expect("modes that there are");
    Scenario { policy: Policy::new(Era::V6_15, modes), ..scenario.clone() }
}

/// The mechanism changes what it costs to know of overloaded CPUs, and nothing else: where lines
/// cost nothing, every decision and every count is the same, in whatever layout the counters lie.
/// The second machine has several last-level caches a node.
#[test]
fn without_costs_of_lines_the_counters_change_nothing() {
    for name in ["rt480", "epyc7543"] {
        let mut free = (*machine(name)).clone();
        free.hardware.contended_line = None;
        let free = Arc::new(free);
        let spec = "ffmpeg:instances=6,rows=10,decode_us=200,encode_us=900,lookahead_us=50";
        let load = workload(&free, spec);
        let baseline = scenario(&free, Era::V6_15, load, [0, 60]);
        let (trace, outcome) = traced(&counted(&baseline, Mode::Off));
        assert!(outcome.metrics.counted > 100 && trace.lines().count() > 50);
        for layout in [
            "overload=posted",
            "overload=posted,overload-layout=llc-padded",
            "overload=perch,overload-layout=shared",
            "overload=perch,overload-layout=node",
            "overload=perch",
            "overload=perch,overload-layout=llc-padded",
        ] {
            let (other, mut found) = traced(&laid_out(&baseline, layout));
            // How many counters an answer took is theirs.
            found.metrics.rt.counter_loads = outcome.metrics.rt.counter_loads;
            assert!(trace == other, "{name}, {layout}: another trace");
            assert_eq!(outcome, found, "{name}, {layout}");
        }
    }
}

/// The counter's line has about as much HITM as the line with the most before, and none after: no
/// CPU writes to it any more. The loads that waited for it are no longer among the dear ones.
#[test]
fn the_counters_line_is_among_the_first_before_and_gone_after() {
    let rt480 = machine("rt480");
    let spec = "ffmpeg:rows=30,lag=3,main_us=30,decode_us=320,filter_us=155,lookahead_us=245,\
                encode_us=2400,kernel_us=490,kworker_ms=0";
    let baseline = scenario(&rt480, Era::V6_15, workload(&rt480, spec), [15, 5]);
    let line = |mode| {
        let outcome = counted(&baseline, mode).run().expect("a scenario that runs");
        let c2c = outcome.metrics.c2c.expect("contended lines");
        let at = c2c.lines.iter().position(|line| line.name == "root_domain+0x0");
        at.map(|at| (at, c2c.lines[at].total.hitm(), c2c.lines[0].total.hitm()))
    };
    let (rank, hitm, most) = line(Mode::Off).expect("the line is used");
    assert!(
        rank < 3 && hitm > 1000 && hitm * 10 > most * 9,
        "number {rank}, {hitm} of {most} HITM"
    );
    for mode in [Mode::Posted, Mode::Perch] {
        // The fair class's flag is left there.
        if let Some((rank, hitm, most)) = line(mode) {
            assert!(rank > 0 && hitm * 100 < most, "{mode:?}: {rank}, {hitm} of {most}");
        }
    }
}
