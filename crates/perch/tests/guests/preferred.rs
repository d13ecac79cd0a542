// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks that run for long go to the cores that the kernel prefers. A guest's kernel prefers none, so a
//! machine file says which.

use perch_lab::Cpus;
use perch_machine::Machine;

use crate::guest::shell;

/// Looks at the tasks' CPUs in each step.
const LOOKS: usize = 10;
/// Looks of a step in which the tasks are where they should be. A task that something short interrupts
/// may be taken to another core for a tick.
const MOST_LOOKS: usize = 8;

/// Four cores of two threads. CPUs 2 and 3 rank first, then 6 and 7.
const RANKINGS: &str = "
[[ranking]]
cpus = '2-3'
value = 200
[[ranking]]
cpus = '6-7'
value = 150
[[ranking]]
cpus = '0-1,4-5'
value = 100
";

/// Hogs are born on CPU 0 and then may use the CPUs of a mask; `look` prints a step's name and the CPU of each.
const STEPS: &str = r#"
    hogs=
    start() {
        sh -c 'while :; do :; done' & hogs="$hogs $!"
        taskset -p 1 $! >/dev/null; pause 0.05; taskset -p $1 $! >/dev/null
    }
    look() {
        step=$1 n=0; pause 0.1
        while [ $n -lt 10 ]; do
            line=$step; pause 0.02
            for hog in $hogs; do read -r stat </proc/$hog/stat; set -- $stat; line="$line ${39}"; done
            echo "$line"; n=$((n+1))
        done
    }
    perch machine detect >/tmp/m.toml; echo "$RANKINGS" >>/tmp/m.toml
    moves() { perch stats --format json | tr ',{}' '\n\n\n' | grep '"preferred"'; }
    load; start ff; pause 0.3; moves; kill $hogs; hogs=
    kill $perch; wait $perch 2>/dev/null
    load --machine /tmp/m.toml
    start 33; look bound; kill $hogs; hogs=
    start ff; look one
    start ff; look two
    start ff; look three
    first=${hogs# }; first=${first%% *}; kill $first; hogs=${hogs# $first}; look left
    kill $hogs
    moves
    cat /sys/kernel/sched_ext/state
    "#;

/// The cores of the tasks at each look of a step, ascending.
fn cores(text: &str, step: &str) -> Vec<Vec<u32>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(step));
    let core = |cpu: &str| cpu.parse::<u32>().expect("a CPU") / 2;
    let mut looks: Vec<Vec<u32>> =
        lines.map(|cpus| cpus.split_whitespace().map(core).collect()).collect();
    looks.iter_mut().for_each(|cores| cores.sort_unstable());
    assert_eq!(looks.len(), LOOKS, "{step}: {text}");
    looks
}

#[test]
fn long_tasks_go_to_the_cores_that_rank_highest() {
    long_tasks_go_to_the_highest("7.2");
}

#[test]
#[ignore = "7.2 is tested anyway, for --long"]
fn long_tasks_go_to_the_cores_that_rank_highest_on_6_16() {
    long_tasks_go_to_the_highest("6.16");
}

fn long_tasks_go_to_the_highest(kernel: &str) {
    let text = "name = \"ranked\"\n[topology]\ncores_per_llc = 4\nthreads_per_core = 2\n";
    let machine = Machine::from_toml_str(text, "ranked").unwrap();
    let script = format!("RANKINGS=\"{RANKINGS}\"{STEPS}");
    let text = shell(&machine, Cpus::All, kernel, &script);
    println!("{kernel}:\n{text}");
    assert!(text.ends_with("enabled\n"), "{text}");
    let holds = |step: &str, is_so: &dyn Fn(&[u32]) -> bool| {
        let so = cores(&text, step).iter().filter(|at| is_so(at)).count();
        assert!(so >= MOST_LOOKS, "{step}: {so} of {LOOKS} looks\n{text}");
    };
    // Without rankings no task is sent.
    let moves = text.lines().filter(|line| line.starts_with("\"preferred\""));
    let moves: Vec<bool> = moves.map(|line| line != "\"preferred\":0").collect();
    assert_eq!(moves, [false, true], "{text}");
    // Its mask has CPUs 0, 1, 4 and 5: cores that rank alike, so nothing is gained by a move.
    holds("bound", &|at| at == [0] || at == [2]);
    holds("one", &|at| at == [1]);
    holds("two", &|at| at == [1, 3]);
    // The third has what is left, and shares no core with another.
    holds("three", &|at| at == [0, 1, 3] || at == [1, 2, 3]);
    // The best core is free again, so the next best comes there, and the third after it.
    holds("left", &|at| at == [1, 3]);
}
