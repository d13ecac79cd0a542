// SPDX-License-Identifier: GPL-2.0-or-later
//! Benchmarks finish under perch, and every decision that they cause has a reason.

use perch_lab::kernel::OLDEST;
use perch_plan::interface::Event;
use perch_scheduler::stats::Report;

use crate::guest::Lab;
use crate::loaded::Perch;

/// The least part of the kernel's questions that the scheduler decides. The kernel passes on each of
/// them except an exec's, of which a benchmark makes a few.
const DECIDED: f64 = 0.99;

/// A benchmark, its command, and the least number of wake-ups that it makes.
const BENCHMARKS: [(&str, &str, u64); 7] = [
    ("hackbench, threads and pipes", "hackbench -T -p -g 2 -l 200", 200),
    ("hackbench, processes and sockets", "hackbench -g 1 -l 200", 100),
    (
        "sysbench threads",
        "sysbench threads --threads=16 --thread-yields=50 --thread-locks=4 --events=10000 \
         --time=0 run",
        100,
    ),
    (
        "tbench",
        "tbench_srv >/dev/null & sleep 0.5; tbench -t 2 4 127.0.0.1; code=$?; kill $!; exit $code",
        500,
    ),
    ("perf bench sched pipe", "perf bench sched pipe -l 5000", 5000),
    ("perf bench sched messaging", "perf bench sched messaging -g 1 -l 300", 100),
    ("stress-ng --switch", "stress-ng --switch 4 --switch-ops 10000 --timeout 100", 500),
];

/// Has the kernel count how often it asks sched_ext for a CPU. Its statistics (`/proc/schedstat`) would
/// not do: they also count a task that is woken before it sleeps, for which it asks nobody.
fn count_questions(lab: &Lab) {
    lab.text(
        "cd /sys/kernel/tracing && echo 'p:perch/asked select_task_rq_scx' >kprobe_events &&
        echo 1 >events/perch/asked/enable",
    );
}

/// How often the kernel has asked.
fn questions(lab: &Lab) -> u64 {
    // A probe's event, hits and misses: Documentation/trace/kprobetrace.rst.
    let profile = lab.text("cat /sys/kernel/tracing/kprobe_profile");
    let numbers: Vec<&str> = profile.split_whitespace().collect();
    let ["asked", hits, "0"] = numbers[..] else {
        panic!("one probe and no misses were expected: {profile}");
    };
    hits.parse().unwrap()
}

fn has_reasons(report: &Report) {
    let nothing = report.reasons["nothing"].wakeups;
    assert_eq!(nothing, 0, "decisions without a reason: {report:#?}");
    // A wakee goes to an idle CPU or behind other tasks; a few may be on their way.
    let placed = report.event(Event::Direct) + report.event(Event::Queued) + report.about.cpus;
    assert!(report.wakeups() <= placed, "more decisions than tasks placed: {report:#?}");
}

fn all_finish(lab: &Lab, perch: &Perch) {
    for (name, script, at_least) in BENCHMARKS {
        let (before, asked_before) = (perch.report(), questions(lab));
        lab.timed(name, script);
        // Reading makes wake-ups too, and others happen meanwhile. The questions are read first, so all
        // of these are among the decisions, and none is a question that nobody answered. They are some
        // forty, so a benchmark has to make several thousand wake-ups for DECIDED to be met by them.
        let asked_after = questions(lab);
        let after = perch.report();
        perch.is_well();
        let change = after.since(&before);
        has_reasons(&change);
        // A task that may use one CPU only is counted as a decision, but the kernel does not ask.
        let decisions = change.wakeups() - change.event(Event::Pinned);
        let asked = asked_after - asked_before;
        println!("  {decisions} decisions, and the kernel asked {asked} times");
        assert!(decisions >= at_least, "{name}: {decisions} decisions");
        assert!(
            decisions as f64 >= DECIDED * asked as f64,
            "{name}: {decisions} decisions, and the kernel asked {asked} times"
        );
    }
    has_reasons(&perch.report());
}

fn benchmarks_finish(kernel: &str, cpus: usize, config: &str) {
    let lab = Lab::boot(kernel, cpus);
    count_questions(&lab);
    lab.put("/tmp/perch.toml", config);
    let perch = lab.load("--config /tmp/perch.toml");
    assert_eq!(perch.report().about.cpus, cpus as u64);
    all_finish(&lab, &perch);
    println!("{}", perch.unload());
}

#[test]
#[ignore = "programs finish in the recorded loads anyway, for --long"]
fn benchmarks_finish_on_8_cpus() {
    benchmarks_finish("7.2", 8, "");
}

#[test]
#[ignore = "the benchmarks on 8 CPUs run anyway, for --long"]
fn benchmarks_finish_on_16_cpus() {
    benchmarks_finish("7.2", 16, "");
}

#[test]
#[ignore = "the benchmarks on 7.2 run anyway, for --long"]
fn benchmarks_finish_on_an_older_kernel() {
    benchmarks_finish("6.18", 8, "detail = true\n");
}

#[test]
#[ignore = "fetches the oldest kernel, 15 MB"]
fn benchmarks_finish_on_the_oldest_kernel() {
    let [major, minor] = OLDEST;
    benchmarks_finish(&format!("{major}.{minor}"), 8, "detail = true\n");
}
