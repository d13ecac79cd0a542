// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time band: the highest priorities run within their share.

use std::collections::{BTreeMap, BTreeSet};

use perch_plan::interface::Event;

use crate::guest::{Lab, SHELL, listed};
use crate::loaded::Perch;

/// Makes programs that never sleep and have these names; a script's name is that of its command.
fn make_hogs(lab: &Lab, names: &[&str]) {
    for name in names {
        lab.put(&format!("/tmp/{name}"), "#!/bin/sh\nwhile :; do :; done\n");
    }
    lab.text("chmod +x /tmp/*");
}

/// Starts `count` programs of a name on the CPUs of `mask` and returns their pids.
fn start(lab: &Lab, name: &str, count: usize, mask: &str) -> Vec<u32> {
    let one = format!("taskset {mask} /tmp/{name} >/dev/null 2>&1 & echo $!; ");
    let text = lab.text(&one.repeat(count));
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Execution time of tasks over so many seconds, in shares of a CPU.
fn shares(lab: &Lab, tasks: &[u32], seconds: u32) -> Vec<f64> {
    let script = format!(
        "count() {{ read -r now rest < /proc/uptime; echo ${{now}}; for task in {}; do
            read -r ran rest < /proc/$task/schedstat; echo $ran; done; }}
        count; sleep {seconds}; count",
        listed(tasks)
    );
    let text = lab.text(&script);
    let figures: Vec<f64> = text.lines().map(|line| line.parse().unwrap()).collect();
    let (before, after) = figures.split_at(figures.len() / 2);
    let passed_ns = (after[0] - before[0]) * 1e9;
    let pairs = after.iter().zip(before).skip(1);
    pairs.map(|(after, before)| (after - before) / passed_ns).collect()
}

/// The sum of the counters of overloaded CPUs when nothing changes, which must be the number of
/// marked CPUs (P10).
fn counters_add_up(lab: &Lab, perch: &Perch<'_>) -> u64 {
    // The timer looks every 4 ms; a change under way is complete a moment later.
    for _ in 0..20 {
        let report = perch.report();
        assert!(report.overload_lowest >= 0, "{report:#?}");
        if report.overload_sum == report.overloaded_cpus as i64 {
            return report.overloaded_cpus;
        }
        lab.text("sleep 0.1");
    }
    panic!("the counters do not add up: {:#?}", perch.report());
}

/// Begins to trace the switches on the CPUs of a mask, by the clock that /proc/uptime shows.
fn trace(lab: &Lab, mask: &str) {
    lab.text(&format!(
        "mount -t tracefs none /sys/kernel/tracing 2>/dev/null
        cd /sys/kernel/tracing && echo 1024 > buffer_size_kb && echo mono > trace_clock &&
        echo {mask} > tracing_cpumask && echo 1 > events/sched/sched_switch/enable &&
        echo > trace && echo 1 > tracing_on"
    ));
}

/// Seconds since the guest began.
fn now(lab: &Lab) -> f64 {
    let text = lab.text("cat /proc/uptime");
    text.split(' ').next().unwrap().parse().unwrap()
}

/// A task that got a CPU.
struct Switch {
    at: f64,
    cpu: usize,
    pid: u32,
    comm: String,
}

/// The traced switches, in order for each CPU.
fn switches(lab: &Lab) -> Vec<Switch> {
    let text = lab.text(
        "cd /sys/kernel/tracing && echo 0 > tracing_on && sed -n \
        's/.*\\[0*\\([0-9][0-9]*\\)\\].* \\([0-9]*\\.[0-9]*\\): sched_switch:.* next_comm=\\(.*\\) next_pid=\\([0-9]*\\) .*/\\2 \\1 \\4 \\3/p' trace",
    );
    let line = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_else(|| panic!("{line}"));
        Switch {
            at: word().parse().unwrap(),
            cpu: word().parse().unwrap(),
            pid: word().parse().unwrap(),
            comm: word().to_string(),
        }
    };
    text.lines().map(line).collect()
}

