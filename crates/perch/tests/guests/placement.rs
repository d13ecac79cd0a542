// SPDX-License-Identifier: GPL-2.0-or-later
//! The CPUs of wakees: the mechanism draws two tasks that wake each other into one cluster when it
//! is on.

use perch_plan::interface::Event;

use crate::guest::Lab;
use crate::loaded::Perch;

/// The number of wake-ups with an idle CPU in the target's cluster that a share needs, in all and
/// in one round.
const ENOUGH: u64 = 1000;
const ENOUGH_OF_ROUND: u64 = 100;
/// The least and the most rounds.
const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 36;

/// The wake-ups that had an idle CPU in the target's cluster, and those of them that went there.
#[derive(Clone, Copy, Debug, Default)]
struct Near {
    idle: u64,
    taken: u64,
}

impl Near {
    fn percent(self) -> f64 {
        100.0 * self.taken as f64 / self.idle as f64
    }
}

/// Rounds of two tasks that wake each other, until `enough` of them. In each the tasks begin on
/// CPUs 1 and 2, in different clusters of one LLC; then the second task may go to any CPU, and so
/// may the first if `both` are free. Wake-ups of a task that may use one CPU only are not counted.
fn rounds(lab: &Lab, perch: &Perch<'_>, both: bool, enough: impl Fn(&[Near]) -> bool) -> Vec<Near> {
    let pids = lab.text(
        "perf bench sched pipe -l 100000000 >/dev/null 2>&1 & first=$!
        until second=$(cat /proc/$first/task/$first/children) && [ -n \"$second\" ]; do :; done
        echo first=$first second=$second",
    );
    let script = format!(
        "{}; taskset -p 2 $first && taskset -p 4 $second && sleep 0.1
        taskset -p {} $first && taskset -p ff $second && sleep 0.2",
        pids.trim().replace(' ', "; "),
        if both { "ff" } else { "2" }
    );
    let mut rounds = Vec::new();
    while rounds.len() < MOST_ROUNDS && !enough(&rounds) {
        let begin = perch.report();
        lab.text(&script);
        let change = perch.report().since(&begin);
        rounds.push(Near {
            idle: change.event(Event::NearIdle),
            taken: change.event(Event::NearTaken),
        });
    }
    lab.text("killall perf");
    println!("both free: {both}: {rounds:?}");
    rounds
}

fn sum(rounds: &[Near]) -> Near {
    rounds.iter().fold(Near::default(), |sum, round| Near {
        idle: sum.idle + round.idle,
        taken: sum.taken + round.taken,
    })
}

#[test]
fn ping_pong_stays_in_a_cluster_when_asked_to() {
    let lab = Lab::boot("7.2", 8);
    lab.put("/tmp/perch.toml", "detail = true\n");
    let load = |modes: &str| lab.load(&format!("--config /tmp/perch.toml --set {modes}"));
    let perch = load("cluster=perch");
    for both in [true, false] {
        let enough = |found: &[Near]| found.len() >= ROUNDS && sum(found).idle >= ENOUGH;
        let sum = sum(&rounds(&lab, &perch, both, enough));
        assert!(sum.idle >= ENOUGH, "too few wake-ups: {sum:?}");
        let near = sum.percent();
        assert!(near >= 95.0, "with cluster=perch they are apart: {near:.1} %");
    }
    perch.unload();

    // Without the mechanism two free tasks that happen to meet in a cluster stay there. Woken from
    // CPU 1, a task that does not find its own CPU idle looks on from CPU 2, and at CPU 0 last: in
    // one per cent of all wake-ups. Where it does find CPU 0, it stays.
    let apart = |near: &Near| near.idle >= ENOUGH_OF_ROUND && near.percent() <= 20.0;
    let perch = load("cluster=off");
    let off = rounds(&lab, &perch, false, |found| found.iter().any(apart));
    perch.unload();
    let apart = off.iter().any(apart);
    assert!(apart, "with cluster=off they meet as well");
}
