// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs of different capacity, in arm64 guests: tasks that need much end on the big ones, tasks
//! that need little stay on the LITTLE ones, and pinned tasks stay where they are pinned.

use std::collections::BTreeMap;

use perch_lab::Cpus;
use perch_machine::Machine;
use perch_plan::interface::Event;

use crate::guest::{Lab, SHELL, listed, resolve, shell};

/// The number of looks at the tasks' CPUs, at least 5 ms apart.
const LOOKS: usize = 40;
/// The looks, in per cent, that must find a task where it should be.
const ENOUGH: f64 = 95.0;
/// The rounds of such looks until that is so: a tick sends a task up, and the first round may come
/// before it.
const ROUNDS: usize = 6;
/// The most rounds with small tasks.
const SMALL_ROUNDS: usize = 10;

/// Further functions of the shell.
const FUNCTIONS: &str = "
    hog() { taskset $1 sh -c 'while :; do :; done' >/dev/null 2>&1 & }
    small() { taskset $1 sh -c 'exec 9<>/tmp/never; while :; do
        n=0; while [ $n -lt 30 ]; do n=$((n+1)); done; read -t 0.04 never <&9; done' \
        >/dev/null 2>&1 & }
    ";

/// A CPU mask as taskset takes it, of the CPUs that the condition names.
fn mask(machine: &Machine, is: impl Fn(u32) -> bool) -> String {
    let cpus = (0u32..).zip(&machine.cpus);
    let bits = cpus.filter(|(_, cpu)| is(cpu.capacity));
    format!("{:x}", bits.fold(0u64, |mask, (cpu, _)| mask | 1 << cpu))
}

/// The looks, in per cent, that found a task on CPUs of these capacities.
fn share(found: &BTreeMap<u32, f64>, is: impl Fn(u32) -> bool) -> f64 {
    found.iter().filter(|f| is(*f.0)).map(|f| f.1).sum()
}

/// A machine under perch, and its kinds of CPU.
struct Bench<'a> {
    lab: &'a Lab,
    machine: &'a Machine,
    little: u32,
    all: String,
}

impl Bench<'_> {
    /// Starts a task of a kind on the LITTLE CPUs only, and sets it free once it has run there for
    /// a while; returns its pid.
    fn begin(&self, kind: &str) -> u32 {
        let mask = mask(self.machine, |capacity| capacity == self.little);
        let script = format!(
            "{SHELL}{FUNCTIONS} {kind} {mask}; sleep 0.5; taskset -p {} $! >/dev/null; echo $!",
            self.all
        );
        self.lab.text(&script).trim().parse().unwrap()
    }

    /// Starts a hog that may use these CPUs only.
    fn pinned(&self, mask: &str) -> u32 {
        let pid = self.lab.text(&format!("{SHELL}{FUNCTIONS} hog {mask}; echo $!"));
        pid.trim().parse().unwrap()
    }

    /// The capacities of the CPUs on which each of the tasks was found, in per cent of the looks.
    /// The observer needs a CPU too, one of capacity `from`, where the tasks should not be. A small
    /// task that finds its own busy goes on to the next that it fits, LITTLE or big, and stays
    /// there.
    fn look(&self, from: u32, tasks: &[u32]) -> BTreeMap<u32, BTreeMap<u32, f64>> {
        let from = mask(self.machine, |capacity| capacity == from);
        let text = self.lab.text(&format!(
            "{SHELL}{FUNCTIONS} taskset -p {from} $$ >/dev/null; look {LOOKS} '{}'",
            listed(tasks)
        ));
        let mut found: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split(' ').map(|word| word.parse::<u32>().unwrap());
            let (_look, task, cpu) = (words.next(), words.next().unwrap(), words.next().unwrap());
            let capacity = self.machine.cpus[cpu as usize].capacity;
            *found.entry(task).or_default().entry(capacity).or_default() += 100.0 / LOOKS as f64;
        }
        assert_eq!(found.len(), tasks.len());
        println!("{found:.0?}");
        found
    }

    /// Looks until nearly every look finds all the tasks on CPUs of these capacities.
    fn settle(&self, from: u32, tasks: &[u32], is: impl Fn(u32) -> bool, what: &str) {
        for left in (0..ROUNDS).rev() {
            let found = self.look(from, tasks);
            if left == 0 {
                for found in found.values() {
                    self.is_on(found, &is, what);
                }
            }
            if found.values().all(|found| share(found, &is) >= ENOUGH) {
                return;
            }
        }
    }

    /// Demands that nearly every look found the task on CPUs of these capacities.
    fn is_on(&self, found: &BTreeMap<u32, f64>, is: impl Fn(u32) -> bool, what: &str) {
        let share = share(found, is);
        if share < ENOUGH {
            let stats = self.lab.text("perch stats");
            self.lab.fail(&format!("{what}: only {share:.1} %: {found:?}\n{stats}"));
        }
    }
}

