// SPDX-License-Identifier: GPL-2.0-or-later
//! The commands of a page: read from it, run by a shell, and compared with the output that the page
//! shows.
//!
//! A block of the page that is fenced as `console` holds commands and what they print. A command
//! begins with `$ ` and goes on in lines that begin with `> `. Commands of a block fenced as
//! `console guest` boot guests, or read what such a guest left, so the guests' test program runs
//! them. `...` stands for anything that the page leaves out. A block fenced as `sh` has commands without
//! their output, which nobody runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A page, as it was when this test was built.
pub struct Page {
    name: &'static str,
    text: &'static str,
}

/// A first walk through perch.
pub const TUTORIAL: Page =
    Page { name: "docs/tutorial.md", text: include_str!("../../../../docs/tutorial.md") };
/// The forms of results.
#[allow(dead_code, reason = "no command of this page boots a guest")]
pub const FORMATS: Page =
    Page { name: "docs/formats.md", text: include_str!("../../../../docs/formats.md") };

/// The word on the page for output that it leaves out.
const GAP: &str = "...";

/// The one part that stands for all rows of a guest's table in a comparison.
const ROWS: &str = "<rows>";

/// The test program that runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The simulator answers: the output is the page's, to the letter.
    Simulated,
    /// A guest answers: the output has the page's words, and numbers of its own.
    Guest,
}

/// A command of the page.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// The test program that runs it.
    pub kind: Kind,
    /// The line of the page that it begins in, from 1.
    pub line: usize,
    /// The reader's command; several lines where the command goes on.
    pub command: String,
    /// The output as the page shows it.
    pub shown: String,
}

/// Every command of a page, in its order.
///
/// # Errors
/// A line that seems to be a command where no test would run it, an output without a command, or a
/// block that never ends.
pub fn steps(page: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    // The name of the block that the line is in, and the number of commands before that block.
    let mut block: Option<(&str, usize)> = None;
    for (index, text) in page.lines().enumerate() {
        let line = index + 1;
        if let Some(name) = text.strip_prefix("```") {
            block = match block {
                Some(_) => None,
                None => Some((name, steps.len())),
            };
            continue;
        }
        let (kind, before) = match block {
            Some(("console", before)) => (Kind::Simulated, before),
            Some(("console guest", before)) => (Kind::Guest, before),
            Some(("sh", _)) => continue,
            _ if is_command(text, block.is_some()) => {
                return Err(format!("line {line}: no test runs `{}`", text.trim()));
            }
            _ => continue,
        };
        if let Some(command) = text.strip_prefix("$ ") {
            steps.push(Step { kind, line, command: command.to_string(), shown: String::new() });
            continue;
        }
        let Some(step) = steps[before..].last_mut() else {
            return Err(format!("line {line}: no command printed `{text}`"));
        };
        match text.strip_prefix("> ") {
            Some(more) if step.shown.is_empty() => {
                step.command.push('\n');
                step.command.push_str(more);
            }
            _ => {
                step.shown.push_str(text);
                step.shown.push('\n');
            }
        }
    }
    match block {
        Some((name, _)) => Err(format!("a block ```{name} never ends")),
        None => Ok(steps),
    }
}

/// A line outside of a console block that the reader would take for a command: in a fenced block of
/// another name, or indented as Markdown's code is.
fn is_command(text: &str, fenced: bool) -> bool {
    let begins = ["$ ", "perch ", "sudo ", "./x "];
    let text = match fenced {
        true => Some(text),
        false => text.strip_prefix("    "),
    };
    text.is_some_and(|text| begins.iter().any(|begin| text.trim_start().starts_with(begin)))
}

/// The parts of a text that are compared: the simulator's output by lines, a guest's by words,
/// because numbers decide how wide a guest's tables are and where its sentences break. Every number
/// becomes `#`, every rule `-`, and the rows of a table are one part, since another run has other
/// rows.
fn parts(kind: Kind, text: &str) -> Vec<String> {
    match kind {
        Kind::Simulated => {
            let lines: Vec<String> = text.lines().map(|l| l.trim_end().to_string()).collect();
            let end = lines.iter().rposition(|line| !line.is_empty());
            lines[..end.map_or(0, |last| last + 1)].to_vec()
        }
        Kind::Guest => {
            let mut parts: Vec<String> = Vec::new();
            for line in text.lines() {
                if !is_row(line) {
                    parts.extend(line.split_whitespace().map(shape));
                } else if parts.last().is_none_or(|part| part != ROWS) {
                    parts.push(ROWS.to_string());
                }
            }
            parts
        }
    }
}

