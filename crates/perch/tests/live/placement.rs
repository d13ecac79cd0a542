// SPDX-License-Identifier: GPL-2.0-only
//! Where wakees go: two tasks that wake each other are drawn into one cluster, if that is asked
//! for.

use perch_scheduler::interface::Event;

use crate::guest::Lab;

/// So many wake-ups with an idle CPU in the target's cluster are enough to take a share of.
const ENOUGH: u64 = 1000;

/// How many per cent of the wake-ups that had an idle CPU in the target's cluster went there, of
/// two tasks that wake each other. Again and again they begin on CPUs 1 and 2, in different
/// clusters of one LLC, and then the second one may go where it likes, and the first too if `both`
/// are free. Wake-ups of a task that may use one CPU only are not counted.
fn near_percent(lab: &Lab, modes: &str, both: bool) -> f64 {
    lab.put("/tmp/perch.toml", "detail = true\n");
    let perch = lab.load(&format!("--config /tmp/perch.toml --set {modes}"));
    let first = if both { "ff" } else { "2" };
    let script = format!(
        "perf bench sched pipe -l 100000000 >/dev/null & first=$!
        until second=$(cat /proc/$first/task/$first/children) && [ -n \"$second\" ]; do :; done
        for round in $(seq 1 6); do
            taskset -p 2 $first && taskset -p 4 $second && sleep 0.1
            taskset -p {first} $first && taskset -p ff $second && sleep 0.2
        done
        kill $first"
    );
    let begin = perch.report();
    // A slow host's guest wakes fewer tasks in the same time.
    let spans = (0..6).map(|_| {
        lab.text(&script);
        perch.report().since(&begin)
    });
    let change = spans
        .inspect(|change| println!("{} wake-ups", change.event(Event::NearIdle)))
        .find(|change| change.event(Event::NearIdle) >= ENOUGH)
        .unwrap_or_else(|| lab.fail("too few wake-ups"));
    perch.unload();

    let idle = change.event(Event::NearIdle);
    let share = 100.0 * change.event(Event::NearTaken) as f64 / idle as f64;
    println!("{modes}, both free: {both}: {share:.2} % of {idle} wake-ups");
    share
}

#[test]
fn ping_pong_stays_in_a_cluster_when_asked_to() {
    let lab = Lab::boot("7.2", 8, &["perf"]);
    // A busy host makes a round go wrong now and then.
    for both in [true, false] {
        let mut tries = (0..4).map(|_| near_percent(&lab, "cluster=perch", both));
        let together = tries.any(|share| share >= 95.0);
        assert!(together, "with cluster=perch they are apart");
    }

    // Without the mechanism two free tasks that happen to meet in a cluster stay there. Woken from
    // CPU 1, a task that does not find its own CPU idle looks on from CPU 2, and at CPU 0 last:
    // on a quiet host in one per cent of all wake-ups.
    let mut tries = (0..4).map(|_| near_percent(&lab, "cluster=off", false));
    let apart = tries.any(|share| share <= 20.0);
    assert!(apart, "with cluster=off they meet as well");
}
