// SPDX-License-Identifier: GPL-2.0-or-later
//! The exit codes of commands that load programs into the kernel. Guests show those of kernels that
//! take programs (../guests/errors.rs).

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use crate::support::{directory, printed, told, words};

/// Runs perch as a user without rights; none where such a user cannot read perch.
fn without_rights(line: &str) -> Option<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perch"));
    command.args(words(line)).stdin(Stdio::null());
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn run_record_and_trial_end_with_3_for_a_user_without_rights() {
    let out = directory("exits").join("x.perch").display().to_string();
    for line in ["run", "run --check", "trial", &format!("record -o {out} -- true")] {
        let Some(output) = without_rights(line) else {
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn run_record_and_trial_show_one_table_of_exit_codes() {
    let table = |command| {
        let help = printed(&format!("{command} --help"));
        let (_, table) = help.split_once("Exit codes of perch run, record and trial:")?;
        Some(table.to_string())
    };
    let run = table("run").expect("perch run --help has the table");
    assert!(run.contains("  4  somebody unloaded perch by hand"), "{run}");
    assert_eq!(table("record").as_ref(), Some(&run));
    assert_eq!(table("trial"), Some(run));
}

/// libbpf's own lines must not reach the user, whatever the kernel says to the programs.
#[test]
fn record_says_in_its_own_words_that_the_kernel_refuses() {
    let out = directory("exits").join("refused.perch").display().to_string();
    let (code, _, said) = told(&format!("record -o {out} -- true"));
    assert!(said.lines().all(|line| line.starts_with("perch: ")), "{said}");
    assert!(matches!(code, Some(0 | 3)), "{said}");
}