/// Runs all of these tests on a machine of the library.
fn tasks_are_where_they_belong(name: &str) {
    let machine = perch_machine::resolve(name).unwrap();
    let capacities = || machine.cpus.iter().map(|cpu| cpu.capacity);
    let little = capacities().min().unwrap();
    let big = capacities().filter(|&capacity| capacity > little).count();
    let lab = Lab::on(&machine, "7.2");
    let bench = Bench { lab: &lab, machine: &machine, little, all: mask(&machine, |_| true) };
    let perch = lab.load("");
    assert!(perch.said().contains("capacity=perch"), "{}", perch.said());

    // Small tasks stay where they fit, though all the larger CPUs idle. One that wakes while a thread of
    // the kernel has its CPU goes on to a larger one and stays there, which happens in one of three
    // rounds: so there are several, of which one must go without that.
    for left in (0..SMALL_ROUNDS).rev() {
        let small = [bench.begin("small"), bench.begin("small")];
        let found = bench.look(1024, &small);
        let stayed = |task: &u32| share(&found[task], |on| on == little) >= ENOUGH;
        let all = small.iter().all(stayed);
        for task in small.iter().filter(|_| left == 0) {
            let what = "a small task on LITTLE CPUs";
            bench.is_on(&found[task], |on| on == little, what);
        }
        lab.kill(&small);
        if all {
            break;
        }
    }

    // A pinned hog stays on its CPU, too.
    let first = machine.cpus.iter().position(|cpu| cpu.capacity == little);
    let pinned = bench.pinned(&format!("{:x}", 1u64 << first.unwrap()));
    let found = bench.look(little, &[pinned]);
    assert_eq!(found[&pinned].len(), 1, "a pinned task moved: {found:?}");
    assert!(found[&pinned].contains_key(&little), "{found:?}");

    // One hog takes the largest CPU, and as many hogs as larger CPUs take all of these.
    let mut hogs = vec![bench.begin("hog")];
    bench.settle(little, &hogs, |on| on == 1024, "a hog on the largest CPU");
    while hogs.len() < big {
        hogs.push(bench.begin("hog"));
    }
    bench.settle(little, &hogs, |on| on > little, "a hog on larger CPUs");

    // With one too many, one of them runs on a LITTLE until a larger CPU idles.
    hogs.push(bench.begin("hog"));
    let found = bench.look(little, &hogs);
    let all = found.values().all(|found| found.keys().all(|&on| on > little));
    assert!(!all, "more hogs than larger CPUs: {found:?}");
    lab.kill(&hogs[..1]);
    let what = "a hog on the CPU that was set free";
    bench.settle(little, &hogs[1..], |on| on > little, what);
    let found = bench.look(little, &[pinned]);
    assert_eq!(found[&pinned].len(), 1, "a pinned task moved: {found:?}");
    assert!(found[&pinned].contains_key(&little), "{found:?}");

    let report = perch.report();
    assert!(report.event(Event::MovedUp) >= big as u64, "{report:#?}");
    hogs.remove(0);
    hogs.push(pinned);
    lab.kill(&hogs);
    perch.unload();
}

/// juno has two kinds of CPU, each with an LLC of its own.
#[test]
#[ignore = "minutes of an arm64 guest, for --long"]
fn tasks_are_where_they_belong_on_juno() {
    tasks_are_where_they_belong("juno");
}

/// pixel4 has three kinds of CPU under one LLC: 4 + 3 + 1.
#[test]
#[ignore = "minutes of an arm64 guest, for --long"]
fn tasks_are_where_they_belong_on_pixel4() {
    tasks_are_where_they_belong("pixel4");
}

