// SPDX-License-Identifier: GPL-2.0-only
//! Where wakees go: two tasks that wake each other are drawn into one cluster, if that is asked
//! for.

use std::time::Duration;

use perch_scheduler::interface::Event;

use crate::guest::Lab;

/// Wake-ups with an idle CPU in the target's cluster of which the share is taken.
const ENOUGH: u64 = 2000;

/// How many per cent of the wake-ups that had an idle CPU in the target's cluster went there, of
/// two tasks that wake each other. They begin on CPUs 1 and 2, in different clusters of one LLC;
/// then the second one may go where it likes, and the first too if `both` are free.
fn near_percent(lab: &Lab, modes: &str, both: bool) -> f64 {
    lab.put("/tmp/perch.toml", "detail = true\n");
    let perch = lab.load(&format!("--config /tmp/perch.toml --set {modes}"));
    let first = if both { "ff" } else { "2" };
    let script = format!(
        "perf bench sched pipe -l 100000000 >/dev/null & first=$!
        until second=$(cat /proc/$first/task/$first/children) && [ -n \"$second\" ]; do :; done
        taskset -p 2 $first && taskset -p 4 $second && sleep 0.5
        taskset -p {first} $first && taskset -p ff $second && echo they are free
        wait $first"
    );
    let mut pair = lab.start(&script);
    if let Err(error) = pair.wait_for("they are free", Duration::from_secs(60)) {
        lab.fail(&error.to_string());
    }
    let begin = perch.report();
    let change = loop {
        lab.text("sleep 0.5");
        let change = perch.report().since(&begin);
        if change.event(Event::NearIdle) >= ENOUGH {
            break change;
        }
        assert!(change.uptime_ns < 60_000_000_000, "{change:#?}");
    };
    lab.text("killall perf");
    drop(pair);
    perch.unload();

    let idle = change.event(Event::NearIdle);
    let share = 100.0 * change.event(Event::NearTaken) as f64 / idle as f64;
    println!("{modes}, both free: {both}: {share:.2} % of {idle} wake-ups");
    share
}

#[test]
fn ping_pong_stays_in_a_cluster_when_asked_to() {
    let lab = Lab::boot("7.2", 8, &["perf"]);
    let free = near_percent(&lab, "cluster=perch", true);
    assert!(free >= 95.0, "with cluster=perch only {free:.2} %");

    // Without clusters two free tasks may happen to meet in one, and then stay there. Woken from
    // CPU 1, a task that does not find its own CPU idle looks on from CPU 2, and at CPU 0 last.
    let on = near_percent(&lab, "cluster=perch", false);
    let off = near_percent(&lab, "cluster=off", false);
    assert!(on >= 95.0, "with cluster=perch only {on:.2} %");
    assert!(off <= 5.0, "with cluster=off {off:.2} % as well");
}
