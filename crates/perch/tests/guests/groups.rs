// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups: cgroups share each CPU by their weights, a wakee is steered to a CPU on which its
//! group has no task, and runs before others without starving them, and groups come and go by the
//! thousand.

use perch_plan::interface::Event;

use crate::guest::{Lab, SHELL};
use crate::loaded::Perch;

const ROOT: &str = "/sys/fs/cgroup";

/// Further functions of the shell.
const FUNCTIONS: &str = "
    cgroups; cd $ROOT
    # A task of group $1 that may use the CPUs $2 and does $3 for ever.
    task() { taskset $2 sh -c \"echo \\$\\$ > /sys/fs/cgroup/$1/cgroup.procs; exec 9<>/tmp/never
        while :; do $3; done\" >/dev/null 2>&1 & tasks=\"$tasks $!\"; }
    hog() { task $1 $2 :; }
    sleeper() { task $1 $2 'read -t 0.002 never <&9'; }
    # Works for a millisecond or so, and sleeps for a moment.
    restless() { task $1 $2 'n=0; while [ $n -lt 400 ]; do n=$((n+1)); done
        read -t 0.0002 never <&9'; }
    # What each of the tasks ran and waited, ns, and how often it was switched to. One program reads
    # all: another start between two tasks would take a part of a second where CPUs are busy.
    ran() { cat $(printf '/proc/%s/schedstat ' $tasks); }
    ";

/// Makes cgroups with cpu controllers, each with its weight; a parent comes before its children.
fn make(lab: &Lab, groups: &[(&str, u32)]) {
    let mut script = format!(
        "{SHELL} cgroups favordynmods; cd $ROOT && echo +cpu > cgroup.subtree_control || exit 1; "
    );
    for (path, weight) in groups {
        if let Some((above, _)) = path.rsplit_once('/') {
            script += &format!("echo +cpu > {above}/cgroup.subtree_control; ");
        }
        script += &format!("mkdir -p {path} && echo {weight} > {path}/cpu.weight || exit 1; ");
    }
    lab.text(&script);
}

/// Removes cgroups and all below them, once the tasks that were killed in them are gone.
fn remove(lab: &Lab, groups: &str) {
    lab.text(&format!(
        "cd {ROOT} && find {groups} -depth -type d | while read -r group; do
             until rmdir $group 2>/dev/null; do sleep 0.05; done; done"
    ));
}

/// The time that a task has run and waited, ns, and the number of switches to it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    ran: f64,
    waited: f64,
    switches: f64,
}

/// Starts tasks by a script, lets them settle for `settle` s, and returns the times of each in the
/// next `seconds`, in the order of their start. Kills them then.
fn observe(lab: &Lab, start: &str, settle: f64, seconds: f64) -> Vec<Seen> {
    let text = lab.text(&format!(
        "{SHELL}{FUNCTIONS} {start}
         pause {settle}; before=$(ran); pause {seconds}; after=$(ran)
         kill $tasks; echo \"$before\"; echo \"$after\""
    ));
    let rows: Vec<Vec<f64>> = text
        .lines()
        .map(|line| {
            let words = line.split_whitespace();
            words.map(|word| word.parse().unwrap()).collect()
        })
        .collect();
    let (before, after) = rows.split_at(rows.len() / 2);
    assert!(!before.is_empty() && before.len() == after.len(), "{text}");
    let pairs = before.iter().zip(after);
    pairs
        .map(|(before, after)| Seen {
            ran: after[0] - before[0],
            waited: after[1] - before[1],
            switches: after[2] - before[2],
        })
        .collect()
}

/// Demands that tasks which share a CPU had their parts of it.
fn have(lab: &Lab, seen: &[Seen], parts: &[f64], tolerance: f64) {
    let ran: f64 = seen.iter().map(|seen| seen.ran).sum();
    let whole: f64 = parts.iter().sum();
    let shares: Vec<f64> =
        seen.iter().zip(parts).map(|(seen, part)| seen.ran / ran / (part / whole)).collect();
    println!("{:.2} s on a CPU; of its part each had {shares:.3?}", ran / 1e9);
    if shares.iter().any(|share| (share - 1.0).abs() > tolerance) {
        lab.fail(&format!("not what is due: {shares:.3?}"));
    }
}

/// The number of groups in the table.
fn followed(perch: &Perch<'_>) -> u64 {
    let report = perch.report();
    report.event(Event::GroupsTracked) - report.event(Event::GroupsEnded)
}

/// Groups with the source's weights, 8192 against 1024, share every CPU, also when a user writes
/// other weights meanwhile; so do the groups of a hierarchy, and the threads of one process in
/// groups of their own.
fn groups_share_each_cpu_by_weight(lab: &Lab) {
    make(lab, &[("heavy", 800), ("light", 100)]);
    let perch = lab.load("");
    assert_eq!(followed(&perch), 2);
    let each = "for cpu in 1 2 4 8; do hog heavy $cpu; hog light $cpu; done";
    let seen = observe(lab, each, 0.2, 1.5);
    seen.chunks(2).for_each(|cpu| have(lab, cpu, &[8.0, 1.0], 0.05));
    let written = format!("{each}; pause 0.1; echo 50 > heavy/cpu.weight");
    let seen = observe(lab, &written, 0.1, 0.6);
    seen.chunks(2).for_each(|cpu| have(lab, cpu, &[1.0, 2.0], 0.05));

    let tree = [("a", 100), ("a/x", 300), ("a/y", 100), ("b", 200), ("p", 100), ("q", 100)];
    make(lab, &tree);
    make(lab, &[("p/one", 300), ("p/two", 100)]);
    let seen = observe(
        lab,
        "hog a/x 1; hog a/y 1; hog b 1
         # Two threads of one process, and a hog beside them.
         hog q 2
         taskset 2 sysbench cpu --threads=2 --time=100 run >/dev/null 2>&1 & process=$!
         while set -- /proc/$process/task/*; [ $# -lt 3 ]; do pause 0.02; done
         pause 0.1; echo -cpu > p/cgroup.subtree_control
         echo $process > p/cgroup.procs || exit 1
         echo threaded > p/one/cgroup.type; echo threaded > p/two/cgroup.type
         echo +cpu > p/cgroup.subtree_control || exit 1
         echo 300 > p/one/cpu.weight
         echo ${2##*/} > p/one/cgroup.threads && echo ${3##*/} > p/two/cgroup.threads || exit 1
         tasks=\"$tasks ${2##*/} ${3##*/}\"",
        0.1,
        1.5,
    );
    have(lab, &seen[..3], &[0.75, 0.25, 2.0], 0.05);
    have(lab, &seen[3..], &[1.0, 0.75, 0.25], 0.05);
    assert_eq!(followed(&perch), 10);
    println!("{}", lab.text("perch stats"));
    perch.unload();
    remove(lab, "heavy light a b p q");
}

/// Mean time from a wake-up to the switch, ns, of a heavy group's task that sleeps for 2 ms at a
/// time, with two hogs of light groups for each CPU. The test asserts only that steering makes the wait
/// shorter.
fn wait(lab: &Lab, steer: &str) -> f64 {
    let perch = lab.load(&format!("--set steer={steer}"));
    let start = "for light in one two three four; do hog $light f; hog $light f; done
                 pause 0.1; sleeper heavy f";
    let seen = observe(lab, start, 0.1, 1.0);
    let sleeper = seen.last().unwrap();
    println!("steer={steer}: {sleeper:.0?}");
    assert!(sleeper.switches >= 30.0, "{sleeper:?}");
    let report = perch.report();
    assert_eq!(report.event(Event::Credited) > 0, steer == "perch", "{report:#?}");
    perch.unload();
    sleeper.waited / sleeper.switches
}

fn steering_and_credit_shorten_the_wait_and_starve_nobody(lab: &Lab) {
    let lights = ["one", "two", "three", "four"].map(|name| (name, 100));
    make(lab, &[&[("heavy", 800)], &lights[..]].concat());
    let (without, with) = (wait(lab, "off"), wait(lab, "perch"));
    println!("from wake-up to switch: {without:.0} ns, with steering and credit {with:.0} ns");
    assert!(without > with, "{without:.0} ns and {with:.0} ns");

    // A task that wakes all the time gets no more than its group's part. Its group has no claim
    // left over, so the task gets no credit, whichever task it wakes beside.
    let perch = lab.load("");
    let start = "echo 300 > heavy/cpu.weight
                 for cpu in 1 2 4 8; do hog one $cpu; restless heavy $cpu; done";
    let seen = observe(lab, start, 0.2, 1.5);
    for cpu in seen.chunks(2) {
        let part = cpu[0].ran / (cpu[0].ran + cpu[1].ran);
        println!("the hog has {part:.3} of its CPU; {:.0?}", cpu[1]);
        assert!(cpu[1].switches > 50.0, "{cpu:?}");
        assert!(part >= 0.25 * 0.9, "{part}");
    }
    perch.unload();
}

/// One guest serves these tests, because a boot takes as long as they do.
#[test]
fn groups_share_each_cpu_and_are_steered() {
    let lab = Lab::small("7.2");
    groups_share_each_cpu_by_weight(&lab);
    steering_and_credit_shorten_the_wait_and_starve_nobody(&lab);
}

/// More than a thousand groups come and go beside hackbench, which has a group of its own. The test
/// makes a group, moves a task that goes on running into it, and deletes it, some groups while
/// their last tasks exit. Then it does so with a table that is too small.
#[test]
#[ignore = "a thousand groups, for --long"]
fn a_thousand_groups_come_and_go() {
    let lab = Lab::boot("7.2", 8);
    // With this option, moving a task between cgroups waits for no grace period.
    lab.text(&format!("mount -o remount,favordynmods {ROOT}"));
    make(&lab, &[("bench", 100), ("many", 100), ("many/deep", 100)]);
    lab.text(&format!("echo +cpu > {ROOT}/many/deep/cgroup.subtree_control"));
    let perch = lab.load("");
    assert_eq!(followed(&perch), 3);
    // hackbench has two CPUs of eight and pauses now and then, because QEMU runs all CPUs on one of
    // the host's.
    let load = lab.start(&format!(
        "taskset 3 sh -c 'echo $$ > {ROOT}/bench/cgroup.procs
             while [ ! -e /tmp/enough ]; do hackbench -p -g 1 -l 50 >/dev/null || exit 1
             sleep 0.2; done'"
    ));
    lab.timed(
        "a thousand groups",
        &format!(
            "{SHELL}{FUNCTIONS}
             batch=0; while [ $batch -lt 20 ]; do
                 number=0; names=; while [ $number -lt 50 ]; do
                     names=\"$names many/deep/g$number\"; number=$((number+1)); done
                 mkdir $names many/going || exit 1
                 task many/going fc '(:); read -t 0.01 never <&9'
                 for group in $names; do
                     echo $((number += 7)) > $group/cpu.weight && echo $$ > $group/cgroup.procs ||
                         exit 1
                 done
                 echo $$ > cgroup.procs; rmdir $names || exit 1
                 kill -9 $!; tries=0
                 until rmdir many/going 2>/dev/null; do
                     tries=$((tries+1)); [ $tries -lt 1000 ] || exit 1; done
                 batch=$((batch+1))
             done"
        ),
    );
    lab.text("touch /tmp/enough");
    lab.join("hackbench", load);
    perch.is_well();
    lab.until("every group gave its place back", || followed(&perch) == 3);
    let report = perch.report();
    assert_eq!(report.event(Event::GroupsTracked), 1023, "{report:#?}");
    assert_eq!(report.event(Event::GroupsUntracked), 0, "{report:#?}");
    println!("{}", lab.text("perch stats"));
    perch.unload();

    // A group without a place counts as part of the group above, and its tasks run.
    lab.put("/tmp/few.toml", "groups = 5\n");
    let perch = lab.load("--config /tmp/few.toml");
    lab.text(&format!(
        "cd {ROOT}; for group in 1 2 3 4 5; do mkdir many/f$group || exit 1; done
         echo 500 > many/f4/cpu.weight"
    ));
    let report = perch.report();
    assert_eq!(report.event(Event::GroupsTracked), 5, "{report:#?}");
    assert_eq!(report.event(Event::GroupsUntracked), 3, "{report:#?}");
    let seen = observe(&lab, "hog many/f4 8; hog many/f5 8", 1.0, 4.0);
    have(&lab, &seen, &[1.0, 1.0], 0.1);
    lab.text(&format!("cd {ROOT}; rmdir many/f1 many/f2"));
    lab.until("two places are free again", || followed(&perch) == 3);
    lab.text(&format!("mkdir {ROOT}/many/f6"));
    assert_eq!(followed(&perch), 4);
    perch.unload();
    remove(&lab, "bench many");
}

/// Two groups share a CPU on other kernels, and on arm64.
fn shares_on(lab: &Lab) {
    make(lab, &[("heavy", 800), ("light", 100)]);
    let perch = lab.load("");
    let seen = observe(lab, "hog heavy 2; hog light 2", 1.0, 6.0);
    have(lab, &seen, &[8.0, 1.0], 0.1);
    lab.text(&format!("rmdir {ROOT}/heavy {ROOT}/light"));
    lab.until("both gave their places back", || followed(&perch) == 0);
    perch.unload();
}

#[test]
#[ignore = "7.2 is tested anyway, for --long"]
fn groups_share_a_cpu_on_6_18() {
    shares_on(&Lab::boot("6.18", 8));
}

#[test]
#[ignore = "7.2 is tested anyway, for --long"]
fn groups_share_a_cpu_on_6_16() {
    shares_on(&Lab::boot("6.16", 8));
}

#[test]
#[ignore = "7.2 is tested anyway, for --long"]
fn groups_share_a_cpu_on_arm64() {
    let machine = perch_machine::resolve("juno").unwrap();
    shares_on(&Lab::on(&machine, "7.2"));
}