/// The tasks that ran on each of these CPUs at `looks` moments, spread evenly between two times:
/// the number of looks that met one of `tasks`, and the names of the others.
fn met(
    switches: &[Switch],
    cpus: &[usize],
    tasks: &BTreeSet<u32>,
    (from, to): (f64, f64),
    looks: u32,
) -> (u32, BTreeMap<String, u32>) {
    let mut found = 0;
    let mut others = BTreeMap::new();
    for cpu in cpus {
        let of_cpu: Vec<_> = switches.iter().filter(|switch| switch.cpu == *cpu).collect();
        for look in 0..looks {
            let moment = from + (to - from) * f64::from(look) / f64::from(looks);
            let before = of_cpu.partition_point(|switch| switch.at <= moment);
            let runs = before.checked_sub(1).map(|last| of_cpu[last]);
            if runs.is_some_and(|switch| tasks.contains(&switch.pid)) {
                found += 1;
            } else {
                let who = runs.map_or("nobody yet", |switch| &switch.comm);
                *others.entry(who.to_string()).or_default() += 1;
            }
        }
    }
    (found, others)
}

/// P16: twelve tasks of three priorities run on eight CPUs of two nodes. The observer, and every
/// other task that has a choice, runs on the other four.
fn the_highest_priorities_run(lab: &Lab) {
    make_hogs(lab, &["low", "middle", "high"]);
    let perch = lab.load(
        "--band comm=low,priority=10 --band comm=middle,priority=20 --band comm=high,priority=30",
    );
    let (cpus, mask) = ([0, 1, 2, 3, 6, 7, 8, 9], "3cf");
    trace(lab, mask);
    let low = start(lab, "low", 4, mask);
    let mut highest = BTreeSet::new();
    for name in ["middle", "high"] {
        highest.extend(start(lab, name, 4, mask));
    }
    let tasks: Vec<u32> = low.iter().chain(&highest).copied().collect();
    lab.until("four of twelve wait", || counters_add_up(lab, &perch) > 0);
    // The lowest priority waits so long that each of its tasks must have a tick, or the kernel would
    // complain.
    let relieved = perch.report().event(Event::BandRelieved);
    let from = now(lab);
    lab.until("the task that waits longest comes first for once", || {
        perch.report().event(Event::BandRelieved) >= relieved + 4
    });
    let to = now(lab);
    let looks = 1000 * cpus.len() as u32;
    let (found, others) = met(&switches(lab), &cpus, &highest, (from, to), 1000);
    println!(
        "{found} of {looks} looks in {:.1} s met one of the eight highest; the others: {others:?}",
        to - from
    );
    println!("{}", lab.text("perch stats"));
    assert!(found >= looks / 100 * 95, "it has not even its share");
    // The kernel's own threads have their share.
    let lower = |(who, _): &(&String, &u32)| *who == "low" || who.starts_with("swapper/");
    let lower: u32 = others.iter().filter(lower).map(|(_, count)| count).sum();
    let share = 100.0 * f64::from(found) / f64::from(found + lower);
    assert!(share >= 99.0, "only {share:.1} %");
    lab.kill(&tasks);
    lab.until("nobody waits", || counters_add_up(lab, &perch) == 0);
    let report = perch.report();
    assert!(report.event(Event::BandQueued) > 0, "{report:#?}");
    perch.unload();
}

/// On each CPU runs a task of the highest priority that never sleeps; another task must still get
/// its share.
fn runaways_leave(lab: &Lab, percent: u32, modes: &str, least: f64, most: f64) {
    make_hogs(lab, &["runaway", "other"]);
    let config = format!("band_percent = {percent}\n[[band]]\ncomm = \"runa*y\"\npriority = 99\n");
    lab.put("/tmp/band.toml", &config);
    let perch = lab.load(&format!("--config /tmp/band.toml --set {modes}"));
    let mut tasks = start(lab, "runaway", 8, "3cf");
    for cpu in [0, 1, 2, 3, 6, 7, 8, 9] {
        tasks.extend(start(lab, "other", 1, &format!("{:x}", 1 << cpu)));
    }
    lab.until("the band has waited on all CPUs", || {
        perch.report().event(Event::BandThrottled) >= 16
    });
    let shares = shares(lab, &tasks, 5);
    println!("{percent} %: {shares:.3?}");
    let others: f64 = 100.0 * shares[8..].iter().sum::<f64>() / shares.iter().sum::<f64>();
    println!("the others have {others:.1} %");
    for share in &shares[8..] {
        assert!(100.0 * share >= least / 2.0, "one has only {share:.3} of its CPU");
    }
    assert!(others >= least && others <= most, "{others:.1} %");
    lab.kill(&tasks);
    perch.unload();
}