/// A hog that its group's `cpu.uclamp.max` makes small is not sent to a big CPU, where another is, until the
/// limits of the whole system make it small, too: then no task is sent. A task whose group's `cpu.uclamp.min`
/// asks for a big CPU wakes on one, but not under these limits. All go back to their LITTLE CPUs before each look,
/// because an idle big CPU may take a small task while it waits behind another, and has no reason to give it
/// back. How often another task comes between is the kernel's affair, so small tasks have to be where they belong
/// in most looks, large ones in nearly all, and what was sent is counted. The guest is an x86-64 one with a machine file
/// that tells the capacities, because Debian's arm64 cloud kernel has no clamps.
#[test]
fn groups_and_the_system_clamp_the_need_of_tasks() {
    const TRIES: usize = 20;
    let script = format!(
        "{FUNCTIONS}
        cgroups favordynmods; echo +cpu > $ROOT/cgroup.subtree_control; mkdir $ROOT/small $ROOT/big
        echo 10 > $ROOT/small/cpu.uclamp.max; echo 100 > $ROOT/big/cpu.uclamp.min
        perch machine detect > /tmp/machine.toml
        printf '[[capacity]]\ncpus = \"0-1\"\nvalue = 446\n[[capacity]]\ncpus = \"2-3\"\nvalue = 1024\n' \
            >> /tmp/machine.toml
        load --machine /tmp/machine.toml
        hog 1; capped=$!; echo $capped > $ROOT/small/cgroup.procs
        pause 0.3
        often() {{ tries=0; while [ $tries -lt {TRIES} ]; do $1; tries=$((tries+1)); done; }}
        alone() {{
            taskset -p 1 $capped >/dev/null
            pause 0.02
            taskset -p f $capped >/dev/null
            pause 0.03
        }}
        hogs() {{
            taskset -p 1 $capped >/dev/null; taskset -p 2 $free >/dev/null
            pause 0.02
            taskset -p f $capped >/dev/null; taskset -p f $free >/dev/null
            pause 0.03
            look 1 \"$capped $free\"
        }}
        sent() {{ perch stats --format json | tr ',{{}}' '\n\n\n' |
            sed -n 's/\"moved_up\":/sent /p; s/\"stolen_[a-z]*\":/stolen /p'; }}
        sent; often alone; sent
        hog 2; free=$!
        pause 0.3
        often hogs | sed \"s/^0 $capped /capped /; s/^0 $free /free /\"
        for limit in min max; do echo 100 > /proc/sys/kernel/sched_util_clamp_$limit; done
        taskset -p 1 $capped >/dev/null; taskset -p 2 $free >/dev/null
        pause 0.3
        sent; often hogs | sed \"s/^0 $capped /both /; s/^0 $free /system /\"; sent
        kill -9 $capped $free; wait $capped $free 2>/dev/null
        small 2; boosted=$!; echo $boosted > $ROOT/big/cgroup.procs
        awake() {{
            taskset -p 2 $boosted >/dev/null
            pause 0.02
            taskset -p f $boosted >/dev/null
            pause 0.1
            look 1 $boosted
        }}
        pause 0.3
        often awake | sed \"s/^0 $boosted /limited /\"
        for limit in max min; do echo 1024 > /proc/sys/kernel/sched_util_clamp_$limit; done
        pause 0.3
        often awake | sed \"s/^0 $boosted /boosted /\"
        perch stats --format json >/dev/null && cat /sys/kernel/sched_ext/state"
    );
    let text = shell(&resolve("kunpeng920"), Cpus::AtMost(4), "7.2", &script);
    assert!(text.ends_with("enabled\n"), "{text}");
    let lines = |begin: &str| -> Vec<u64> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(begin));
        lines.map(|number| number.parse().unwrap()).collect()
    };
    let found = ["capped", "free", "both", "system", "limited", "boosted"].map(|task| {
        let cpus = lines(&format!("{task} "));
        assert_eq!(cpus.len(), TRIES, "{task}: {text}");
        (task, cpus.iter().filter(|cpu| **cpu >= 2).count())
    });
    println!("of {TRIES} looks found each task on a big CPU: {found:?}");
    for (task, looks) in found {
        let is_there = match task {
            "free" | "boosted" => 10 * looks >= 9 * TRIES,
            _ => 2 * looks < TRIES,
        };
        assert!(is_there, "{task}: {found:?}");
    }
    let sent = lines("sent ");
    assert_eq!(sent.len(), 4, "{text}");
    // The guest's other tasks, which nothing caps, may be sent up now and then.
    let capped = sent[1] - sent[0];
    assert!(4 * capped < TRIES as u64, "the capped hog was sent up: {text}");
    // An idle big CPU may steal the free hog while it waits behind another task, before it is sent.
    let stolen: Vec<u64> = lines("stolen ").chunks(4).map(|four| four.iter().sum()).collect();
    let (free, came) = (found[1].1 as u64, sent[2] - sent[1]);
    assert!(came + stolen[2] - stolen[1] >= free, "the free hog came by other ways: {text}");
    assert!(2 * came > free, "the free hog was mostly stolen: {text}");
    assert_eq!(sent[2], sent[3], "a task was sent up under the system's limits");
}
