// SPDX-License-Identifier: GPL-2.0-only
//! Perfetto's own trace_processor on a simulated run.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use perch_policy::{Era, Modes, Policy, Topology};
use perch_report::PerfettoTrace;
use perch_sim::workload::Workload;
use perch_sim::{RootDomain, Scenario};

/// Where `./x test` puts it.
fn folder() -> std::path::PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("trace-processor")
}

/// The rows that it answers with, their columns; what the trace lost is a row that says so.
fn ask(trace: &Path, questions: &[&str]) -> Vec<Vec<String>> {
    let folder = folder();
    assert!(
        folder.join("trace_processor.wasm").exists(),
        "no trace_processor in {}: `./x test` fetches it",
        folder.display()
    );
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trace_processor.mjs");
    let output = Command::new("node")
        .arg(script)
        .args([&folder, trace])
        .args(questions)
        .output()
        .expect("node runs; `./x test` installs it");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "trace_processor: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let columns = |line: &str| line.split('\t').map(str::to_string).collect();
    text.lines().map(columns).collect()
}

/// A simulated second of 64 CPUs at full load: every slice is there, and has its wake-up.
#[test]
fn slices_of_a_second_of_64_busy_cpus_add_up() {
    let machine = Arc::new(perch_machine::resolve("kunpeng920").unwrap());
    let workload = Workload::parse("schbench:n=192,where=node0-1", &machine).unwrap();
    let scenario = Scenario {
        topology: Topology::new(&machine),
        policy: Policy::new(Era::V7_2, Modes::default()),
        hz: 250,
        root_domain: RootDomain::Stock,
        workload,
        warmup_ns: 0,
        measure_ns: 1_000_000_000,
        seed: 1,
        machine,
    };
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("full.pftrace");
    let out = BufWriter::new(File::create(&path).unwrap());
    let names = (0..scenario.workload.tasks.len()).map(|task| format!("schbench/{task}"));
    let cpus = scenario.machine.cpus.len();
    let llcs = scenario.topology.nr_llcs();
    let mut trace = PerfettoTrace::new(out, names.collect(), cpus, llcs).unwrap();
    let metrics = scenario.run_watched(&mut trace).unwrap().metrics;
    assert!(
        metrics.busy_ns > 62 * metrics.simulated_ns,
        "{} ns busy",
        metrics.busy_ns
    );

    let rows = ask(
        &path,
        &[
            "select sum(dur), count(distinct cpu) from sched where utid != 0",
            "select count(*) from sched where utid != 0",
            "select count(*) from slice where name = 'runs'",
            "select count(*) from flow",
            "select count(*) from thread where name = 'schbench/64' and utid in (select utid from sched)",
            "select cast(min(value) as int) from counter c join counter_track t on c.track_id = t.id \
             where t.name = 'idle CPUs'",
        ],
    );
    let number = |row: usize, column: usize| rows[row][column].parse::<u64>().unwrap();
    assert_eq!(rows.len(), 6, "more than was asked for: {rows:?}");
    assert_eq!(rows[0], [metrics.busy_ns.to_string(), "64".to_string()]);
    // Who is chosen again goes on in the same slice.
    assert!(
        (metrics.wakeups..=metrics.context_switches).contains(&number(1, 0)),
        "{rows:?}"
    );
    // Each arrow leads from a wake-up to the first run after it; the last ones may not have run.
    assert_eq!(number(2, 0), number(3, 0));
    let woken = metrics.wakeups + metrics.delayed_wakeups;
    assert!(
        (woken - 64..=woken).contains(&number(2, 0)),
        "{woken}: {rows:?}"
    );
    assert_eq!(number(4, 0), 1);
    // The machine has 64 more, which nobody uses.
    assert_eq!(number(5, 0), 64);
}
