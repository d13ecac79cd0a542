// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks of SCHED_IDLE and those of a group with `cpu.idle` use what the others leave, and keep none of
//! them waiting.

use perch_lab::Cpus;

use crate::guest::{deterministic_shell, resolve};

/// Rounds, each with new tasks: where they are born decides much of what happens to them.
const ROUNDS: usize = 2;
/// Lines that a round prints: the time and 12 tasks, twice.
const LINES: usize = 26;

/// Four hogs of SCHED_IDLE and four of a group with cpu.idle, on four CPUs; then three ordinary hogs, and a
/// task that works for a moment every 5 ms.
const TASKS: &str = r#"
    cgroups favordynmods; echo +cpu > $ROOT/cgroup.subtree_control; mkdir $ROOT/lazy; echo 1 > $ROOT/lazy/cpu.idle
    hog='while :; do :; done'
    start() {
        hogs= lazy=
        for n in 1 2 3 4; do
            chrt -i 0 sh -c "$hog" & lazy="$lazy $!"
            sh -c "echo \$\$ > $ROOT/lazy/cgroup.procs; $hog" & lazy="$lazy $!"
        done
        for n in 1 2 3; do sh -c "$hog" & hogs="$hogs $!"; done
        sh -c 'exec 9<>/tmp/never
            while :; do i=0; while [ $i -lt 50 ]; do i=$((i+1)); done; read -t 0.005 never <&9; done' &
        sleeper=$!
    }
    used() { at_once /proc/uptime $(printf '/proc/%s/schedstat ' $sleeper $hogs $lazy); }
    # When, s; then for each task what it has run and waited, ns, and how often it ran. Twice, 0.7 s apart.
    rounds() {
        round=0
        while [ $round -lt $1 ]; do
            start; pause 0.5; used; pause 0.7; used
            kill -9 $sleeper $hogs $lazy; wait $sleeper $hogs $lazy 2>/dev/null
            round=$((round+1))
        done
    }
    "#;

/// What the tasks did in a round: the one that sleeps, the hogs, those of SCHED_IDLE and of the group.
#[derive(Debug)]
struct Found {
    /// The mean wait of the task that sleeps before it runs, ms.
    wait_ms: f64,
    /// What each hog ran, in CPUs.
    hogs: Vec<f64>,
    /// What the others ran together, in CPUs.
    lazy: f64,
}

impl Found {
    /// Of the lines that a round prints.
    fn of(lines: &[&str]) -> Found {
        let rows: Vec<Vec<f64>> = lines
            .iter()
            .map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect())
            .collect();
        let (before, after) = rows.split_at(rows.len() / 2);
        let ns = 1e9 * (after[0][0] - before[0][0]);
        let more = |task: usize, what: usize| after[task][what] - before[task][what];
        let of_a_cpu = |tasks: std::ops::Range<usize>| -> Vec<f64> {
            tasks.map(|task| more(task, 0) / ns).collect()
        };
        Found {
            wait_ms: more(1, 1) / more(1, 2) / 1e6,
            hogs: of_a_cpu(2..5),
            lazy: of_a_cpu(5..13).iter().sum(),
        }
    }
}

/// Each hog has a CPU of its own, the task that sleeps waits for less than a tick of 4 ms when it wakes, by
/// far, and what is left of the CPUs is used.
#[test]
#[ignore = "a deterministic guest, for --long"]
fn idle_tasks_use_what_others_leave() {
    let script = format!(
        "{TASKS}
         load
         rounds {ROUNDS}
         perch stats --format json >/dev/null && cat /sys/kernel/sched_ext/state"
    );
    let text = deterministic_shell(&resolve("kunpeng920"), Cpus::AtMost(4), &["chrt"], &script);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), ROUNDS * LINES + 1, "{text}");
    assert_eq!(lines[ROUNDS * LINES], "enabled");
    let found: Vec<Found> = lines.chunks_exact(LINES).map(Found::of).collect();
    found.iter().for_each(|found| println!("perch: {found:.3?}"));
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let wait_ms = mean(found.iter().map(|found| found.wait_ms).collect());
    let hogs = mean(found.iter().flat_map(|found| found.hogs.clone()).collect());
    assert!(wait_ms < 0.5, "{wait_ms}");
    assert!(hogs > 0.95, "{hogs}");
    for found in &found {
        assert!(found.wait_ms < 1.0, "{found:?}");
        assert!(found.hogs.iter().all(|hog| *hog > 0.85), "{found:?}");
        assert!(found.lazy > 0.3, "{found:?}");
    }
}
