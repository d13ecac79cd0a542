// SPDX-License-Identifier: GPL-2.0-or-later
//! Cache-aware wake-up: a process's threads meet in one last-level cache, a process as large as the
//! machine leaves none idle, and the table of processes neither leaks nor overflows.

use std::collections::BTreeMap;

use perch_machine::Machine;
use perch_plan::interface::Event;

use crate::guest::{Lab, SHELL, listed};
use crate::loaded::Perch;

/// The number of looks at the threads' CPUs, at least 5 ms apart.
const LOOKS: usize = 40;
/// The rounds of such looks, a second apart, until all threads are where they should be.
const ROUNDS: usize = 8;

/// A further function of the shell.
const FUNCTIONS: &str = "
    threads() { for t in /proc/$1/task/*; do echo ${t##*/}; done; }
    ";

/// Two nodes of two last-level caches of four CPUs each, numbered in this order.
fn machine() -> Machine {
    let text = "name = \"caches\"\n[topology]\npackages = 2\nllcs_per_node = 2\n\
                cores_per_llc = 4\n";
    let machine = Machine::from_toml_str(text, "caches").unwrap();
    assert_eq!((machine.cpus.len(), machine.llcs()), (16, 4));
    machine
}

fn llc(cpu: u32) -> u32 {
    cpu / 4
}

fn numbers(text: &str) -> Vec<u32> {
    let numbers = text.split_whitespace().map(|word| word.parse().unwrap());
    numbers.collect()
}

/// The CPU of each thread at each look.
fn look(lab: &Lab, threads: &[u32]) -> Vec<BTreeMap<u32, u32>> {
    let text = lab.text(&format!("{SHELL}{FUNCTIONS} look {LOOKS} '{}'", listed(threads)));
    let mut looks = vec![BTreeMap::new(); LOOKS];
    for line in text.lines() {
        let words = numbers(line);
        looks[words[0] as usize].insert(words[1], words[2]);
    }
    assert!(looks.iter().all(|seen| seen.len() == threads.len()));
    looks
}

/// The looks at which `is` held, in per cent.
fn percent(looks: &[BTreeMap<u32, u32>], is: impl Fn(&BTreeMap<u32, u32>) -> bool) -> f64 {
    100.0 * looks.iter().filter(|seen| is(seen)).count() as f64 / looks.len() as f64
}

/// A process of two threads that share a mutex, yield and wake each other for ever; returns the
/// numbers of both, without that of the first thread, which only waits. They use no pipe: a pipe's
/// wake-ups tell that the waker is about to sleep, and then the wakee comes to the waker's CPU
/// without any mechanism.
fn pair(lab: &Lab) -> [u32; 2] {
    let text = lab.text(&format!(
        "{SHELL}{FUNCTIONS} sysbench threads --threads=2 --thread-locks=1 --thread-yields=5 --time=1000 run \
         >/dev/null 2>&1 & p=$!
        until [ $(threads $p | wc -l) -eq 3 ]; do sleep 0.01; done
        threads $p | grep -vx $p"
    ));
    numbers(&text).try_into().unwrap()
}

fn pin(lab: &Lab, thread: u32, mask: &str) {
    lab.text(&format!("taskset -p {mask} {thread} >/dev/null"));
}

/// Processes that the table holds now, by the scheduler's own count.
fn held(perch: &Perch) -> u64 {
    let report = perch.report();
    report.event(Event::ProcessesTracked) - report.event(Event::ProcessesEnded)
}

#[test]
fn the_threads_of_a_process_meet_in_one_cache() {
    let lab = Lab::on(&machine(), "7.2");
    let perch = lab.load("--set cache=perch");
    let pairs = [pair(&lab), pair(&lab)];
    // Each pair begins in two caches of different nodes, and the pairs have no cache in common:
    // four threads fill a cache of four CPUs, and a task that wakes there while a fifth runs is
    // sent out again.
    for ([one, other], masks) in pairs.into_iter().zip([["1", "1000"], ["10", "100"]]) {
        pin(&lab, one, masks[0]);
        pin(&lab, other, masks[1]);
    }
    lab.text("sleep 0.3");
    for thread in pairs.concat() {
        pin(&lab, thread, "ffff");
    }
    for left in (0..ROUNDS).rev() {
        lab.text("sleep 1");
        let looks = look(&lab, &pairs.concat());
        let together = pairs.map(|[one, other]| {
            let together = percent(&looks, |seen| llc(seen[&one]) == llc(seen[&other]));
            println!("process of {one} and {other}: together in {together:.0} % of the looks");
            together
        });
        if together.iter().all(|&together| together >= 90.0) {
            break;
        }
        if left == 0 {
            let report = perch.report();
            lab.fail(&format!("only {together:.1?} %: {looks:?}\n{report:#?}"));
        }
    }

    // A pinned thread stays, even if its process prefers another cache.
    let [one, other] = pairs[0];
    pin(&lab, one, "2");
    pin(&lab, other, "c000");
    lab.text("sleep 1");
    let looks = look(&lab, &pairs[0]);
    let stay = percent(&looks, |seen| seen[&one] == 1 && seen[&other] >= 14);
    assert_eq!(stay, 100.0, "{looks:?}");
    perch.is_well();
    lab.text("killall sysbench");
    perch.unload();
}

