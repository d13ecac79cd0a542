// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings that perf and trace-cmd make in a guest, imported and simulated here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use perch_machine::Machine;
use perch_sim::workload::Workload;
use perch_sim::workload::recorded::{Script, Step};
use perch_sim::{Outcome, Scenario};
use serde_json::Value;

use crate::guest::{Lab, PERCH};

const ROUNDS: u64 = 300;
/// The longest that the pipe's program may take to start, in ms of the guest's clock.
const START_MS: f64 = 40.0;
/// Turns of a shell's loop, of which the three tasks compute longer than all else that is recorded.
const TURNS: u32 = 20_000;
const EVENTS: &str = "-e sched_switch -e sched_waking -e sched_wakeup_new -e sched_process_fork \
    -e sched_process_exec";

/// Records by `command` and imports the recording `file`, which must have nothing odd in it.
fn recorded(lab: &Lab, command: &str, file: &str) -> (PathBuf, Script, Value) {
    lab.text(command);
    let found = imported(lab, file);
    let odd = ["lost", "gaps", "late", "unseen", "guessed"];
    let odd: Vec<&str> = odd.into_iter().filter(|odd| found.2[odd] != 0).collect();
    assert!(odd.is_empty(), "{file}: {odd:?}");
    found
}

/// Fetches a recording from the guest and imports it: the workload's path, its script, and the
/// summary.
fn imported(lab: &Lab, file: &str) -> (PathBuf, Script, Value) {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let recording = here.join(file);
    std::fs::write(&recording, lab.get(&format!("/tmp/{file}"))).unwrap();
    let workload = here.join(format!("{file}.workload"));
    let mut import = Command::new(PERCH);
    import.arg("import").arg(&recording).arg("-o").arg(&workload);
    let output = import.args(["--format", "json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{file}: {said}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("{file}: {summary}");
    let script = Script::read(&mut &std::fs::read(&workload).unwrap()[..]).unwrap();
    assert_eq!(summary["work_ns"], script.work_ns());
    (workload, script, summary)
}

/// The workload on this many CPUs.
fn simulated(workload: &Path, cpus: usize) -> Outcome {
    let machine = Arc::new(Machine::regular("here", 1, 1, 1, 0, cpus, 1).unwrap());
    let spec = format!("recorded:{},spread=0", workload.display());
    let workload = Workload::parse(&spec, &machine).unwrap_or_else(|error| panic!("{error}"));
    let scenario = Scenario::plain(machine, workload, 1_000_000_000_000);
    scenario.run().unwrap_or_else(|error| panic!("{error}"))
}

/// Demands that every wake-up happens and all the work is done on as many CPUs as recorded and on
/// one, which takes as long as the work at least; returns the seconds that the two take.
fn runs_anywhere(workload: &Path, script: &Script) -> [f64; 2] {
    let [four, one] = [4, 1].map(|cpus| {
        let outcome = simulated(workload, cpus);
        assert_eq!(outcome.metrics.counted, script.wakes());
        assert!(outcome.metrics.busy_ns >= script.work_ns());
        let seconds = outcome.scores[0].value;
        println!("{cpus} CPUs: {seconds} s, {} wake-ups", outcome.metrics.wakeups);
        seconds
    });
    let work = script.work_ns() as f64 / 1e9;
    assert!(
        one >= work && 4.0 * four >= work,
        "{work} s of work: {four} s on four CPUs, {one} s on one"
    );
    [four, one]
}

/// The guest's CPUs keep pace with each other: on a busy host a task of the pipe once ran for 160 ms
/// before its first switch was recorded, which perf does not count.
#[test]
fn what_perf_and_trace_cmd_record_runs_again() {
    let lab = Lab::small("7.2");
    let record =
        format!("perf sched record -o /tmp/pipe.data -- perf bench sched pipe -l {ROUNDS} 2>&1");
    let (workload, script, summary) = recorded(&lab, &record, "pipe.data");
    // The pipe's two tasks, and the wake-ups between them that perf's own reader counts.
    let pair: Vec<u32> = (0..script.tasks.len() as u32)
        .filter(|&n| script.tasks[n as usize].name == "sched-pipe")
        .collect();
    assert_eq!(pair.len(), 2, "{summary:#}");
    let wakes = |from: u32, to: u32| {
        let steps = &script.tasks[from as usize].steps;
        steps.iter().filter(|step| **step == Step::Wake(to)).count() as u64
    };
    let (there, back) = (wakes(pair[0], pair[1]), wakes(pair[1], pair[0]));
    println!("{there} wake-ups one way, {back} the other");
    let text = lab.text(
        "perf script -i /tmp/pipe.data -F comm,event,trace 2>/dev/null | \
         grep -c '^ *sched-pipe .*sched_waking: comm=sched-pipe '",
    );
    let printed: u64 = text.trim().parse().unwrap();
    assert!(printed >= ROUNDS, "perf script prints {printed}");
    assert!((there + back).abs_diff(printed) <= 2 + printed / 100, "perf script prints {printed}");
    // Their time on CPUs is the one that perf tells. perf does not count what a task ran before its first
    // switch, here the start of the program, if nothing switches it out before its end.
    let text = lab.text(
        "perf sched timehist -i /tmp/pipe.data --summary 2>/dev/null | \
         awk '$1 ~ /^sched-pipe\\[/ { ms += $4 } END { print ms }'",
    );
    let total: f64 = text.trim().parse().unwrap();
    let mut kept = summary["kept"].as_array().unwrap().iter();
    let ours = kept.find(|names| names["name"] == "sched-pipe").unwrap();
    let ours = ours["cpu_ns"].as_u64().unwrap() as f64 / 1e6;
    assert!(
        (0.99 * total..=1.01 * total + START_MS).contains(&ours),
        "{ours} ms here, {total} ms by perf"
    );
    runs_anywhere(&workload, &script);

    // Beside hackbench, which has little to do at the same time, three tasks compute for as long as each
    // other.
    let record = format!(
        "trace-cmd record -o /tmp/hackbench.dat {EVENTS} sh -c '
            for n in 1 2 3; do (i=0; while [ $i -lt {TURNS} ]; do i=$((i+1)); done) & done
            hackbench -g 1 -l 5; wait' 2>&1"
    );
    let (workload, script, summary) = recorded(&lab, &record, "hackbench.dat");
    // trace-cmd's own reader sees the same.
    lab.text("trace-cmd report -N -R -t -l -i /tmp/hackbench.dat > /tmp/hackbench.txt");
    assert_eq!(imported(&lab, "hackbench.txt").1.tasks, script.tasks);
    let tasks = script.tasks.iter().filter(|task| task.name == "hackbench").count();
    assert_eq!(tasks, 41, "{summary:#}");
    let [four, one] = runs_anywhere(&workload, &script);
    assert!(one > four, "{four} s on four CPUs, {one} s on one");
    lab.is_well();
}