/// Thirty tasks of the lower priority wait on one CPU behind a hog of the higher one. The kernel would throw
/// perch out when one has waited for 30 s; each has a turn after ten.
fn the_lowest_have_turns(lab: &Lab) {
    make_hogs(lab, &["low", "high"]);
    let perch = lab.load("--band comm=low,priority=10 --band comm=high,priority=30");
    let mut tasks = start(lab, "low", 30, "2");
    tasks.extend(start(lab, "high", 1, "2"));
    lab.until("each has had two turns", || perch.report().event(Event::BandRelieved) >= 60);
    lab.kill(&tasks);
    perch.unload();
}

#[test]
fn the_band_has_its_priorities() {
    the_highest_priorities_run(&Lab::boot("7.2", 12));
}

#[test]
#[ignore = "minutes of tasks that never sleep, for --long"]
fn the_band_has_its_share_and_each_task_a_turn() {
    let lab = Lab::boot("7.2", 12);
    runaways_leave(&lab, 95, "overload=off", 4.5, 20.0);
    runaways_leave(&lab, 80, "overload=posted", 18.0, 35.0);
    the_lowest_have_turns(&lab);
}

/// A task joins and leaves the band with its name, its niceness and its cgroup; and no task of the
/// band is lost, whatever else happens to it.
#[test]
#[ignore = "half a minute of the guest's time, for --long"]
fn tasks_join_and_leave() {
    let lab = Lab::boot("6.18", 8);
    // Only a program itself may change its name.
    lab.put(
        "/tmp/plain",
        "#!/bin/sh\ntrap 'echo hackbother > /proc/self/comm' USR1\n\
         trap 'echo plain > /proc/self/comm' USR2\nwhile :; do :; done\n",
    );
    lab.text("chmod +x /tmp/plain");
    let perch = lab.load(
        "--set overload=perch,overload-layout=llc-padded --band cgroup=/rt/in,priority=40 --band nice=-7,priority=30,slice_ms=5 \
         --band comm=hackb*,priority=20,slice_ms=1",
    );
    // Two tasks share one CPU; when one joins the band, it leaves the other the rest.
    let tasks = [start(&lab, "plain", 1, "8"), start(&lab, "plain", 1, "8")].concat();
    let first = tasks[0];
    let joined = |what: &str, joins: &str, leaves: &str| {
        lab.text(&format!("{joins}; sleep 0.3"));
        let with = shares(&lab, &tasks, 3);
        lab.text(&format!("{leaves}; sleep 0.3"));
        let without = shares(&lab, &tasks, 3);
        println!("{what}: {with:.3?} and then {without:.3?}");
        let of_first = |shares: &[f64]| shares[0] / (shares[0] + shares[1]);
        assert!(of_first(&with) > 0.75, "{what}: {with:.3?}");
        assert!(of_first(&without) < 0.7, "{what}: {without:.3?}");
    };
    joined("niceness", &format!("renice -n -7 -p {first}"), &format!("renice -n 7 -p {first}"));
    joined(
        "cgroup",
        &format!(
            "{SHELL} cgroups; mkdir -p $ROOT/rt/in/deep && echo {first} > $ROOT/rt/in/deep/cgroup.procs"
        ),
        &format!("echo {first} > /sys/fs/cgroup/rt/cgroup.procs"),
    );
    joined("name", &format!("kill -USR1 {first}"), &format!("kill -USR2 {first}"));
    lab.kill(&tasks);

    // hackbench runs in the band while its affinity changes.
    let bench = lab.start("for i in 1 2 3; do hackbench -p -g 2 -f 8 -l 100 || exit 1; done");
    let chase = "for round in $(seq 1 4); do for task in $(pidof hackbench); do
            mask=$(printf %x $(($(od -An -N1 -tu1 /dev/urandom) | 1 << round)))
            taskset -p $mask $task >/dev/null 2>&1; done; done; true";
    lab.timed("chased around", chase);
    lab.join("hackbench", bench);
    perch.is_well();
    counters_add_up(&lab, &perch);
    println!("{}", lab.text("perch stats"));
    perch.unload();
    lab.text("cd /sys/fs/cgroup && rmdir rt/in/deep rt/in rt");
}
