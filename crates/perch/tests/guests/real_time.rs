// SPDX-License-Identifier: GPL-2.0-or-later
//! A task of a real-time class fills a CPU, and perch's tasks go to the others.

use perch_lab::Cpus;

use crate::guest::{resolve, shell};

/// Three hogs on two CPUs, one of which a fourth of SCHED_FIFO takes.
const SCRIPT: &str = r#"
    load
    for n in 1 2 3; do sh -c 'while :; do :; done' & hogs="$hogs $!"; done
    pause 0.5; chrt -f 50 sh -c 'while :; do :; done' & real_time=$!
    used() { at_once /proc/uptime $(printf '/proc/%s/schedstat ' $hogs $real_time); }
    pause 0.5; used; pause 4; used; cat /sys/kernel/sched_ext/state
    "#;

/// In four seconds the three share the CPU that is left, by a third each. One that is
/// interrupted has 5 % of a CPU where it waits for its own, which is what Linux 7.2 keeps for perch.
#[test]
fn a_real_time_hog_s_cpu_is_left() {
    let text = shell(&resolve("kunpeng920"), Cpus::AtMost(2), "7.2", SCRIPT);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 11, "{text}");
    assert_eq!(lines[10], "enabled");
    let number = |at: usize| {
        let (first, _) = lines[at].split_once(' ').unwrap();
        first.parse::<f64>().unwrap()
    };
    let ns = 1e9 * (number(5) - number(0));
    let ran: Vec<f64> = (1..5).map(|task| (number(task + 5) - number(task)) / ns).collect();
    println!("{ran:.3?} of a CPU");
    assert!(ran[..3].iter().all(|share| *share > 0.3), "{ran:?}");
    assert!(ran[3] > 0.9, "{ran:?}");
}
