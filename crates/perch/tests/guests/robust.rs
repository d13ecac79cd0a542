// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs go and come, affinities change, tasks are born by the hundred, and the loader is killed: no
//! task is lost, and the kernel's log tells of no trouble.

use perch_lab::Cpus;
use perch_lab::guest::Process;
use perch_plan::interface::Event;
use perch_scheduler::stats::Report;

use crate::guest::{Lab, resolve, shell};

/// Starts tasks that wake each other until [`finish`] tells them to end. If a task is lost, others
/// wait for it in vain and the test fails. The pauses leave the emulator time for the other
/// programs.
fn churn(lab: &Lab) -> Process {
    let script = "rm -f /tmp/enough
        while [ ! -e /tmp/enough ]; do hackbench -T -p -g 1 -f 8 -l 200 || exit 1
            sleep 0.3; done";
    let churn = lab.start(script);
    lab.text("sleep 0.5");
    churn
}

/// Waits for a moment in which the tasks wake each other.
const AMID: &str = "until pidof hackbench >/dev/null; do :; done";

/// Lets the churn end, and demands that every task does.
fn finish(lab: &Lab, churn: Process) {
    lab.text("touch /tmp/enough");
    let rounds = lab.join("hackbench", churn);
    let rounds = rounds.matches("Time: ").count();
    println!("hackbench finished {rounds} times");
    assert!(rounds > 0);
    assert!(!lab.run("pidof hackbench").success(), "tasks are left over");
}

#[test]
fn cpus_go_and_come() {
    let lab = Lab::boot("7.2", 8);
    let perch = lab.load("");
    let churn = churn(&lab);
    // How often CPUs have gone and come by then.
    let steps = [(3, 0, [1, 0]), (3, 1, [1, 1]), (7, 0, [2, 1]), (7, 1, [2, 2])];
    for (cpu, online, expected) in steps {
        lab.text(&format!("{AMID}; echo {online} > /sys/devices/system/cpu/cpu{cpu}/online"));
        perch.is_well();
        let report = perch.report();
        let counted = [Event::CpuOffline, Event::CpuOnline].map(|event| report.event(event));
        assert_eq!(counted, expected);
        lab.text("sleep 0.5");
    }
    assert_eq!(perch.report().restarts, 0);
    // Tasks run there again.
    lab.text("taskset 8 true; taskset 80 true");
    finish(&lab, churn);
    perch.unload();
}

