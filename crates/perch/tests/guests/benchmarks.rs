// SPDX-License-Identifier: GPL-2.0-or-later
//! Benchmarks finish under perch, and every decision that they cause has a reason.

use perch_lab::kernel::OLDEST;
use perch_scheduler::interface::Event;
use perch_scheduler::stats::Report;

use crate::guest::Lab;
use crate::loaded::Perch;

/// The least part of the wake-ups that the scheduler decides about. The kernel counts a task that is
/// woken before it has slept too, and asks no scheduler about it: under the stock one such are 5 % of the
/// wake-ups of stress-ng's pipes, and 10 % of hackbench's where 16 CPUs take turns on one of the host's.
const DECIDED: f64 = 0.75;

/// A benchmark, its command, and the least number of wake-ups that it makes.
const BENCHMARKS: [(&str, &str, u64); 7] = [
    (
        "hackbench, threads and pipes",
        "hackbench -T -p -g 2 -l 200",
        200,
    ),
    (
        "hackbench, processes and sockets",
        "hackbench -g 1 -l 200",
        100,
    ),
    (
        "sysbench threads",
        "sysbench threads --threads=16 --thread-yields=50 --thread-locks=4 --events=1000 \
         --time=0 run",
        100,
    ),
    (
        "tbench",
        "tbench_srv >/dev/null & sleep 0.5; tbench -t 2 4 127.0.0.1; code=$?; kill $!; exit $code",
        500,
    ),
    (
        "perf bench sched pipe",
        "perf bench sched pipe -l 5000",
        5000,
    ),
    (
        "perf bench sched messaging",
        "perf bench sched messaging -g 1 -l 100",
        100,
    ),
    (
        "stress-ng --switch",
        "stress-ng --switch 4 --switch-ops 10000 --timeout 100",
        500,
    ),
];

/// Wake-ups as the kernel counts them, whichever scheduler places the wakee.
fn kernel_wakeups(lab: &Lab) -> u64 {
    // The fifth number of a CPU: Documentation/scheduler/sched-stats.rst.
    let script = "awk '/^cpu/ { sum += $6 } END { print sum }' /proc/schedstat";
    lab.text(script).trim().parse().unwrap()
}

fn has_reasons(report: &Report) {
    let nothing = report.reasons["nothing"].wakeups;
    assert_eq!(nothing, 0, "decisions without a reason: {report:#?}");
    // A wakee goes to an idle CPU or behind other tasks; a few may be on their way.
    let placed = report.event(Event::Direct) + report.event(Event::Queued) + report.about.cpus;
    assert!(
        report.wakeups() <= placed,
        "more decisions than tasks placed: {report:#?}"
    );
}

fn all_finish(lab: &Lab, perch: &Perch) {
    for (name, script, at_least) in BENCHMARKS {
        let (before, kernel_before) = (perch.report(), kernel_wakeups(lab));
        lab.timed(name, script);
        let (after, kernel_after) = (perch.report(), kernel_wakeups(lab));
        perch.is_well();
        let change = after.since(&before);
        has_reasons(&change);
        let (decisions, wakeups) = (change.wakeups(), kernel_after - kernel_before);
        println!("  {decisions} decisions, {wakeups} wake-ups by the kernel's count");
        assert!(decisions >= at_least, "{name}: {decisions} decisions");
        // The kernel does not count births; it does count tasks of other classes.
        let counted = decisions as f64 / wakeups as f64;
        assert!(
            counted >= DECIDED,
            "{name}: {decisions} of {wakeups} decided"
        );
    }
    has_reasons(&perch.report());
}

fn benchmarks_finish(kernel: &str, cpus: usize, config: &str) {
    let lab = Lab::boot(kernel, cpus);
    lab.text("echo 1 > /proc/sys/kernel/sched_schedstats");
    lab.put("/tmp/perch.toml", config);
    let perch = lab.load("--config /tmp/perch.toml");
    assert_eq!(perch.report().about.cpus, cpus as u64);
    all_finish(&lab, &perch);
    println!("{}", perch.unload());
    lab.text("echo 0 > /proc/sys/kernel/sched_schedstats");
}

#[test]
#[ignore = "16 CPUs, and 8 on an older kernel, run anyway"]
fn benchmarks_finish_on_8_cpus() {
    benchmarks_finish("7.2", 8, "");
}

#[test]
fn benchmarks_finish_on_16_cpus() {
    benchmarks_finish("7.2", 16, "");
}

#[test]
fn benchmarks_finish_on_an_older_kernel() {
    benchmarks_finish("6.18", 8, "detail = true\n");
}

#[test]
#[ignore = "fetches the oldest kernel, 15 MB"]
fn benchmarks_finish_on_the_oldest_kernel() {
    let [major, minor] = OLDEST;
    benchmarks_finish(&format!("{major}.{minor}"), 8, "detail = true\n");
}
