// SPDX-License-Identifier: GPL-2.0-or-later
//! Simulates one load for `scripts/bench`, which measures what this process takes:
//! `row CPUS WORKLOAD WARMUP_NS WINDOW_NS` prints the events and the work that were counted in
//! the window, and the most memory that the process had, in KiB.
//!
//! The machine has clusters of 4 CPUs where they divide, LLCs of 32 and nodes of 128, as Kunpeng 920 has.

use std::error::Error;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Mode, Modes, Policy};
use perch_sim::Scenario;
use perch_sim::workload::Workload;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [cpus, workload, warmup_ns, window_ns] = &words[..] else {
        return Err("usage: row CPUS WORKLOAD WARMUP_NS WINDOW_NS".into());
    };
    let cpus: usize = cpus.parse()?;
    let (llc, node) = (cpus.min(32), cpus.min(128));
    if cpus == 0 || node % llc != 0 || cpus % node != 0 {
        return Err(
            "CPUS: expected 1 to 32, a multiple of 32 up to 128, or a multiple of 128".into()
        );
    }
    let (clusters, cores) = if llc % 4 == 0 { (llc / 4, 4) } else { (0, llc) };
    let machine = Machine::regular("bench", cpus / node, 1, node / llc, clusters, cores, 1)?;
    let machine = Arc::new(machine);
    let modes = Modes { cluster: Mode::Perch, ..Modes::default() };
    let workload = Workload::parse(workload, &machine)?;
    let scenario = Scenario {
        policy: Policy::new(Era::V7_2, modes),
        warmup_ns: warmup_ns.parse()?,
        ..Scenario::plain(machine, workload, window_ns.parse()?)
    };
    let metrics = scenario.run()?.metrics;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|words| words.split_whitespace().next()).unwrap_or("0");
    println!("{} {} {peak}", metrics.events, metrics.counted);
    Ok(())
}
