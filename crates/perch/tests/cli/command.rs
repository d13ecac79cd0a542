// SPDX-License-Identifier: GPL-2.0-or-later
//! The command's output when all is well.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::support::{perch_with, printed, told, words};

/// Arguments for two small cells of the experiment, with two repetitions each.
const SMALL: &str = "experiment run cluster-scan --only */node0/n=1 --repetitions 2";

#[test]
fn lists_name_what_there_is() {
    assert!(printed("experiment list").contains("cluster-scan"));
    assert!(printed("machine list").contains("kunpeng920"));
    assert!(printed("machine show juno").contains("2 Cortex-A57"));
    let workloads = printed("workload list");
    assert!(workloads.contains("tbench") && workloads.contains("uclamp_min"));
    let explained = printed("stats --explain");
    assert!(explained.contains("previous idle") && explained.contains("claim_lost"));
    assert!(printed("eras").contains("SIS_PROP"));
}

/// Completions and manual pages have every command, but none of the hidden ones, which only perch
/// calls.
#[test]
fn completions_and_manual_pages_have_every_command() {
    let script = printed("completions bash")
        + "\nCOMP_WORDS=(perch '') COMP_CWORD=1; _perch perch '' perch; echo ${COMPREPLY[@]}";
    // A file, because the kernel takes no word longer than 128 KiB in a command line.
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("completions.bash");
    std::fs::write(&file, script).unwrap();
    let output = Command::new("bash").arg(&file).output().unwrap();
    let offered = String::from_utf8(output.stdout).unwrap();
    let offered: Vec<&str> = offered.split_whitespace().collect();
    let pages = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("man1");
    let _ = std::fs::remove_dir_all(&pages);
    printed(&format!("man {}", pages.display()));
    let names: Vec<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let help = printed("--help");
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Simulate:")
        .take_while(|line| *line != "Options:")
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in &commands {
        assert!(names.contains(&format!("perch-{command}.1")), "{command}");
        assert!(offered.contains(command), "{command} is not in {offered:?}");
    }
    assert!(names.contains(&"perch-experiment-run.1".to_string()));
    let page = std::fs::read_to_string(pages.join("perch-experiment-run.1")).unwrap();
    assert!(page.contains("repetitions") && page.contains(".TH"), "{page}");
    for name in &names {
        assert!(!name.contains("agent") && !name.contains("self-test"), "{name}");
    }
}

/// The part that a guest has is a machine like any other, of the same costs, and stderr tells what it lacks.
#[test]
fn the_part_that_a_guest_has_is_a_machine() {
    let (_, text, left_out) = told("machine show kunpeng920 --cpus 16 --toml");
    assert!(left_out.contains("112 of kunpeng920's 128 CPUs"), "{left_out}");
    let part = perch_machine::Machine::from_toml_str(&text, "stdout").unwrap();
    let whole = perch_machine::resolve("kunpeng920").unwrap();
    assert_eq!((part.cpus.len(), part.clusters(), part.nodes()), (16, 8, 4));
    assert_eq!(part.hardware, whole.hardware);
}

#[test]
fn the_result_does_not_depend_on_the_threads_and_the_seed_brings_it_back() {
    let with = |extra: &str| printed(&format!("{SMALL} --format csv {extra}"));
    let alone = with("--jobs 1");
    assert_eq!(alone.lines().count(), 4);
    assert_eq!(alone, with("--jobs 4"));
    assert_ne!(alone, with("--seed 2"));
}

#[test]
fn quiet_means_an_empty_stderr() {
    assert_eq!(told(&format!("{SMALL} --quiet")).2, "");
    assert!(told(SMALL).2.contains("12 simulations"));
}

/// `perch ... | head -n 1` ends quietly.
#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_perch"))
        .args(["machine", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(child.wait().unwrap().success(), "{stderr}");
    assert!(stderr.is_empty(), "{stderr}");
}

/// Each arm leaves a trace, and the comparison is the same as without traces.
#[test]
fn a_comparison_leaves_traces_where_it_is_told_to() {
    let folder = folder("traces");
    let file = folder.join("run.pftrace");
    let line = "compare -m juno -w hackbench:groups=1 --arm a:capacity=off --arm b:capacity=posted \
                --repetitions 1 --format json";
    assert_eq!(printed(line), printed(&format!("{line} --trace {}", file.display())));
    for arm in ["a", "b"] {
        let trace = std::fs::read(folder.join(format!("run.{arm}.pftrace"))).unwrap();
        // Each trace begins with a packet, which is field 1 with a length.
        assert!(trace.len() > 10_000 && trace[0] == 0x0a, "{}", trace.len());
    }
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// perch refuses before anything runs, leaves no new file behind, and leaves an old one as it is.
#[test]
fn a_file_that_cannot_be_written_is_told_at_once() {
    let folder = folder("refused-files");
    for option in ["--trace", "--record"] {
        let path = folder.join("nowhere/run.x");
        let line = "compare -m juno -w tbench:n=2 --arm a:capacity=off --repetitions 1000000";
        let (code, _, said) = told(&format!("{line} {option} {}", path.display()));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("cannot write") && said.contains("run.x"), "{said}");
    }
    let path = folder.join("kept.x");
    std::fs::write(&path, "before").unwrap();
    let line = "compare -m juno -w tbench:nothing=2 --arm a:capacity=off";
    assert_eq!(told(&format!("{line} --trace {}", path.display())).0, Some(2));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Each format has its own escapes, and a strict parser reads the name as it was given.
#[test]
fn hostile_arm_names_stay_whole_in_each_format() {
    let name = "\u{1b}[31m\u{7f}\u{202e}\"\n,\\\t'";
    let arm = format!("{name}:cluster=off");
    let line = "compare -q -m x5570 -w runsleep:tasks=1,run_us=50,sleep_us=500 --repetitions 1 \
                --measure 5ms --format";
    let of = |format| {
        let output = perch_with(&[&words(line)[..], &[format, "--arm", &arm]].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&of("json")).unwrap();
    assert_eq!(json["arms"][0]["name"], name);
    let csv = of("csv");
    let mut records = csv::Reader::from_reader(csv.as_bytes());
    let column = records.headers().unwrap().iter().position(|name| name == "arm");
    let record = records.records().next().unwrap().unwrap();
    assert_eq!(&record[column.unwrap()], name);
    for format in ["table", "markdown", "lkml", "mmtests", "json"] {
        let text = of(format);
        let steers = |c: char| c == '\u{202e}' || (c.is_control() && !"\n\t".contains(c));
        assert!(!text.contains(steers), "{format}: {text:?}");
    }
}
