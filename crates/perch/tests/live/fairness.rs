// SPDX-License-Identifier: GPL-2.0-only
//! Tasks that compete share CPUs by weight.

use crate::guest::Lab;

/// Weights of nice 0 and nice 5 (sched_prio_to_weight).
const WEIGHTS: [f64; 2] = [1024.0, 335.0];

/// A task that never sleeps, by its niceness, on these CPUs.
fn hog(nice: i32, mask: &str) -> String {
    format!(
        "taskset {mask} sh -c 'renice -n {nice} -p $$ && while :; do :; done' >/dev/null & hogs=\"$hogs $!\"; "
    )
}

/// Execution time of the shell's children over so many seconds of the guest's, nanoseconds, in the
/// order in which they started.
fn run_times(lab: &Lab, hogs: &str, seconds: u32) -> Vec<f64> {
    let script = format!(
        "{hogs}
        count() {{ for hog in $hogs; do read -r ran rest < /proc/$hog/schedstat; \
                   echo $ran; done; }}
        sleep 2
        count; sleep {seconds}; count
        kill $hogs"
    );
    let text = lab.timed("measured", &script);
    let times: Vec<f64> = text.lines().map(|line| line.parse().unwrap()).collect();
    let (before, after) = times.split_at(times.len() / 2);
    let pairs = after.iter().zip(before);
    pairs.map(|(after, before)| after - before).collect()
}

#[test]
fn tasks_of_two_nicenesses_share_a_cpu_by_weight() {
    let lab = Lab::boot("7.2", 8, &[]);
    let perch = lab.load("");
    let times = run_times(&lab, &(hog(0, "8") + &hog(5, "8")), 10);
    let sum: f64 = times.iter().sum();
    for (time, weight) in times.iter().zip(WEIGHTS) {
        let (share, expected) = (time / sum, weight / WEIGHTS.iter().sum::<f64>());
        println!("{:.2} %, {:.2} % expected", 100.0 * share, 100.0 * expected);
        assert!(
            (share / expected - 1.0).abs() <= 0.05,
            "{:.2} % of the CPU instead of {:.2} %",
            100.0 * share,
            100.0 * expected
        );
    }
    perch.unload();
}

#[test]
fn twice_as_many_tasks_as_cpus_get_half_a_cpu_each() {
    let lab = Lab::boot("7.2", 8, &[]);
    let perch = lab.load("");
    let times = run_times(&lab, &hog(0, "ff").repeat(16), 10);
    let fair = times.iter().sum::<f64>() / 16.0;
    println!("{:.2} CPUs in all", 16.0 * fair / 10e9);
    let shares: Vec<f64> = times.iter().map(|time| time / fair).collect();
    println!("shares of half a CPU: {shares:.3?}");
    for share in shares {
        assert!((share - 1.0).abs() <= 0.1, "{share:.3} of half a CPU");
    }
    perch.unload();
}
