// SPDX-License-Identifier: GPL-2.0-only
//! Where wakees go: two tasks that wake each other are drawn into one cluster, if that is asked
//! for.

use perch_scheduler::interface::Event;
use perch_scheduler::stats::Report;

use crate::guest::Lab;

/// Wake-ups with an idle CPU in the target's cluster, and how many of them the share is of.
const ENOUGH: u64 = 2000;

/// Two tasks that begin in different clusters of one LLC and may then go where they like: what
/// perch counts of their wake-ups.
fn ping_pong(lab: &Lab, modes: &str) -> Report {
    lab.put("/tmp/perch.toml", "detail = true\n");
    let perch = lab.load(&format!("--config /tmp/perch.toml --set {modes}"));
    // CPUs 0 and 1 are a cluster, 2 and 3 another one of the same LLC.
    let script = "perf bench sched pipe -l 100000000 >/dev/null & parent=$!
        until child=$(cat /proc/$parent/task/$parent/children) && [ -n \"$child\" ]; do :; done
        taskset -p 1 $parent && taskset -p 4 $child && sleep 0.5
        taskset -p ff $parent && taskset -p ff $child && echo both are free
        wait $parent";
    let mut pair = lab.start(script);
    if let Err(error) = pair.wait_for("both are free", std::time::Duration::from_secs(60)) {
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
    change
}

fn near_share(lab: &Lab, modes: &str) -> f64 {
    let change = ping_pong(lab, modes);
    let (taken, idle) = (
        change.event(Event::NearTaken),
        change.event(Event::NearIdle),
    );
    let share = 100.0 * taken as f64 / idle as f64;
    println!("{modes}: {share:.2} % of {idle} wake-ups went to the target's cluster");
    share
}

#[test]
fn ping_pong_stays_in_a_cluster_when_asked_to() {
    let lab = Lab::boot("7.2", 8, &["perf"]);
    let off = near_share(&lab, "cluster=off");
    let on = near_share(&lab, "cluster=perch");
    assert!(on >= 95.0, "with cluster=perch only {on:.2} %");
    assert!(off <= 50.0, "with cluster=off {off:.2} % as well");
}
