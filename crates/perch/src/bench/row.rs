// SPDX-License-Identifier: GPL-2.0-or-later
//! One row of `perch bench`: a process that simulates one load on one machine, and prints the cost
//! of that.

use std::path::PathBuf;
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
/// One simulated nanosecond: a run of the warm-up alone.
pub const WARMUP_ALONE_NS: u64 = 1;
/// The least number of times that a window is measured, even if the first one spends the budget.
const LEAST_REPETITIONS: u32 = 2;

/// The part of a run that is measured, in simulated time.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Nanoseconds of simulated time before the window
    #[arg(long, default_value_t = RUN_SLEEP_WINDOW.warmup_ns)]
    pub warmup_ns: u64,
    /// Nanoseconds of simulated time in the window
    #[arg(long, default_value_t = RUN_SLEEP_WINDOW.window_ns)]
    pub window_ns: u64,
}

/// The window of run/sleep, the same at all sizes: the first milliseconds of a big machine must not
/// stand beside the first minutes of a small one. The warm-up covers the forks of all tasks, which
/// happen once in a run. Each fork looks at every CPU, so on 4096 CPUs the forks would outweigh the
/// rest of a short run.
pub const RUN_SLEEP_WINDOW: Window = Window {
    warmup_ns: 50_000_000,
    window_ns: 500_000_000,
};

/// The way in which a row is measured.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// The window again and again, until about this many CPU seconds are spent, and the least of its
    /// CPU times.
    Least(f64),
    /// Warm-up and window once, with nothing subtracted: for what counts outside of the process, and
    /// for its peak memory.
    Once,
}

/// The cost of a row.
#[derive(Debug, Deserialize, Serialize)]
pub struct Measured {
    /// Events in the window.
    pub events: u64,
    /// Units of work that the workload counted in the window: of pipes, round trips.
    pub counted: u64,
    /// Length of the window.
    pub simulated_ns: u64,
    /// User and system time that the window took; of a single run, warm-up and window.
    pub cpu_ns: u64,
    /// The number of times that the window was measured.
    pub repetitions: u32,
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
    #[command(flatten)]
    window: Window,
    /// CPU seconds to spend, about
    #[arg(long, default_value_t = 1.0)]
    cpu_seconds: f64,
    /// Simulate once, and subtract no warm-up
    #[arg(long, conflicts_with = "cpu_seconds")]
    once: bool,
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

/// The arguments of a process that measures one row.
pub fn arguments(cpus: usize, workload: &str, window: Window, how: How) -> Vec<String> {
    let mut arguments: Vec<String> = [
        (NAME, None),
        ("--cpus", Some(cpus.to_string())),
        ("--workload", Some(workload.to_string())),
        ("--warmup-ns", Some(window.warmup_ns.to_string())),
        ("--window-ns", Some(window.window_ns.to_string())),
    ]
    .into_iter()
    .flat_map(|(name, value)| [name.to_string()].into_iter().chain(value))
    .collect();
    arguments.extend(match how {
        How::Least(seconds) => vec!["--cpu-seconds".to_string(), seconds.to_string()],
        How::Once => vec!["--once".to_string()],
    });
    arguments
}

/// The path of this program.
pub fn this() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::run(format!("cannot find this program: {error}")))
}

/// Measures one row in a process of its own.
pub fn in_child(
    cpus: usize,
    workload: &str,
    window: Window,
    how: How,
) -> Result<Measured, Failure> {
    let failed = |reason: String| Failure::run(format!("{workload} on {cpus} CPUs: {reason}"));
    let output = Command::new(this()?)
        .args(arguments(cpus, workload, window, how))
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

/// The cost of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// CPU time, nanoseconds, at least 1.
    pub cpu_ns: u64,
    /// The number of times that it was measured.
    pub repetitions: u32,
}

/// Measures a window until about `cpu_seconds` are spent. `simulate` runs the warm-up and as many
/// further nanoseconds as it is told, and returns the nanoseconds of CPU time that this took. A run
/// is a function of its scenario, so the warm-up costs as much alone as before the window, and other
/// work on the host only adds to a CPU time: the cost is the difference of the least two.
pub fn least(
    cpu_seconds: f64,
    window_ns: u64,
    mut simulate: impl FnMut(u64) -> Result<u64, Failure>,
) -> Result<Cost, Failure> {
    let (mut warmup_ns, mut whole_ns) = (u64::MAX, u64::MAX);
    let (mut spent_ns, mut repetitions) = (0, 0);
    while repetitions < LEAST_REPETITIONS || (spent_ns as f64) < cpu_seconds * 1e9 {
        let (short_ns, long_ns) = (simulate(WARMUP_ALONE_NS)?, simulate(window_ns)?);
        warmup_ns = warmup_ns.min(short_ns);
        whole_ns = whole_ns.min(long_ns);
        // A simulation that takes no time by the clock must come to an end, too.
        spent_ns += (short_ns + long_ns).max(1000);
        repetitions += 1;
    }
    Ok(Cost {
        cpu_ns: whole_ns.saturating_sub(warmup_ns).max(1),
        repetitions,
    })
}

/// Measures one row in this process and writes it to stdout.
pub fn run_row(arguments: RowArguments) -> Result<(), Failure> {
    let machine = Arc::new(machine(arguments.cpus)?);
    let topology = Topology::new(&machine);
    let Window {
        warmup_ns,
        window_ns,
    } = arguments.window;
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
            warmup_ns,
            measure_ns,
            seed: 1,
        };
        let began = cpu_ns();
        let outcome = scenario
            .run()
            .map_err(|error| Failure::run(error.to_string()))?;
        Ok((outcome, cpu_ns() - began))
    };
    let (outcome, cost) = if arguments.once {
        let (outcome, cpu_ns) = simulate(window_ns)?;
        let cost = Cost {
            cpu_ns,
            repetitions: 1,
        };
        (outcome, cost)
    } else {
        // The first run of a process also pays for fresh memory and does not count.
        let mut last = simulate(WARMUP_ALONE_NS)?.0;
        let cost = least(arguments.cpu_seconds, window_ns, |measure_ns| {
            let (outcome, spent_ns) = simulate(measure_ns)?;
            last = outcome;
            Ok(spent_ns)
        })?;
        (last, cost)
    };
    let measured = Measured {
        events: outcome.metrics.events,
        counted: outcome.metrics.counted,
        simulated_ns: outcome.metrics.simulated_ns,
        cpu_ns: cost.cpu_ns,
        repetitions: cost.repetitions,
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
    /// Other work on the host disturbed the first warm-up and the second window.
    #[test]
    fn a_window_costs_the_least_difference() {
        let mut noise_ns = [500_000, 0, 0, 900_000].into_iter();
        let simulate = |ns: u64| Ok(5_000 + 2 * ns + noise_ns.next().expect("two repetitions"));
        let cost = least(0.0, 1_000, simulate).map_err(|failure| failure.message);
        let expected = Cost {
            cpu_ns: 2 * (1_000 - WARMUP_ALONE_NS),
            repetitions: 2,
        };
        assert_eq!(cost, Ok(expected));
    }

    #[test]
    fn a_window_is_repeated_until_the_budget_is_spent() {
        let cost = least(1.0, 10, |_| Ok(50_000_000)).map_err(|failure| failure.message);
        let expected = Cost {
            cpu_ns: 1,
            repetitions: 10,
        };
        assert_eq!(cost, Ok(expected));
    }
}