/// CPU 3 goes while its queues are full: of hogs and a sleeper that are pinned there, of the real-time band,
/// and of a group that has reached its limit. The kernel waits until the last task of the CPU has left. A
/// hotplug that takes 10 s of the guest's time counts as one that hangs.
const FULL: &str = r#"
    cgroups favordynmods; echo +cpu > $ROOT/cgroup.subtree_control; mkdir $ROOT/few; echo 20000 100000 > $ROOT/few/cpu.max
    load --band 'comm=rt*,priority=5'
    hog='while :; do :; done'
    for n in 1 2 3 4 5 6; do
        sh -c "echo \$\$ > $ROOT/few/cgroup.procs; $hog" & tasks="$tasks $!"
    done
    for n in 1 2; do taskset 8 sh -c "$hog" & tasks="$tasks $!"; sh -c "$hog" & tasks="$tasks $!"; done
    for n in 1 2; do
        sh -c 'printf rt > /proc/$$/comm; exec 9<>/tmp/never; n=0; while :; do n=$((n+1))
            [ $((n % 2000)) != 0 ] || read -t 0.002 never <&9; done' & tasks="$tasks $!"
    done
    taskset 8 sh -c 'printf rtp > /proc/$$/comm; exec 9<>/tmp/never
        while :; do read -t 0.003 never <&9; done' & tasks="$tasks $!"
    ran() { cat $(printf '/proc/%s/schedstat ' $tasks) | cut -d' ' -f1 | tr '
' ' '; }
    pause 1
    for round in 1 2 3 4 5; do
        for online in 0 1; do
            rm -f /tmp/done
            { echo $online > /sys/devices/system/cpu/cpu3/online; : > /tmp/done; } &
            n=0; until [ -e /tmp/done ] || [ $n -gt 100 ]; do pause 0.1; n=$((n+1)); done
            [ -e /tmp/done ] || echo "hangs: round $round, online $online"
            pause 0.2
        done
    done
    before=$(ran); pause 1
    for ran in $(ran); do
        set -- $before; [ $ran -gt $1 ] || echo "stands still at $ran"
        shift; before=$*
    done
    perch stats --format json > /tmp/stats; kill -TERM $perch; wait $perch; echo "ended with $?"
    dmesg | grep -E 'WARNING|BUG|stall' ; cat /tmp/said; cat /tmp/stats"#;

#[test]
#[ignore = "CPUs go and come anyway, for --long"]
fn a_cpu_goes_whose_queues_are_full() {
    let text = shell(&resolve("kunpeng920"), Cpus::AtMost(4), "7.2", FULL);
    let (said, json) = text.split_once('{').unwrap_or_else(|| panic!("{text}"));
    let report: Report = serde_json::from_str(&format!("{{{json}")).unwrap();
    assert!(said.starts_with("ended with 0\nperch: real-time band"), "{said}");
    assert_eq!(report.restarts, 0, "{said}");
    assert_eq!([Event::CpuOffline, Event::CpuOnline].map(|event| report.event(event)), [5, 5]);
    assert!(report.event(Event::LimitHeld) > 0 && report.event(Event::BandQueued) > 0);
}

/// perch loads again and again, with other settings each time, while CPUs go and come. Linux 6.18 deadlocks
/// if it frees the maps of a program then (`storage.rs`).
#[test]
#[ignore = "loads perch nine times, for --long"]
fn cpus_go_while_programs_end() {
    const SCRIPT: &str = r#"
        echo 'balance_ms = 4' > /tmp/perch.toml
        perch run --config /tmp/perch.toml >/tmp/said 2>&1 & perch=$!
        loaded() { grep -q "Ctrl-C unloads" /tmp/said && grep -q enabled /sys/kernel/sched_ext/state; }
        until loaded || ! kill -0 $perch; do sleep 0.05; done
        for round in 5 6 7 8; do
            for online in 0 1; do
                echo "balance_ms = $((round + online * 4))" > /tmp/perch.toml; kill -HUP $perch
                for cpu in 1 2 3; do
                    echo $online > /sys/devices/system/cpu/cpu$cpu/online; sleep 0.03
                done
            done
        done
        until loaded || ! kill -0 $perch; do sleep 0.05; done
        kill -TERM $perch; wait $perch; echo "perch ended with $?"; cat /tmp/said"#;
    let text = shell(&resolve("kunpeng920"), Cpus::AtMost(4), "6.18", SCRIPT);
    assert!(text.contains("perch ended with 0"), "{text}");
    assert!(text.contains("has changed: loading again"), "{text}");
}

#[test]
#[ignore = "CPUs go and come anyway, for --long"]
fn a_cpu_that_is_missing_at_the_start_comes() {
    let lab = Lab::boot("7.2", 8);
    lab.text("echo 0 > /sys/devices/system/cpu/cpu3/online");
    let perch = lab.load("");
    assert_eq!(perch.report().about.cpus, 7);
    let said = perch.said();
    assert!(said.contains("CPU 3 is offline: perch puts no task there"), "{said}");
    let running = churn(&lab);
    lab.text(AMID);
    perch.is_well();
    lab.text("echo 1 > /sys/devices/system/cpu/cpu3/online");
    perch.says_often("Ctrl-C unloads", 2);
    perch.is_well();
    let report = perch.report();
    assert_eq!((report.about.cpus, report.restarts), (8, 1));
    let said = perch.said();
    assert_eq!(said.matches("is offline").count(), 1, "{said}");
    // Tasks run there again.
    lab.text("taskset 8 true; sleep 0.5");
    finish(&lab, running);
    perch.unload();
}

#[test]
#[ignore = "hundreds of births, for --long"]
fn tasks_are_chased_around_and_born_by_the_hundred() {
    let lab = Lab::boot("7.2", 8);
    let perch = lab.load("");
    let running = churn(&lab);
    // The masks are of one CPU, of a few, and of all.
    let chase = "for round in $(seq 1 3); do
            for task in $(ls -d /proc/$(pidof hackbench | cut -d' ' -f1)/task/* 2>/dev/null); do
                mask=$(printf %x $(($(od -An -N1 -tu1 /dev/urandom) | 1 << round)))
                taskset -p $mask ${task##*/} >/dev/null 2>&1
            done
        done; true";
    lab.timed("hackbench chased around", chase);
    perch.is_well();
    let chased = "stress-ng --affinity 8 --affinity-rand --affinity-ops 2000 --timeout 100";
    lab.timed("tasks that run away by themselves", chased);
    perch.is_well();
    finish(&lab, running);

    let running = churn(&lab);
    let births = "for i in $(seq 1 150); do /bin/true || exit 1; done";
    lab.timed("births one by one", births);
    perch.is_well();
    lab.timed("births that overlap", "stress-ng --fork 8 --fork-ops 400 --timeout 100");
    perch.is_well();
    finish(&lab, running);
    perch.unload();
}

#[test]
#[ignore = "loads perch three times, for --long"]
fn a_loader_that_is_killed_leaves_the_kernel_on_its_own() {
    let lab = Lab::boot("7.2", 8);
    for _ in 0..2 {
        let perch = lab.load("");
        let churn = churn(&lab);
        perch.is_well();
        lab.text(AMID);
        perch.kill();
        lab.until("perch has left with its loader", || lab.scheduler().is_empty());
        finish(&lab, churn);
        lab.is_well();
    }
    // The remains of the killed loader, its socket above all, do not keep another from loading.
    let perch = lab.load("");
    perch.report();
    perch.unload();
}

/// Where the kernel has no memory for what perch keeps of a task, forks go on. A hog of a limited group and
/// a task of the band, both born then, are what they are once there is memory. Its maps' memory counts for
/// the cgroup in which perch loads, which nothing can be killed in.
const NO_MEMORY: &str = r#"
    cgroups favordynmods; echo '+memory +cpu' > $ROOT/cgroup.subtree_control; mkdir $ROOT/perch $ROOT/few
    echo 20000 100000 > $ROOT/few/cpu.max
    echo $$ > $ROOT/perch/cgroup.procs; echo -1000 > /proc/self/oom_score_adj
    load --band 'comm=rt*,priority=5'
    echo 0 > /proc/self/oom_score_adj; echo $$ > $ROOT/cgroup.procs; echo 0 > $ROOT/perch/memory.max
    for n in $(seq 400); do read -t 1000 never <&9 & tasks="$tasks $!"; done
    sh -c "echo \$\$ > $ROOT/few/cgroup.procs; while :; do :; done" & tasks="$tasks $!"
    sh -c 'printf rt > /proc/$$/comm; while :; do read -t 0.01 never <&9; done' & tasks="$tasks $!"
    pause 0.2; echo max > $ROOT/perch/memory.max
    counts() { perch stats --format prometheus | grep -E "^perch_($1)_total [1-9]"; }
    counts tasks_unrecorded
    for event in limit_held band_wakeups; do until counts $event >/dev/null; do pause 0.1; done; done
    kill -9 $tasks; kill -TERM $perch; wait $perch; echo "ended with $?"; cat /tmp/said"#;

fn forks_go_on_without_memory(kernel: &str) {
    let text = shell(&resolve("kunpeng920"), Cpus::AtMost(4), kernel, NO_MEMORY);
    let unrecorded = text
        .lines()
        .find_map(|line| line.strip_prefix("perch_tasks_unrecorded_total ")?.parse::<u32>().ok());
    // The first ones find room that the kernel keeps at hand.
    assert!(unrecorded.is_some_and(|births| births > 100), "{text}");
    assert!(text.contains("ended with 0\n"), "{text}");
}

#[test]
fn forks_go_on_without_memory_on_7_2() {
    forks_go_on_without_memory("7.2");
}

#[test]
#[ignore = "7.2 is tested anyway, for --long"]
fn forks_go_on_without_memory_on_6_18() {
    forks_go_on_without_memory("6.18");
}

/// Each release has a verifier of its own. Of 7.1 Debian has no sound build.
#[test]
#[ignore = "seven guests, and fetches four kernels, for --long"]
fn perch_loads_into_each_release() {
    for kernel in ["6.16", "6.17", "6.18", "6.19", "7.0", "7.2", "7.3"] {
        let text = shell(
            &resolve("kunpeng920"),
            Cpus::AtMost(2),
            kernel,
            "load --set waits=true,group_waits=true --band comm=x,user=root,priority=5
             cat /sys/kernel/sched_ext/state /tmp/said",
        );
        assert!(text.starts_with("enabled\n"), "{kernel}: {text}");
    }
}
