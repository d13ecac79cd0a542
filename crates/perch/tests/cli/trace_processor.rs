// SPDX-License-Identifier: GPL-2.0-or-later
//! Perfetto's own trace_processor on a simulated run.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use perch_report::PerfettoTrace;
use perch_sim::Scenario;
use perch_sim::workload::Workload;

/// The folder into which `./x test` puts trace_processor.
fn folder() -> std::path::PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("trace-processor")
}

/// The rows of its answers, each a list of columns. Data that the trace lost make a row that says
/// so.
fn ask(trace: &Path, questions: &[&str]) -> Vec<Vec<String>> {
    let folder = folder();
    assert!(
        folder.join("trace_processor.wasm").exists(),
        "no trace_processor in {}: `./x test` fetches it",
        folder.display()
    );
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/trace_processor.mjs");
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
    let scenario = Scenario::plain(machine, workload, 1_000_000_000);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("full.pftrace");
    let out = BufWriter::new(File::create(&path).unwrap());
    let names = (0..scenario.workload.tasks.len()).map(|task| format!("schbench/{task}"));
    let cpus = scenario.machine.cpus.len();
    let llcs = scenario.topology.nr_llcs();
    let mut trace = PerfettoTrace::new(out, names.collect(), cpus, llcs).unwrap();
    let metrics = scenario.run_watched(&mut trace).unwrap().metrics;
    assert!(metrics.busy_ns > 62 * metrics.simulated_ns, "{} ns busy", metrics.busy_ns);

    let bytes = std::fs::metadata(&path).unwrap().len();
    let woken = metrics.wakeups + metrics.stayed;
    println!("{bytes} bytes, {woken} wake-ups, {} each", bytes / woken);
    assert!(bytes < 200 * woken, "{bytes} bytes for {woken} wake-ups");

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
            // The waker of each wake-up was running at that moment.
            "select count(*) from thread_state where waker_utid is not null",
            "select count(*) from thread_state s where s.waker_utid is not null and not exists \
             (select 1 from sched r where r.utid = s.waker_utid and r.ts <= s.ts and r.ts + r.dur >= s.ts)",
        ],
    );
    let number = |row: usize, column: usize| rows[row][column].parse::<u64>().unwrap();
    assert_eq!(rows.len(), 8, "more than was asked for: {rows:?}");
    assert_eq!(rows[0], [metrics.busy_ns.to_string(), "64".to_string()]);
    // A task that the scheduler picks again goes on in the same slice.
    assert!((metrics.wakeups..=metrics.context_switches).contains(&number(1, 0)), "{rows:?}");
    // Each arrow leads from a wake-up to the first run after it; the last ones may not have run.
    assert_eq!(number(2, 0), number(3, 0));
    assert!((woken - 64..=woken).contains(&number(2, 0)), "{woken}: {rows:?}");
    assert_eq!(number(4, 0), 1);
    // The machine has 64 more CPUs, on which no task runs.
    assert_eq!(number(5, 0), 64);
    assert!(2 * number(6, 0) > woken, "{woken}: {rows:?}");
    assert_eq!(number(7, 0), 0, "{rows:?}");
}
