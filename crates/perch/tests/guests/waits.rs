// SPDX-License-Identifier: GPL-2.0-or-later
//! How long tasks wait in a guest and how far they move, under the kernel's scheduler and perch, and
//! what perch's own histograms say of it. The first test asks for counts only: a guest's times are its
//! own. The second asks what is so at any speed.

use perch_lab::Cpus;
use perch_scheduler::stats::Report;
use serde_json::Value;

use crate::guest::{Lab, SHELL, resolve, setup, shell};

/// Two pairs for 100 ms of the guest's clock, which all CPUs' instructions advance: starting takes a
/// while.
const PAIRS: &str = "perch lab pairs --pairs 2 --by pipe --warmup 400ms --measure 100ms";
/// The load's command, its pairs, and the other side of each.
const TASKS: u64 = 5;

/// The distances of eight CPUs of kunpeng920.
const DISTANCES: [&str; 4] = ["same CPU", "cluster", "LLC", "package"];

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// The sum of a cause's moves, each of which has a distance that the machine has.
fn sum(moves: &Value) -> u64 {
    let moves = moves.as_object().expect("by distance");
    let unknown: Vec<_> = moves.keys().filter(|name| !DISTANCES.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    moves.values().map(number).sum()
}

/// Demands of what the load and the agent printed that every wake-up was counted once and classified.
fn counts_add_up(lines: &[&str]) {
    let [load, waits] = lines else {
        panic!("{lines:?}");
    };
    println!("{load}\n{waits}");
    let rate = load.rsplit(": ").next().and_then(|text| text.split_once(' '));
    let rate: f64 = rate.expect(load).0.parse().expect(load);
    let waits: Value = serde_json::from_str(waits).expect("perch writes JSON");
    let count = |wait: &str| number(&waits[wait]["count"]);
    assert!(rate > 0.0 && count("wakeup") as f64 >= rate / 10.0, "{waits}");
    assert_eq!(count("wakeup"), count("waking"), "{waits}");
    let [woken, preempted, forked] =
        ["moves_woken", "moves_preempted", "moves_forked"].map(|cause| sum(&waits[cause]));
    assert_eq!(woken, count("wakeup"), "{waits}");
    assert_eq!(preempted, count("preempted"), "{waits}");
    assert_eq!(forked, TASKS, "{waits}");
    assert_eq!(woken + preempted + forked, number(&waits["switches"]), "{waits}");
}

#[test]
#[ignore = "the waits of hogs are tested anyway, for --long"]
fn wake_ups_are_counted_and_moves_have_distances() {
    let waits = format!("/bin/perch agent watched --waits -- {PAIRS}");
    let script = format!("{waits} && exec /bin/perch agent scheduled -- {waits}");
    let text = shell(&resolve("kunpeng920"), Cpus::AtMost(8), "7.2", &script);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    lines.chunks(2).for_each(counts_add_up);
}

/// What a script prints in a guest of two CPUs, which is shown with what it says on stderr.
fn on_two_cpus(script: &str) -> String {
    let lab = Lab::of(setup(&resolve("kunpeng920"), Cpus::AtMost(2), "7.2"));
    let output = lab.run(&format!("{SHELL}{script}"));
    let (text, log) = (output.text(), output.error_text());
    println!("{text}\n{log}");
    text
}

fn report(text: &str) -> Report {
    serde_json::from_str(text).expect("perch writes JSON")
}

/// Two hogs share CPU 1; the second that counts lies between two looks at the statistics.
const HOGS: &str = "
load --set waits=true
for hog in 1 2; do taskset 2 sh -c 'while :; do :; done' & hogs=\"$hogs $!\"; done
sleep 0.5
perch stats --format json
sleep 1
perch stats --format json
perch stats --format prometheus | grep '^perch_wait_seconds_bucket{' | grep -c 'reason=\"preempted\"'
kill $hogs
perch lab pairs --pairs 1 --by pipe --warmup 400ms --measure 100ms >/dev/null
perch stats --format json
kill $perch
wait $perch
cat /tmp/said >&2
";

#[test]
fn of_two_hogs_on_a_cpu_one_always_waits() {
    let text = on_two_cpus(HOGS);
    let lines: Vec<&str> = text.lines().collect();
    let [first, second, samples, third] = lines[..] else {
        panic!("{text}");
    };
    let [first, second, third] = [first, second, third].map(report);
    let waited = second.since(&first);
    let preempted = &waited.waits["preempted"];
    // All of the time but for a turn at each end, and what wakes on that CPU.
    let part = preempted.sum_ns as f64 / waited.uptime_ns as f64;
    assert!((0.95..1.05).contains(&part), "{part}: {waited:?}");
    // A turn of 3 ms is over at a tick, and no turn is longer than two ticks of 4 ms.
    let median = preempted.quantile_us(0.5);
    assert!([Some(4096.0), Some(8192.0)].contains(&median), "{median:?}: {waited:?}");
    assert_eq!(samples, preempted.buckets.len().to_string());

    // Each wake-up had a wait that began as a wakee's, unless the task was moved. A task that is woken
    // while it still leaves its CPU is queued there without a decision, which alone has a reason. A few
    // tasks wait while the statistics are read.
    let woken = third.since(&second);
    let count = |name: &str| woken.waits[name].count;
    let placed: u64 = ["idle", "queued", "behind", "forked"].map(count).iter().sum();
    let wakeups = woken.wakeups();
    assert!(wakeups > 1000, "{woken:?}");
    let most = wakeups + count("queued") + 8;
    assert!(placed <= most, "{placed}: {woken:?}");
    assert!(placed + count("moved") + 8 >= wakeups, "{placed}: {woken:?}");
    assert!(10 * placed > 9 * wakeups, "{placed}: {woken:?}");
    assert_eq!(count("band") + count("limited"), 0);
}

/// A hog whose group may use a fifth of a CPU, and on another CPU two of the band that take turns; the second
/// that counts lies between two looks at the statistics.
const HELD: &str = "
cgroups; echo +cpu > $ROOT/cgroup.subtree_control; mkdir $ROOT/few $ROOT/turns
echo 20000 100000 > $ROOT/few/cpu.max
load --set waits=true,group_waits=true --band cgroup=/turns,priority=5,policy=rr
hog() { sh -c \"echo \\$\\$ > $ROOT/$1/cgroup.procs; exec taskset $2 sh -c 'while :; do :; done'\" & hogs=\"$hogs $!\"; }
hog few 1; hog turns 2; hog turns 2
sleep 0.5
perch stats --format json
sleep 1
perch stats --format json
perch stats | sed -n '/waited in cgroup/,/^$/p' >&2
kill $hogs $perch
wait $perch
cat /tmp/said >&2
";

#[test]
#[ignore = "seconds of tasks that never sleep, for --long"]
fn what_a_limit_and_the_band_hold_back_is_told_apart() {
    let text = on_two_cpus(HELD);
    let lines: Vec<&str> = text.lines().collect();
    let [first, second] = lines[..] else {
        panic!("{text}");
    };
    let [first, second] = [first, second].map(report);
    let waited = second.since(&first);
    let part = |name: &str| waited.waits[name].sum_ns as f64 / waited.uptime_ns as f64;
    // Four fifths of each period of 100 ms, give or take one.
    let limited = part("limited");
    assert!((0.65..0.95).contains(&limited), "{limited}: {waited:?}");
    // One of the two waits at any time, a turn of 100 ms or two longer or shorter; both while the band's share of
    // the CPU is used up.
    let band = part("band");
    assert!((0.75..1.35).contains(&band), "{band}: {waited:?}");

    // By cgroup they are the same waits; some end while the statistics are read.
    let few = &waited.group_waits["/few"];
    let apart = few.limited_ns.abs_diff(waited.waits["limited"].sum_ns);
    assert!(apart <= 100_000_000, "{waited:?}");
    assert!(few.limited > 5, "{waited:?}");
    let turns = &waited.group_waits["/turns"];
    let apart = turns.waits.sum_ns.abs_diff(waited.waits["band"].sum_ns);
    assert!(apart <= 200_000_000, "{waited:?}");
    assert_eq!(turns.limited, 0);
    let all = second.waits_below("/");
    let reasons = second.waits.values().map(|waits| waits.count);
    let more = (all.waits.count + all.limited).checked_sub(reasons.sum());
    assert!(more.is_some_and(|more| more <= 16), "{more:?}: {second:?}");
}
