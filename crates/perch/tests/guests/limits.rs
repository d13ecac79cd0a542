// SPDX-License-Identifier: GPL-2.0-or-later
//! `cpu.max`: groups use the time that their limits allow, no more and no less, as under the kernel's
//! own scheduler, and a limited group keeps nobody else waiting.

use std::iter;

use perch_lab::Cpus;
use perch_plan::interface::Event;

use crate::guest::{Lab, SHELL, deterministic_shell, resolve, shell};
use crate::loaded::Perch;

/// Further functions of the shell.
const FUNCTIONS: &str = "
    cgroups favordynmods; cd $ROOT
    # A task of group $1 that does $2 for ever.
    task() { sh -c \"echo \\$\\$ > $ROOT/$1/cgroup.procs; exec 9<>/tmp/never
        while :; do $2; done\" >/dev/null 2>&1 & tasks=\"$tasks $!\"; }
    hogs() { n=0; while [ $n -lt $2 ]; do task $1 :; n=$((n+1)); done; }
    # Works for some ms, and sleeps for one.
    sleepers() { n=0; while [ $n -lt $2 ]; do
        task $1 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; read -t 0.001 never <&9'
        n=$((n+1)); done; }
    used() { at_once /proc/uptime $(printf '%s/cpu.stat ' $groups); }
    # When, s, and what the groups have used, before and after $1 s that begin after $2 s.
    measure() { pause $2; before=$(used); pause $1; after=$(used); echo $before; echo $after; }
    ";

/// The groups. The one below a limited one runs only while that one may, half of the time.
const GROUPS: &str = "
    echo +cpu > cgroup.subtree_control; mkdir -p quarter tree/leaf tree/rest awake free
    echo +cpu > tree/cgroup.subtree_control
    echo 25000 100000 > quarter/cpu.max
    echo 75000 50000 > tree/cpu.max
    echo 25000 100000 > tree/leaf/cpu.max
    echo 40000 100000 > awake/cpu.max
    groups='quarter tree tree/leaf awake free'
    ";
/// What each of them may use, in CPUs.
const SHARES: [f64; 4] = [0.25, 1.5, 0.25, 0.4];

const TASKS: &str =
    "hogs quarter 4; hogs tree/leaf 1; hogs tree/rest 3; sleepers awake 6; hogs free 1";

/// When, s, and what each group has used by then, us: of `/proc/uptime` and the groups' `cpu.stat`.
fn used(line: &str) -> Vec<f64> {
    let words: Vec<&str> = line.split(' ').collect();
    let pairs = words.windows(2).filter(|pair| pair[0] == "usage_usec");
    let figures = iter::once(words[0]).chain(pairs.map(|pair| pair[1]));
    figures.map(|figure| figure.parse().unwrap()).collect()
}

/// In four seconds each group has its limit to 5 %, with hogs and with tasks that sleep, alone and below a
/// group that has a limit too. perch loads before the tasks begin, as beside hogs that would take minutes.
#[test]
#[ignore = "seconds of tasks that never sleep, for --long"]
fn groups_use_what_their_limits_allow() {
    let machine = resolve("kunpeng920");
    let script = format!(
        "{FUNCTIONS} {GROUPS}
         load
         {TASKS}
         measure 4 0.5
         perch stats --format json >/dev/null && cat /sys/kernel/sched_ext/state"
    );
    let text = deterministic_shell(&machine, Cpus::AtMost(4), &["chrt"], &script);
    assert!(text.ends_with("enabled\n"), "{text}");
    let rows: Vec<Vec<f64>> = text.lines().take(2).map(used).collect();
    let us = 1e6 * (rows[1][0] - rows[0][0]);
    let ran: Vec<f64> = (1..6).map(|i| (rows[1][i] - rows[0][i]) / us).collect();
    println!("{ran:.3?} of a CPU");
    for (ran, share) in ran.iter().zip(SHARES) {
        assert!((ran / share - 1.0).abs() <= 0.05, "{ran} for {share}");
    }
    // The group without a limit has one task, which shares its CPU with the others' now and then.
    assert!(ran[4] > 0.8, "{ran:?}");
}

fn waited(perch: &Perch<'_>, event: Event) -> u64 {
    perch.report().event(event)
}

/// Limits are set and lifted, tasks come and go, groups too, while they are throttled.
fn limits_change(lab: &Lab) {
    lab.text(&format!(
        "{SHELL}{FUNCTIONS} echo +cpu > cgroup.subtree_control; mkdir -p a b; echo 5000 100000 > a/cpu.max"
    ));
    let perch = lab.load("");
    lab.text(&format!(
        "{SHELL}{FUNCTIONS} hogs a 5; echo $tasks > /tmp/tasks; sleepers a 3; hogs b 1; echo $tasks > /tmp/all"
    ));
    let reached = |more: u64| {
        let before = waited(&perch, Event::LimitReached);
        let what = "the group reaches its limit again and again";
        lab.until(what, || waited(&perch, Event::LimitReached) >= before + more);
    };
    reached(10);
    assert!(waited(&perch, Event::LimitHeld) > 0);
    // A task that leaves the group, and one whose affinity changes, while they are held or run.
    lab.text(&format!(
        "{SHELL}{FUNCTIONS} set -- $(cat /tmp/tasks); echo $1 > b/cgroup.procs; echo $2 > cgroup.procs
         taskset -p 1 $3; taskset -p 2 $4; echo $2 > a/cgroup.procs; kill -9 $5"
    ));
    reached(5);
    lab.text(&format!(
        "{SHELL}{FUNCTIONS} echo max > a/cpu.max; echo 20000 > b/cpu.max; mkdir c; set -- $(cat /tmp/all)
         for task in $*; do echo $task > c/cgroup.procs; done; rmdir a"
    ));
    // The number stays as nobody is left in a group with a limit.
    let what = "every task that was held runs again";
    let ran = || lab.text("cat $(printf '/proc/%s/schedstat ' $(cat /tmp/all)) 2>/dev/null; true");
    let before = ran();
    let counts = |text: &str| -> Vec<u64> {
        let lines = text.lines();
        lines.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    };
    let before = counts(&before);
    lab.until(what, || {
        let now = counts(&ran());
        now.len() == before.len() && now.iter().zip(&before).all(|(now, before)| now > before)
    });
    perch.is_well();
    println!("{}", lab.text("perch stats"));
    lab.text("kill -9 $(cat /tmp/all) 2>/dev/null; true");
    perch.unload();
}

#[test]
fn limits_change_while_they_hold_on_7_2() {
    limits_change(&Lab::small("7.2"));
}

#[test]
#[ignore = "7.2 is tested anyway, for --long"]
fn limits_change_while_they_hold_on_6_18() {
    limits_change(&Lab::boot("6.18", 8));
}

#[test]
#[ignore = "7.2 is tested anyway, for --long"]
fn limits_change_while_they_hold_on_arm64() {
    limits_change(&Lab::on(&resolve("juno"), "7.2"));
}

/// Twelve tasks share a millisecond in each second. The kernel throws a scheduler out when a task
/// waits for 30 s, so each of them runs now and then nevertheless.
#[test]
#[ignore = "half a minute of the guest's time, for --long"]
fn no_limit_is_so_low_that_the_kernel_ejects_perch() {
    let lab = Lab::small("7.2");
    let perch = lab.load("");
    lab.text(&format!(
        "{SHELL}{FUNCTIONS} echo +cpu > cgroup.subtree_control; mkdir few; echo 1000 1000000 > few/cpu.max
         hogs few 12; echo $tasks > /tmp/tasks"
    ));
    lab.until("each task has passed twice", || waited(&perch, Event::LimitPassed) >= 24);
    perch.is_well();
    lab.text("kill -9 $(cat /tmp/tasks)");
    perch.unload();
}

/// One group has the table's only place. Another below it is part of it and so under its limit; with a
/// limit of its own, set before or after perch loads, it makes perch leave the machine to the kernel.
#[test]
fn a_limit_without_room_ends_perch() {
    let script = format!(
        "{FUNCTIONS} echo 'groups = 1' > /tmp/few.toml
         echo +cpu > cgroup.subtree_control; mkdir few; echo 20000 100000 > few/cpu.max
         echo +cpu > few/cgroup.subtree_control; mkdir few/late
         load --config /tmp/few.toml; hogs few/late 2
         until perch stats --format prometheus | grep -q '^perch_limit_held_total [1-9]'; do pause 0.1; done
         echo 10000 100000 > few/late/cpu.max; wait $perch; echo ended with $?; cat /tmp/said
         perch run --config /tmp/few.toml 2>&1; echo ended with $?
         kill -9 $tasks; cat /sys/kernel/sched_ext/state"
    );
    let text = shell(&resolve("kunpeng920"), Cpus::AtMost(4), "7.2", &script);
    let why =
        "cgroup late has a cpu.max, and the table of 1 groups is full: groups has to be larger";
    assert_eq!(text.matches(why).count(), 2, "{text}");
    assert_eq!(text.matches("ended with 1\n").count(), 2, "{text}");
    assert!(text.ends_with("disabled\n"), "{text}");
}
