// SPDX-License-Identifier: GPL-2.0-or-later
//! Another simulator of schedulers beside perch: `scxsim` of github.com/sched-ext/scx, branch
//! simulator.v3, which the user has built (docs/performance.md tells how).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use tempfile::TempDir;

use super::row::spend;
use crate::output::Failure;

/// The number of turns that perch and the peer take.
pub const TURNS: usize = 3;

/// The peer's program.
pub struct Peer {
    program: PathBuf,
    /// Of the workloads that it is given.
    folder: TempDir,
}

/// The peer beside perch on one load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Beside {
    /// The peer's simulated seconds per CPU second, the median of its turns.
    pub simulated_s_per_cpu_s: f64,
    /// The times by which perch is faster, by turn: the least, the median and the most.
    pub times: [f64; TURNS],
}

impl Beside {
    /// From the turns of both, in simulated seconds per CPU second.
    pub fn of(perch: [f64; TURNS], mut peer: [f64; TURNS]) -> Beside {
        let mut times = std::array::from_fn(|turn| perch[turn] / peer[turn]);
        times.sort_by(f64::total_cmp);
        peer.sort_by(f64::total_cmp);
        Beside {
            simulated_s_per_cpu_s: peer[TURNS / 2],
            times,
        }
    }
}

impl Peer {
    pub fn new(program: &Path) -> Result<Peer, Failure> {
        let wrong = |reason: String| Failure::input(format!("--peer: {reason}"));
        if !program.is_file() {
            let path = program.display();
            return Err(wrong(format!(
                "{path} is no file; build scxsim first (docs/performance.md)"
            )));
        }
        let program = program.canonicalize();
        Ok(Peer {
            program: program.map_err(|error| wrong(error.to_string()))?,
            folder: tempfile::tempdir().map_err(|error| wrong(error.to_string()))?,
        })
    }

    /// The simulated seconds per CPU second of two tasks a CPU that run for 1 ms and sleep for 1.2 ms,
    /// in a run of about so many CPU seconds. What a run takes before and after its simulation is left
    /// out, as a quarter of it is run too.
    pub fn rate(&self, cpus: usize, seconds: f64) -> Result<f64, Failure> {
        let workload = self.put(cpus)?;
        let simulate = |ns| Ok((ns, self.simulate(cpus, &workload, ns)?));
        let (length_ns, whole_ns) = spend(seconds, simulate)?;
        let quarter_ns = self.simulate(cpus, &workload, length_ns / 4)?;
        let spent_ns = whole_ns.saturating_sub(quarter_ns).max(1);
        Ok((length_ns - length_ns / 4) as f64 / spent_ns as f64)
    }

    /// Writes the workload for this many CPUs.
    fn put(&self, cpus: usize) -> Result<PathBuf, Failure> {
        let tasks = (0..2 * cpus).map(|task| {
            let program =
                serde_json::json!({"priority": 0, "loop": -1, "run": 1000, "sleep": 1200});
            (format!("t{task}"), program)
        });
        let workload = serde_json::json!({
            "global": {"duration": 1, "default_policy": "SCHED_OTHER"},
            "tasks": tasks.collect::<serde_json::Map<_, _>>(),
        });
        let path = self.folder.path().join(format!("{cpus}.json"));
        std::fs::write(&path, workload.to_string())
            .map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
        Ok(path)
    }

    /// The user and system time of a simulation of so many nanoseconds, in nanoseconds, at least 1.
    fn simulate(&self, cpus: usize, workload: &Path, length_ns: u64) -> Result<u64, Failure> {
        let failed = |reason: String| {
            let program = self.program.display();
            Failure::run(format!("the peer {program} on {cpus} CPUs: {reason}"))
        };
        let end = format!("{length_ns}ns");
        let before_ns = children_ns();
        let status = Command::new(&self.program)
            .args(["-s", "simple", "-c", &cpus.to_string(), "--end-time", &end])
            .arg(workload)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|error| failed(error.to_string()))?;
        if !status.success() {
            return Err(failed(format!(
                "it ended with {status}; run it by hand to see why"
            )));
        }
        Ok((children_ns() - before_ns).max(1))
    }
}

/// User and system time of all children that have ended, in nanoseconds.
fn children_ns() -> u64 {
    // SAFETY: the structure is plain numbers, and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_compared_with_its_own() {
        let beside = Beside::of([20.0, 10.0, 30.0], [10.0, 2.0, 10.0]);
        assert_eq!(beside.times, [2.0, 3.0, 5.0]);
        assert_eq!(beside.simulated_s_per_cpu_s, 10.0);
    }

    #[test]
    fn a_peer_that_fails_has_no_rate() {
        let peer = Peer::new(Path::new("/bin/false")).unwrap();
        let failure = peer.rate(8, 0.1).unwrap_err();
        assert!(failure.message.contains("8 CPUs"), "{}", failure.message);
        assert!(Peer::new(Path::new("/nowhere")).is_err());
    }
}