/// The time in which the CPUs of each cache were not idle, in per cent of some seconds.
fn busy_percent(lab: &Lab) -> Vec<f64> {
    // One look before and one after: 16 hogs leave the emulator no time for more.
    let stat = "grep '^cpu[0-9]' /proc/stat";
    let text = lab.text(&format!("{stat}; sleep 4; {stat}"));
    let mut caches = [(0.0, 0.0); 4];
    for (index, line) in text.lines().enumerate() {
        let sign = if index < 16 { -1.0 } else { 1.0 };
        let mut words = line[3..].split_whitespace();
        let cpu: u32 = words.next().unwrap().parse().unwrap();
        let ticks: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
        let (all, idle): (f64, f64) = (ticks[..8].iter().sum(), ticks[3] + ticks[4]);
        let cache = &mut caches[llc(cpu) as usize];
        cache.0 += sign * all;
        cache.1 += sign * idle;
    }
    let share = |(all, idle): &(f64, f64)| 100.0 * (all - idle) / all;
    caches.iter().map(share).collect()
}

#[test]
#[ignore = "seconds of 16 CPUs that never idle, for --long"]
fn a_process_as_large_as_the_machine_leaves_no_cache_idle() {
    let lab = Lab::on(&machine(), "7.2");
    let perch = lab.load("--set cache=perch");
    lab.text("sysbench cpu --threads=16 --time=1000 run >/dev/null 2>&1 & sleep 2");
    for left in (0..ROUNDS).rev() {
        let busy = busy_percent(&lab);
        println!("the caches' CPUs are busy for {busy:.0?} %");
        if busy.iter().all(|&busy| busy >= 50.0) {
            break;
        }
        if left == 0 {
            let report = perch.report();
            lab.fail(&format!("{busy:?}\n{report:#?}"));
        }
    }
    lab.text("killall sysbench");
    perch.unload();
}

/// Processes that have an address space, and so a place in the table: without kernel threads.
const LIVING: &str = "n=0; for p in /proc/[0-9]*; do read -r size rest < $p/statm && \
                      [ ${size:-0} -gt 0 ] && n=$((n+1)); done 2>/dev/null; echo $n";

#[test]
#[ignore = "hundreds of births, for --long"]
fn processes_give_back_their_places() {
    let lab = Lab::on(&machine(), "7.2");
    // These processes begin before perch is loaded and end under it.
    let before = lab.start("hackbench -T -p -g 2 -l 300 && hackbench -p -g 2 -l 50");
    lab.text("sleep 0.2");
    let perch = lab.load("--set cache=perch");
    lab.join("hackbench", before);
    lab.timed("births one by one", "for i in $(seq 1 200); do /bin/true || exit 1; done");
    // There are threads that exec, children that borrow their parent's memory, and parents that end
    // first.
    lab.timed(
        "births of every kind",
        "stress-ng --fork 2 --fork-ops 200 --vfork 2 --vfork-ops 100 --pthread 2 --pthread-ops 100 \
         --clone 2 --clone-ops 100 --exec 2 --exec-ops 50 --daemon 1 --daemon-ops 50 \
         --timeout 60",
    );
    let report = perch.report();
    assert!(report.event(Event::ProcessesTracked) > 500, "{report:#?}");
    assert_eq!(report.event(Event::ProcessesUntracked), 0, "{report:#?}");
    let mut found = (0, 0);
    let equal = (0..100).any(|_| {
        lab.text("sleep 0.2");
        // The shell that counts is among the living, and `perch stats` and its shell hold places
        // too.
        found = (held(&perch), numbers(&lab.text(LIVING))[0]);
        found.0.abs_diff(found.1.into()) <= 2
    });
    println!("{} places are taken, {} processes live", found.0, found.1);
    if !equal {
        lab.fail(&format!("{found:?} places and processes\n{report:#?}"));
    }
    perch.unload();
}

#[test]
#[ignore = "the threads of a process meet anyway, for --long"]
fn who_finds_the_table_full_is_counted_and_does_without() {
    let lab = Lab::on(&machine(), "7.2");
    lab.put("/tmp/perch.toml", "processes = 16\n");
    let perch = lab.load("--config /tmp/perch.toml --set cache=perch");
    let crowd = lab.start("for i in $(seq 1 40); do sleep 1000 & done; wait");
    lab.text("until [ $(pidof sleep | wc -w) -ge 40 ]; do sleep 0.2; done");
    let full = perch.report();
    assert!(held(&perch) <= 16, "{full:#?}");
    assert!(full.event(Event::ProcessesUntracked) >= 24, "{full:#?}");
    // perch places a process that has no place in the table all the same.
    lab.text("perf bench sched pipe -T -l 2000");
    perch.is_well();
    drop(crowd);
    lab.text("killall sleep 2>/dev/null; true");

    // There is room again.
    lab.until("there is room in the table", || held(&perch) < 16);
    let before = perch.report();
    lab.text("for i in 1 2 3 4 5; do /bin/true; done");
    let change = perch.report().since(&before);
    assert!(change.event(Event::ProcessesTracked) >= 5, "{change:#?}");
    perch.unload();
}
