// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the writer. What is in a trace, `crates/perch/tests/cli/trace_processor.rs` has read by
//! Perfetto itself.

use std::sync::Arc;

use perch_sim::workload::Workload;
use perch_sim::{Outcome, Scenario};

use super::*;

fn scenario(machine: &str, workload: &str, measure_ns: u64) -> Scenario {
    let machine = Arc::new(perch_machine::resolve(machine).unwrap());
    let workload = Workload::parse(workload, &machine).unwrap();
    Scenario { seed: 7, ..Scenario::plain(machine, workload, measure_ns) }
}

fn traced(scenario: &Scenario, out: impl Write) -> Result<Outcome, String> {
    let names = (0..scenario.workload.tasks.len()).map(|task| format!("task/{task}"));
    let (cpus, llcs) = (scenario.machine.cpus.len(), scenario.topology.nr_llcs());
    let mut trace = PerfettoTrace::new(out, names.collect(), cpus, llcs).unwrap();
    scenario.run_watched(&mut trace).map_err(|error| error.to_string())
}

#[test]
fn a_watcher_changes_nothing() {
    for (machine, workload) in [
        ("kunpeng920", "tbench:n=16,where=node0-1"),
        ("x5570", "vm:vcpus=8,shares=8192,hogs=4x4,inside=volano:rooms=2,users=4"),
    ] {
        let scenario = scenario(machine, workload, 20_000_000);
        let outcome = traced(&scenario, io::sink()).unwrap();
        let mut unseen = scenario.run().unwrap();
        // An event that is one without a watcher is several with one.
        unseen.metrics.events = outcome.metrics.events;
        assert_eq!(outcome, unseen, "{workload}");
    }
}

/// Counts what it is given, and notes the longest piece of it.
#[derive(Default)]
struct Counting {
    bytes: usize,
    longest: usize,
}

impl Write for &mut Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        self.longest = self.longest.max(bytes.len());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The memory stays bounded: the amount that is written at once does not grow with the run.
#[test]
fn a_longer_run_writes_no_more_at_once() {
    let written = |measure_ns| {
        let mut out = Counting::default();
        traced(&scenario("kunpeng920", "tbench:n=4", measure_ns), &mut out).unwrap();
        (out.bytes, out.longest)
    };
    let ((short, longest), (long, same)) = (written(20_000_000), written(80_000_000));
    assert!(long > 3 * short, "{short} and {long} bytes");
    assert!(same <= longest + longest / 10, "{longest} and {same} bytes");
}

#[test]
fn who_cannot_be_written_to_ends_the_run() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let scenario = scenario("kunpeng920", "tbench:n=16", 50_000_000);
    let error = traced(&scenario, Full(100_000)).unwrap_err();
    assert!(error.contains("no storage space"), "{error}");
}
