// SPDX-License-Identifier: GPL-2.0-or-later
//! rt-app's files: the tasks that they describe, and refusals that name the line.

use std::path::Path;

use perch_policy::Era;
use perch_sim::workload::{Class, Op, Workload, WorkloadError};
use perch_sim::{Metrics, Outcome, Scenario};

use crate::common::{self, ERAS, digest, machine, scenario};

/// JSON as the tests write it: with ' for ".
fn json(text: &str) -> String {
    text.replace('\'', "\"")
}

/// What perch makes of a file with this text.
fn parse(text: &str, keys: &str, on: &str) -> Result<Workload, WorkloadError> {
    let name = format!("rtapp-{:x}.json", digest(text));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, json(text)).expect("a file");
    Workload::parse(&format!("rtapp:{}{keys}", path.display()), &machine(on))
}

fn workload(text: &str) -> Workload {
    parse(text, "", "juno").unwrap_or_else(|error| panic!("{error}"))
}

fn of(text: &str, era: Era, ms: u64) -> Scenario {
    let workload = parse(text, "", "kunpeng920").unwrap_or_else(|error| panic!("{error}"));
    scenario(&machine("kunpeng920"), era, workload, [0, ms])
}

/// A second of it.
fn run(text: &str) -> Outcome {
    of(text, Era::V7_2, 1000).run().expect("it runs")
}

#[test]
fn a_timer_keeps_its_period_and_a_sleep_does_not() {
    let periodic = "{'tasks': {'a': {'run': 3000, 'timer': {'ref': 'unique', 'period': 10000}}}}";
    let outcome = run(periodic);
    assert_eq!(outcome.metrics.counted, 99);
    // A fork, and a wake-up a period; the last falls on the end.
    assert!((99..=101).contains(&outcome.metrics.wakeups), "{:?}", outcome.metrics.wakeups);
    let sleeps = "{'tasks': {'a': {'run': 3000, 'sleep': 10000}}}";
    let counted = run(sleeps).metrics.counted;
    assert_eq!(counted, 76, "a round takes 13 ms");
}

#[test]
fn a_late_timer_is_set_anew_unless_it_is_absolute() {
    // Once 45 ms of work, then short rounds: an absolute timer catches up.
    let file = |mode: &str| {
        format!(
            "{{'tasks': {{'a': {{'loop': 1, 'phases': {{\n\
             'long': {{'run': 45000, 'timer': {{'ref': 'unique', 'period': 10000, 'mode': '{mode}'}}}},\n\
             'short': {{'loop': -1, 'run': 1000, 'timer': {{'ref': 'unique', 'period': 10000, 'mode': '{mode}'}}}}}}}}}}}}"
        )
    };
    let absolute = run(&file("absolute")).metrics.counted;
    let relative = run(&file("relative")).metrics.counted;
    assert_eq!((absolute, relative), (98, 95));
}