/// Returns whether a line is a row of a table: a name, and after at least two blanks only numbers
/// and per cents.
fn is_row(line: &str) -> bool {
    let Some((name, columns)) = line.split_once("  ") else {
        return false;
    };
    let is_column = |word: &str| word == "%" || word.parse::<f64>().is_ok();
    let mut columns = columns.split_whitespace().peekable();
    !name.is_empty() && columns.peek().is_some() && columns.all(is_column)
}

fn shape(word: &str) -> String {
    if word == GAP {
        return word.to_string();
    }
    let mut shape = String::new();
    for sign in word.chars() {
        let sign = if sign.is_ascii_digit() { '#' } else { sign };
        let of_number = matches!(sign, '#' | '.' | ',') && shape.ends_with('#');
        let of_rule = sign == '-' && shape.ends_with('-');
        if !of_number && !of_rule {
            shape.push(sign);
        }
    }
    shape
}

/// Returns whether a part of the page matches a part of the output; a gap within the part matches
/// anything.
fn is_like(shown: &str, got: &str) -> bool {
    match shown.split_once(GAP) {
        None => shown == got,
        Some((head, tail)) => got.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|&at| rest.is_char_boundary(at))
                .any(|at| is_like(tail, &rest[at..]))
        }),
    }
}

/// Compares the page's parts with those of the output; a gap matches any number of parts.
///
/// # Errors
/// The first part of the page that the output does not have at its place.
pub fn fits(kind: Kind, shown: &str, output: &str) -> Result<(), String> {
    let (shown, got) = (parts(kind, shown), parts(kind, output));
    let (mut at, mut here, mut furthest) = (0, 0, 0);
    // The place behind the last gap, and the part of the output from which the rest is tried.
    let mut gap: Option<(usize, usize)> = None;
    while here < got.len() {
        furthest = furthest.max(at);
        if shown.get(at).is_some_and(|part| part == GAP) {
            at += 1;
            gap = Some((at, here));
        } else if shown.get(at).is_some_and(|part| is_like(part, &got[here])) {
            at += 1;
            here += 1;
        } else if let Some((after, from)) = gap {
            at = after;
            here = from + 1;
            gap = Some((after, here));
        } else {
            break;
        }
    }
    furthest = furthest.max(at);
    let rest = &shown[at.min(shown.len())..];
    if here == got.len() && rest.iter().all(|part| part == GAP) {
        return Ok(());
    }
    Err(match shown.get(furthest) {
        Some(part) => format!("the output has no `{part}` where the page has it"),
        None => "the output goes on where the page's ends".to_string(),
    })
}

/// Runs the page's commands of a kind, one after the other in a folder of their own.
///
/// # Panics
/// If the page has no command of the kind, or if a command fails or prints something else than the
/// page shows; the message has the page's line.
pub fn run(page: &Page, kind: Kind) {
    let name = page.name;
    let steps = steps(page.text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let folder = folder(page, kind);
    let mut ran = 0;
    for step in steps.iter().filter(|step| step.kind == kind) {
        let output = output_of(page, step, &folder);
        if let Err(error) = fits(kind, &step.shown, &output) {
            panic!("{name}:{}: {error}\n$ {}\n{output}", step.line, step.command);
        }
        ran += 1;
    }
    assert!(ran > 0, "{name} has no {kind:?} command");
}

/// An empty folder for the files that commands of a kind leave to each other.
fn folder(page: &Page, kind: Kind) -> PathBuf {
    let name = format!("{}-{kind:?}", page.name.replace('/', "-"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The output of a command, standard error included, in the order in which a terminal would show
/// it.
fn output_of(page: &Page, step: &Step, folder: &Path) -> String {
    // `./x run` builds a release and then runs it: the build under test is there already.
    let command = step.command.replace("./x run ", "perch ");
    let built = Path::new(env!("CARGO_BIN_EXE_perch")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .env("PATH", format!("{}:{path}", built.display()))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (name, line) = (page.name, step.line);
    assert!(output.status.success(), "{name}:{line}: {}\n$ {command}\n{text}", output.status);
    text
}
