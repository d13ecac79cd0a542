// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks that compete share CPUs by weight.

use crate::guest::Lab;

/// Weights of nice 0 and nice 5 (sched_prio_to_weight).
const WEIGHTS: [f64; 2] = [1024.0, 335.0];

/// A script that starts a task of this niceness that never sleeps, on these CPUs.
fn hog(nice: i32, mask: &str) -> String {
    format!(
        "taskset {mask} sh -c 'renice -n {nice} -p $$ && while :; do :; done' >/dev/null 2>&1 & hogs=\"$hogs $!\"; "
    )
}

/// Some hogs that run, with their times at the first look.
pub struct Hogs<'a> {
    lab: &'a Lab,
    pids: String,
    begin: Vec<f64>,
}

impl Hogs<'_> {
    /// Starts them.
    pub fn start<'a>(lab: &'a Lab, hogs: &str) -> Hogs<'a> {
        let pids = lab.text(&format!("{hogs} sleep 2; echo $hogs"));
        let mut hogs = Hogs { lab, pids: pids.trim().to_string(), begin: Vec::new() };
        hogs.begin = hogs.times();
        hogs
    }

    /// The execution time of each hog, nanoseconds, in the order in which they started.
    fn times(&self) -> Vec<f64> {
        let script = format!(
            "for hog in {}; do read -r ran rest < /proc/$hog/schedstat; echo $ran; done",
            self.pids
        );
        let text = self.lab.text(&script);
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Demands that in the next five seconds each hog has its part of the time of all, within a
    /// relative `tolerance`.
    pub fn have(&self, parts: &[f64], tolerance: f64) {
        self.lab.text("sleep 5");
        let pairs = self.times().into_iter().zip(&self.begin);
        let ran: Vec<f64> = pairs.map(|(after, before)| after - before).collect();
        let sum: f64 = ran.iter().sum();
        let shares: Vec<f64> =
            ran.iter().zip(parts).map(|(ran, part)| ran / (sum * part)).collect();
        println!("{:.2} s in all; of its part each had {shares:.3?}", sum / 1e9);
        if shares.iter().any(|share| (share - 1.0).abs() > tolerance) {
            self.lab.fail(&format!("not what is due: {shares:.3?}"));
        }
        self.lab.text(&format!("kill {}", self.pids));
    }
}

#[test]
fn tasks_of_two_nicenesses_share_a_cpu_by_weight() {
    let lab = Lab::boot("7.2", 8);
    let perch = lab.load("");
    let parts = WEIGHTS.map(|weight| weight / WEIGHTS.iter().sum::<f64>());
    Hogs::start(&lab, &(hog(0, "8") + &hog(5, "8"))).have(&parts, 0.05);
    perch.unload();
}

#[test]
#[ignore = "seven seconds of CPUs that never idle, for --long"]
fn twice_as_many_tasks_as_cpus_get_half_a_cpu_each() {
    let lab = Lab::small("7.2");
    let perch = lab.load("");
    Hogs::start(&lab, &hog(0, "f").repeat(8)).have(&[1.0 / 8.0; 8], 0.1);
    perch.unload();
}

/// Tasks of nice 19 get hardly any of a CPU. If one counted as much as a hog, a hog would have a CPU
/// nearly to itself beside one, and three others would share a CPU.
#[test]
#[ignore = "seven seconds of CPUs that never idle, for --long"]
fn a_task_of_nice_19_does_not_stand_for_a_hog() {
    let lab = Lab::small("7.2");
    let perch = lab.load("");
    lab.text(&hog(19, "f").repeat(2));
    Hogs::start(&lab, &hog(0, "f").repeat(8)).have(&[1.0 / 8.0; 8], 0.1);
    perch.unload();
}
