// SPDX-License-Identifier: GPL-2.0-or-later
//! One row of `perch bench`: a process that simulates one load on one machine, and prints the cost
//! of that.

use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::Args;
use perch_machine::Machine;
use perch_policy::{Era, Mode, Modes, Policy, Topology};
use perch_sim::workload::Workload;
use perch_sim::{Outcome, RootDomain, Scenario};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::output::{Failure, emit};

/// The hidden command that is one row.
pub const NAME: &str = "bench-row";

/// CPUs that share an LLC in the machines of the benchmark, as on Kunpeng 920.
const LLC: usize = 32;
/// CPUs of a node.
const NODE: usize = 128;
/// Simulated time before the measured part. It covers the forks of all tasks, which happen once in
/// a run. Each fork looks at every CPU, so on 4096 CPUs the forks would outweigh the rest of a
/// short run.
pub const WARMUP_NS: u64 = 50_000_000;
/// The first simulated time that a row tries when the user gives CPU seconds.
const FIRST_NS: u64 = 20_000_000;
/// The longest simulated time, even if CPU seconds are left.
const LONGEST_NS: u64 = 1_000 * 1_000_000_000;

/// The length of a row's simulation.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// Until about this many CPU seconds are spent.
    CpuSeconds(f64),
    /// Exactly this many nanoseconds of simulated time.
    SimulatedNs(u64),
}

/// The cost of a row.
#[derive(Debug, Deserialize, Serialize)]
pub struct Measured {
    /// Events of the measured part.
    pub events: u64,
    /// Length of the measured part.
    pub simulated_ns: u64,
    /// User and system time that the measured part took.
    pub cpu_ns: u64,
    /// The most memory that the process ever had resident; absent where the system does not say.
    pub peak_rss_kib: Option<u64>,
}

/// The arguments of the hidden command.
#[derive(Args)]
pub struct RowArguments {
    #[arg(long)]
    cpus: usize,
    #[arg(long)]
    workload: String,
    #[arg(long, required_unless_present = "simulated_ns")]
    cpu_seconds: Option<f64>,
    #[arg(long)]
    simulated_ns: Option<u64>,
}

/// The benchmark's machine with this many CPUs: clusters of 4 where they divide, LLCs of at most 32
/// CPUs, nodes of at most 128, a package a node.
///
/// # Errors
/// When this many CPUs don't fill such a machine evenly.
pub fn machine(cpus: usize) -> Result<Machine, Failure> {
    let llc = cpus.min(LLC);
    let node = cpus.min(NODE);
    if cpus == 0 || node % llc != 0 || cpus % node != 0 {
        return Err(Failure::input(format!(
            "--cpus {cpus}: expected 1 to {LLC}, a multiple of {LLC} up to {NODE}, or a multiple \
             of {NODE}"
        )));
    }
    let (clusters, cores) = if llc % 4 == 0 { (llc / 4, 4) } else { (0, llc) };
    Ok(Machine::regular(
        "bench",
        cpus / node,
        1,
        node / llc,
        clusters,
        cores,
        1,
    )?)
}

/// Measures one row in a process of its own.
pub fn in_child(cpus: usize, workload: &str, length: Length) -> Result<Measured, Failure> {
    let failed = |reason: String| Failure::run(format!("{workload} on {cpus} CPUs: {reason}"));
    let this = std::env::current_exe()
        .map_err(|error| failed(format!("cannot find this program: {error}")))?;
    let length = match length {
        Length::CpuSeconds(seconds) => ["--cpu-seconds".to_string(), seconds.to_string()],
        Length::SimulatedNs(ns) => ["--simulated-ns".to_string(), ns.to_string()],
    };
    let output = Command::new(this)
        .args([NAME, "--cpus", &cpus.to_string(), "--workload", workload])
        .args(length)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(format!("cannot start this program again: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!(
            "the measurement ended with {}",
            output.status
        )));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

/// Simulates longer and longer until a run takes about so many CPU seconds. `simulate` takes the
/// nanoseconds to simulate, and returns a result and the nanoseconds of CPU time that it took, at
/// least 1.
pub fn spend<T>(
    cpu_seconds: f64,
    mut simulate: impl FnMut(u64) -> Result<(T, u64), Failure>,
) -> Result<(T, u64), Failure> {
    let mut length_ns = FIRST_NS;
    loop {
        let (result, spent_ns) = simulate(length_ns)?;
        let factor = cpu_seconds * 1e9 / spent_ns as f64;
        if factor < 2.0 || length_ns == LONGEST_NS {
            return Ok((result, spent_ns));
        }
        // A short run says little about a long one, so the length grows in steps.
        length_ns = ((length_ns as f64 * factor.min(10.0)) as u64).min(LONGEST_NS);
    }
}

/// Measures one row in this process and writes it to stdout.
pub fn run_row(arguments: RowArguments) -> Result<(), Failure> {
    let machine = Arc::new(machine(arguments.cpus)?);
    let topology = Topology::new(&machine);
    let simulate = |measure_ns: u64| -> Result<(Outcome, u64), Failure> {
        let scenario = Scenario {
            machine: Arc::clone(&machine),
            topology: Arc::clone(&topology),
            policy: Policy::new(
                Era::V7_2,
                Modes {
                    cluster: Mode::Perch,
                    ..Modes::default()
                },
            ),
            hz: 250,
            root_domain: RootDomain::Stock,
            scheduler: None,
            workload: Workload::parse(&arguments.workload, &machine)
                .map_err(|error| Failure::input(error.to_string()))?,
            warmup_ns: WARMUP_NS,
            measure_ns,
            seed: 1,
        };
        let began = cpu_ns();
        let outcome = scenario
            .run()
            .map_err(|error| Failure::run(error.to_string()))?;
        Ok((outcome, cpu_ns() - began))
    };
    // A run is a function of its scenario, so the warm-up costs as much alone as within a longer
    // run. The first run of a process also pays for fresh memory and does not count.
    simulate(1)?;
    let (_, warmup_ns) = simulate(1)?;
    let simulate = |measure_ns: u64| -> Result<(Outcome, u64), Failure> {
        let (outcome, spent_ns) = simulate(measure_ns)?;
        Ok((outcome, spent_ns.saturating_sub(warmup_ns).max(1)))
    };
    let (outcome, cpu_ns) = match (arguments.simulated_ns, arguments.cpu_seconds) {
        (Some(ns), _) => simulate(ns)?,
        (None, seconds) => spend(seconds.unwrap_or(1.0), simulate)?,
    };
    let measured = Measured {
        events: outcome.metrics.events,
        simulated_ns: outcome.metrics.simulated_ns,
        cpu_ns,
        peak_rss_kib: peak_rss_kib(),
    };
    emit(&serde_json::to_string(&measured).expect("the row has only text keys"))
}

/// CPU time of this process so far.
pub fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The kernel's high-water mark of this process's resident memory.
fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measured_size_has_a_machine_of_that_size() {
        for size in [1, 6, 8, 32, 64, 128, 256, 1024, 4096] {
            assert_eq!(
                machine(size).map(|machine| machine.cpus.len()).ok(),
                Some(size)
            );
        }
        for size in [0, 33, 130] {
            assert_eq!(
                machine(size).map_err(|failure| failure.code).err(),
                Some(2),
                "{size}"
            );
        }
        assert!(machine(1 << 20).is_err());
    }
}
