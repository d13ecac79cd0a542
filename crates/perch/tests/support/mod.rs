// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs the command, and keeps files for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The words of a line; one in single quotes may have blanks, or be empty.
pub fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.collect::<Vec<_>>().concat()
}

/// Runs perch with the arguments of a line and nothing on stdin.
pub fn perch(line: &str) -> Output {
    perch_with(&words(line))
}

/// The same of arguments that no line can have.
pub fn perch_with(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perch"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the program was built")
}

/// The exit code, stdout and stderr of a run.
pub fn told(line: &str) -> (Option<i32>, String, String) {
    let output = perch(line);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// What a run that must succeed prints.
#[track_caller]
pub fn printed(line: &str) -> String {
    let (code, stdout, stderr) = told(line);
    assert_eq!(code, Some(0), "{line}: {stderr}");
    stdout
}

/// The same as JSON.
#[track_caller]
pub fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(&printed(line)).expect("JSON")
}

/// Demands a refusal whose message has each of `words`.
#[track_caller]
pub fn refused(line: &str, words: &[&str]) {
    let (code, stdout, stderr) = told(line);
    assert_eq!(code, Some(2), "{line}: {stderr}");
    assert_eq!(stdout, "", "{line} wrote to stdout");
    for word in words {
        assert!(stderr.contains(word), "{line} should say `{word}`: {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

pub fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&path).expect("a directory for tests");
    path
}

pub fn file(test: &str, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = directory(test).join(name);
    std::fs::write(&path, content).expect("a file for tests");
    path.display().to_string()
}