#[test]
fn instances_loops_and_repeated_keys_are_what_rt_app_makes_of_them() {
    let file = "{\n'global': {'duration': 2, 'calibration': 'CPU0', 'default_policy': 'SCHED_RR'},\n\
        'tasks': {\n\
        'three': {'instance': 3, 'loop': 2, 'policy': 'SCHED_OTHER', 'priority': -7, 'delay': 500, 'taskgroup': '/a/b',\n\
        'cpus': [1, 2], 'nodes_membind': [0], 'util_min': 100, 'phases': {'p': {'loop': 5, 'run': 100, 'sleep': 50, 'run': 200}, 'q': {'run1': 10}}},\n\
        'rt': {'loop': 4, 'runtime': 100, 'sleep': 1000, 'yield': ''}}}";
    let made = workload(file);
    assert_eq!(made.tasks.len(), 4);
    let groups: Vec<(&str, Option<usize>)> =
        made.groups.iter().map(|g| (g.name.as_str(), g.parent)).collect();
    assert_eq!(groups, [("/a", None), ("/a/b", Some(0))]);
    let (first, last) = (&made.tasks[0], &made.tasks[3]);
    assert_eq!(
        (first.nice, first.class, first.group, first.uclamp),
        (-7, Class::Fair, Some(1), (100, 1024))
    );
    assert_eq!(first.allowed.iter().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(last.class, Class::Rr(10));
    let outcome = run(file);
    assert_eq!(outcome.metrics.counted, 3 * 2 + 4);
    // 3 threads x 2 loops x (5 x 300 + 10), as fast on every CPU there, and 4 x 100 by the clock; us.
    let work = (3 * 2 * 1510 + 4 * 100) * 1000;
    assert!(
        (work..work * 11 / 10).contains(&outcome.metrics.busy_ns),
        "{}",
        outcome.metrics.busy_ns
    );
}

#[test]
fn load_that_ends_is_judged_by_its_time() {
    let file = |keys: &str| {
        format!(
            "{{'tasks': {{'w': {{'loop': 100, 'run': 1000, 'sleep': 1000}}}}, \
             'global': {{'calibration': 'CPU0'{keys}}}}}"
        )
    };
    let outcome = run(&file(""));
    let score = &outcome.scores[0];
    assert_eq!((score.name.as_str(), score.unit), ("time", "s"));
    assert!((0.2..0.202).contains(&score.value), "{}", score.value);
    assert_eq!(outcome.metrics.counted, 100);
    // rt-app sleeps for the whole duration, and then kills what still runs.
    let lasts = run(&file(", 'duration': 1"));
    assert_eq!(lasts.scores[0].value, score.value);
    let long = file(", 'duration': 1").replace("100,", "1000,");
    let why = of(&long, Era::V7_2, 3000).run();
    let why = why.expect_err("it takes 2 s").to_string();
    assert!(why.contains("not done after 1 s") && why.contains("duration"), "{why}");
}

#[test]
fn forked_threads_begin_as_their_forker_is() {
    let file = "{'tasks': {\n\
        'a': {'loop': 2, 'phases': {'p': {'loop': 3, 'cpus': [2], 'fork': 'b', 'sleep': 1000}, 'q': {'cpus': [1], 'run': 10}}},\n\
        'b': {'instance': 0, 'loop': 1, 'run': 500, 'fork': 'c'},\n\
        'c': {'loop': 1, 'cpus': [3], 'run': 200}}}";
    let made = workload(file);
    // a, c, six of b, and a c of each of them.
    assert_eq!(made.tasks.len(), 2 + 6 + 6);
    let cpus = |task: usize| made.tasks[task].allowed.iter().collect::<Vec<_>>();
    assert_eq!((cpus(2), cpus(8)), (vec![2], vec![3]));
    assert!(made.tasks[2..].iter().all(|task| task.start.is_none()));
    let outcome = run(file);
    assert_eq!(outcome.metrics.counted, 2 + 1 + 6 + 6);
    assert!((0.006..0.008).contains(&outcome.scores[0].value), "{outcome:?}");
}

#[test]
fn phases_move_between_groups() {
    let file = "{'tasks': {'a': {'instance': 2, 'cpus': [0], 'phases': {\n\
        'p': {'run': 2000, 'taskgroup': '/x/y'}, 'q': {'run': 1000, 'sleep': 500},\n\
        'r': {'run': 2000, 'taskgroup': '/'}}},\n\
        'b': {'cpus': [0], 'run': 3000, 'sleep': 1000}}}";
    for era in ERAS {
        let outcome = common::checked(&of(file, era, 400), 99_979, |_| {});
        // A round of the two is 5 ms of work and one of the third 3 ms, on a CPU that is never idle
        // once it has left its idle loop for the first task.
        assert_eq!(outcome.busy_ns, 400_000_000 - 1000, "{era}");
        assert!((80..=115).contains(&outcome.counted), "{era}: {outcome:?}");
    }
    // A group that no phase leaves is the task's.
    let file = file.replace("'taskgroup': '/'", "'taskgroup': '/x/y'");
    let settled = workload(&file);
    let joins = |op: &Op| matches!(op, Op::Join { .. });
    assert!(!settled.tasks[0].program.iter().any(joins));
}

#[test]
fn semaphore_remembers_its_posts() {
    let file = "{'tasks': {'a': {'loop': 1, 'phases': {'p': {'loop': 5, 'sem_post': 's', 'run': 100}}},\n\
        'b': {'loop': 5, 'sleep': 1000, 'sem_wait': 's'}}}";
    let outcome = run(file);
    assert!((0.005..0.006).contains(&outcome.scores[0].value), "{outcome:?}");
}

#[test]
fn what_is_taken_for_something_else_is_noted() {
    // rt-app's own example of it.
    let file = "{'tasks': {\n\
        'a': {'run': 20000, 'policy': 'SCHED_OTHER', 'priority': -19, 'dl-runtime': 100000},\n\
        'b': {'instance': 2, 'run': 20000, 'policy': 'SCHED_DEADLINE', 'dl-runtime': 200000}}}";
    let made = workload(file);
    assert_eq!((made.tasks[0].class, made.tasks[1].class), (Class::Fair, Class::Fifo(99)));
    let [deadlines, slices] = &made.notes[..] else {
        panic!("{:?}", made.notes);
    };
    assert!(deadlines.contains("SCHED_FIFO 99") && deadlines.ends_with(": 2"), "{deadlines}");
    assert!(slices.ends_with(": 1"), "{slices}");
}

#[test]
fn phase_loop_that_nothing_ends_goes_on() {
    // rt-app compares the loop with the number of rounds after each round, so 0 is never reached.
    let file = "{'tasks': {'a': {'loop': 0, 'run': 1000, 'sleep': 1000}}}";
    assert!(run(file).metrics.counted > 400);
}

#[test]
fn work_is_calibrated_on_the_cpu_that_the_file_says() {
    let file = |calibration: &str| {
        format!("{{'global': {{'calibration': {calibration}}}, 'tasks': {{'a': {{'run': 1000}}}}}}")
    };
    let machine = machine("juno");
    let first =
        |calibration: &str| format!("{:?}", workload(&file(calibration)).tasks[0].program[0]);
    for cpu in 0..machine.cpus.len() {
        let ns = 1_000_000 * u64::from(machine.cpus[cpu].capacity) / 1024;
        assert_eq!(first(&format!("'CPU{cpu}'")), format!("Run(Const({ns}))"));
    }
    assert_eq!(first("150"), "Run(Const(1000000))");
}

/// Keys of a task, the line that refuses each, and words of the error. The task is in line 2, a
/// `run` in line 3, and the keys begin in line 4.
const REFUSED_IN_A_TASK: &str = r#"
'lock': 'm' | 2 | it keeps what 'lock' locked
'lock': 'm', 'lock2': 'm' | 4 | 'lock2': it has locked 'm' already ('lock')
'unlock': 'm' | 4 | it has not locked 'm' here
'wait': {'ref': 'c', 'mutex': 'm'} | 4 | it has not locked 'm' here
'sync': {'ref': 'c'} | 4 | a ref and a mutex
'lock': 'm', 'resume': 'm' | 4 | 'resume': it has locked
'fork': 'b' | 4 | one of the file's tasks
'fork': 'a' | 2 | a loop without an end
'loop': 3, 'fork': 'a' | 4 | 1024 times
'memrun': {} | 4 | size and stride is not simulated
'mem': -1 | 4 | from 0 to
'barrier': 3 | 4 | expected a text
'jump': 5 | 4 | no such key
'policy': 'SCHED_BATCH' | 4 | SCHED_BATCH is not simulated
'policy': 'SCHED_DEADLINE', 'taskgroup': '/a' | 2 | in a taskgroup
'sleep': 1.5 | 4 | a whole number from
'cpus': [99] | 4 | expected CPUs from 0 to 5
'nodes_membind': [1] | 4 | expected nodes from 0 to 0 of juno
'nodes_membind': [] | 4 | expected every node of the task's cpus
'cpus': [] | 4 | at least one CPU
'priority': 20 | 4 | from -20 to 19
'sleep': -1 | 4 | from 0 to
'timer': {'ref': 'x'} | 4 | a ref and a period
'timer': {'ref': 'x', 'period': 5, 'mode': 'odd'} | 4 | relative or absolute
'phases': {} | 3 | beside 'phases'
'util_min': 600, 'util_max': 500 | 2 | beyond its util_max
"#;

/// Whole files, the line that refuses each, and words of the error.
const REFUSED_FILES: &str = r#"
{'tasks': {'a': {'lock': 'm', 'yield': '', 'unlock': 'm'}}} | 1 | takes no time
{'tasks': {'a': {'phases': {\n'p': {'loop': 2, 'run': 1, 'lock': 'm'}}}}} | 2 | other mutexes
{'tasks': {'a': {'iorun': 5}},\n'global': {'io_device': '/dev/sda'}} | 2 | expected /dev/null
{'tasks': {'a': {'phases': {'p': {'run': 1},\n'q': {'priority': 1, 'run': 1}}}}} | 2 | from phase to phase
{'tasks': {'a': {'policy': 'SCHED_RR', 'phases': {\n'p': {'cpus': [1], 'run': 1}}}}} | 2 | real-time task's CPUs
{'tasks': {'a': {'loop': 1, 'fork': 'b'},\n'b': {'delay': 5, 'run': 1}}} | 2 | before the fork
{'tasks': {'a': {'loop': 1, 'fork': 'b'},\n'b': {'run': 1, 'barrier': 'x'}}} | 2 | does not count forked tasks
{'tasks': {'a': {'run': 0}}} | 1 | takes no time
{'tasks': {'a': {'run': 1, 'phases': 3}}} | 1 | expected an object
{'tasks': {}} | 1 | one at least
{\n'global': {'pi_enabled': true}, 'tasks': {'a': {'run': 1}}} | 2 | priority inheritance
{\n'global': {'speed': 3}} | 2 | no such global key
{'tasks': {},\n'tasks': {}} | 2 | expected once
{\n\n'task': {}} | 3 | tasks, global or resources
"#;

#[test]
fn what_is_not_simulated_is_refused_by_its_line() {
    let in_a_task = |keys: &str| format!("{{'tasks': {{\n'a': {{\n'run': 5,\n{keys}\n}}}}}}");
    let whole = |text: &str| text.replace("\\n", "\n");
    let tasks = REFUSED_IN_A_TASK.lines().skip(1).map(|row| (row, true));
    let files = REFUSED_FILES.lines().skip(1).map(|row| (row, false));
    for (row, is_task) in tasks.chain(files) {
        let [text, line, words] = row.split(" | ").collect::<Vec<_>>()[..] else { panic!("{row}") };
        let file = if is_task { in_a_task(text) } else { whole(text) };
        let error = parse(&file, "", "juno").expect_err(row).to_string().replace('"', "'");
        assert!(
            error.contains(&format!("line {line}: ")) && error.contains(words),
            "{row}: {error}"
        );
    }
    let error =
        Workload::parse("rtapp:/no/such.json", &machine("juno")).expect_err("none").to_string();
    assert!(error.contains("/no/such.json"), "{error}");
}

/// Runs a second of it with the books walked over again and again.
fn checked(text: &str) -> Metrics {
    common::checked(&of(text, Era::V7_2, 1000), 499_979, |_| {})
}

#[test]
fn a_mutex_lets_one_in_at_a_time() {
    // Three threads that want 1 ms in 1.25 ms: only one works at a time.
    let file =
        "{'tasks': {'a': {'instance': 3, 'lock': 'm', 'run': 1000, 'unlock': 'm', 'sleep': 250}}}";
    let counted = checked(file).counted;
    assert!((950..=1000).contains(&counted), "{counted}");
}

#[test]
fn a_signal_lets_one_go_and_a_broadcast_all() {
    let file = |how: &str| {
        format!(
            "{{'tasks': {{\n\
             'waker': {{'sleep': 10000, 'lock': 'm', '{how}': 'c', 'unlock': 'm'}},\n\
             'waiter': {{'instance': 4, 'lock': 'm', 'wait': {{'ref': 'c', 'mutex': 'm'}}, 'unlock': 'm'}}}}}}"
        )
    };
    // 99 rounds of the waker, each of which lets one or all four go once.
    for (how, waiters) in [("signal", 1), ("broad", 4)] {
        let counted = checked(&file(how)).counted;
        let expected = 99 * (1 + waiters);
        assert!((expected - waiters..=expected).contains(&counted), "{how}: {counted}");
    }
}

#[test]
fn who_syncs_wakes_another_and_waits() {
    // Both sleep until the other comes back: a run of 1 ms each in turn, started by a third task.
    let file = "{'tasks': {\n\
        'a': {'instance': 2, 'lock': 'm', 'sync': {'ref': 'c', 'mutex': 'm'}, 'unlock': 'm', 'run': 1000}}}";
    let counted = checked(file).counted;
    assert!((900..=1000).contains(&counted), "{counted}");
}

#[test]
fn who_suspends_is_resumed_by_name() {
    let file = "{'tasks': {\n\
        'tick': {'resume': 'audio', 'timer': {'ref': 't', 'period': 5000}},\n\
        'audio': {'suspend', 'run': 1000, 'resume': 'screen'},\n\
        'screen': {'suspend': 'screen', 'run': 2000}}}";
    let outcome = checked(file);
    let counted = outcome.counted;
    assert!((196 + 2 * 195..=3 * 200).contains(&counted), "{counted}");
}

#[test]
fn nobody_passes_a_barrier_before_all_are_there() {
    // The slowest needs 3 ms; a round of all three is counted three times.
    let file = "{'tasks': {\n\
        'quick': {'instance': 2, 'run': 1000, 'barrier': 'b', 'run1': 100},\n\
        'slow': {'run': 3000, 'barrier7': 'b', 'run1': 100}}}";
    let counted = checked(file).counted;
    // A barrier of rt-app's lets its last one go before the others have left.
    assert!((3 * 320..=3 * 322).contains(&counted), "{counted}");
    // One of two tasks waits for another that never comes.
    let alone = "{'tasks': {'a': {'run': 1000, 'barrier': 'b', 'barrier2': 'b'}}}";
    let outcome = checked(alone);
    assert_eq!(outcome.counted, 0);
}

#[test]
fn phases_have_cpus_of_their_own() {
    // rt-app's own example of it: CPU 0, CPU 1, then the task's own.
    let file = "{'tasks': {'a': {'instance': 2, 'cpus': [2, 3], 'loop': -1, 'phases': {\n\
        'p': {'cpus': [0], 'run': 1000}, 'q': {'cpus': [1], 'loop': 2, 'run': 500, 'sleep': 10},\n\
        'r': {'run': 1000}}}}}";
    let workload = of(file, Era::V7_2, 1000).workload;
    let masks: Vec<Vec<usize>> = workload.masks.iter().map(|m| m.iter().collect()).collect();
    assert_eq!(masks, [vec![0], vec![1], vec![2, 3]]);
    // No task is ever on a CPU that its phase does not allow (P1), and the tasks do every phase.
    let outcome = checked(file);
    let moves: u64 = outcome.balanced.iter().sum();
    assert!(outcome.counted > 500, "{outcome:?}");
    assert!(moves >= 3 * outcome.counted, "{outcome:?}");
    // A round is 3 ms of work, and nothing is done twice or left out.
    let work = outcome.counted * 3_000_000;
    assert!((work..work + work / 50).contains(&outcome.busy_ns), "{outcome:?}");
}

#[test]
fn a_wait_that_nobody_ends_is_a_task_that_sleeps() {
    let file = "{'tasks': {\n\
        'a': {'run': 1000, 'suspend': 'nobody'},\n\
        'b': {'lock': 'x', 'sleep': 1000, 'lock2': 'y', 'unlock': 'y', 'unlock2': 'x'},\n\
        'c': {'lock': 'y', 'sleep': 1000, 'lock2': 'x', 'unlock': 'x', 'unlock2': 'y'}}}";
    let outcome = checked(file);
    assert_eq!(outcome.counted, 0);
    assert!(outcome.busy_ns < 2_000_000, "{outcome:?}");
}

#[test]
fn writing_takes_the_time_that_its_figures_say() {
    let file = "{'global': {'mem_buffer_size': 1000},\n\
        'tasks': {'a': {'mem': 5000000, 'iorun': 100001, 'timer': {'ref': 't', 'period': 5000}}}}";
    let keys = ",mem_mbs=5000,write_ns=1000,footprint=0";
    let workload = parse(file, keys, "kunpeng920").expect("a workload");
    let program = format!("{:?}", &workload.tasks[0].program[..2]);
    assert_eq!(program, "[Run(Const(1000000)), Kernel(Const(101000))]");
    let run = scenario(&machine("kunpeng920"), Era::V7_2, workload, [0, 1000]).run();
    let outcome = run.expect("it runs");
    assert_eq!(outcome.metrics.counted, 199);
    let kernel = outcome.metrics.kernel_ns;
    assert!((200 * 101_000..210 * 110_000).contains(&kernel), "{kernel}");
}
