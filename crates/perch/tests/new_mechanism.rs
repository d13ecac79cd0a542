// SPDX-License-Identifier: GPL-2.0-or-later
//! A new mechanism is one header, its lines in the table, one experiment and one page, as
//! CONTRIBUTING.md promises: this test adds one to a copy of the tree, builds perch there and finds
//! the mechanism wherever people meet one.
//!
//! The copy and what cargo makes of it stay below the target folder, so that a second run builds
//! only what has changed since. The first run takes over the dependencies that cargo has built for
//! this tree: building them again took two thirds of its time.

use std::collections::BTreeMap;
use std::fs::{self, FileTimes};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The mechanism's hook: where the search ends at a CPU whose neighbour by number is idle, it takes
/// the neighbour.
const HEADER: &str = r#"/* SPDX-License-Identifier: GPL-2.0-or-later */
/* swap: an idle neighbour instead (a test). */
#ifndef PERCH_SWAP_H
#define PERCH_SWAP_H

#include "stock.h"

/* Stage last. */
PERCH_INLINE perch_u32 perch_swap_last(const struct perch_host *h, const struct perch_policy *pol,
					const struct perch_task *p, struct perch_search *s,
					perch_u32 cpu)
{
	perch_u32 other = cpu ^ 1;

	if (pol->modes.swap != PERCH_PERCH || other >= perch_host_nr_cpus(h) ||
	    !perch_allowed(h, p, other) || !perch_idle_ok(h, pol, p, other))
		return cpu;
	s->reason = PERCH_BY_SWAP_IDLE;
	return other;
}

#endif
"#;

/// Its lines in mechanisms.def, less the number of its reason, its header's and its stage's line.
const LINES: &str = r#"PERCH_MECHANISM(swap, "take an idle neighbour instead")
PERCH_MODES(swap, perch)
PERCH_SINCE(swap, never)
PERCH_ERA(swap, 5.5)
PERCH_PREMISE(swap, none, "")
PERCH_RECORDING(swap, kernel, "")
PERCH_REASON(swap, SWAP_IDLE, NUMBER, "idle neighbour", idle, "The neighbour is idle.")

"#;

const EXPERIMENT: &str = r#"name = "idle-neighbours"
title = "An idle neighbour instead"
source = "a test"
machine = "kunpeng920"
era = "7.2"
hz = 250
published = "idle-neighbours.csv"
repetitions = 2
warmup_ms = 1
measure_ms = 60

[[arm]]
name = "baseline"
modes = "swap=off"

[[arm]]
name = "patched"
modes = "swap=perch"

[[benchmark]]
name = "tbench"
unit = "MB/s"
rows = ["n=8"]

[[benchmark.place]]
name = "node0"
workload = "tbench:n=8,where=node0"
"#;

const FIGURES: &str = "\
source,benchmark,where,unit,row,baseline,patched,printed_delta_pct,sd_baseline,sd_patched
a-test,tbench,node0,MB/s,n=8,100,101,+1,1,1
";

/// Everything of the tree that a build reads.
const PARTS: [&str; 6] = ["Cargo.toml", "Cargo.lock", "crates", "policy", "experiments", "docs"];

/// The files below a folder, by their paths in the tree.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Takes `part` of the tree at `root`, a file or a folder.
fn take(root: &Path, part: &Path, files: &mut Files) {
    let path = root.join(part);
    if path.is_file() {
        files.insert(part.to_path_buf(), fs::read(&path).expect("a file of the tree"));
        return;
    }
    let Ok(entries) = fs::read_dir(&path) else {
        return;
    };
    for entry in entries {
        take(root, &part.join(entry.expect("an entry").file_name()), files);
    }
}

/// Has `root` hold these files and no others. A file that is so already keeps its time, so that
/// cargo leaves it alone.
fn put(root: &Path, files: &Files) {
    let mut there = Files::new();
    for part in PARTS {
        take(root, Path::new(part), &mut there);
    }
    for gone in there.keys().filter(|path| !files.contains_key(*path)) {
        fs::remove_file(root.join(gone)).expect("a file that is gone");
    }
    for (path, text) in files.iter().filter(|(path, text)| there.get(*path) != Some(text)) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// mechanisms.def with the mechanism's lines.
fn table(text: &str) -> String {
    let number = text.matches("\nPERCH_REASON(").count();
    let lines = LINES.replace("NUMBER", &number.to_string());
    let stages = "/* The stages of a decision. */\n";
    let headers = "#ifdef PERCH_MECHANISM_HEADERS\n";
    let first = "#undef PERCH_MECHANISM\n";
    for mark in [stages, headers, first] {
        assert_eq!(text.matches(mark).count(), 1, "{mark}");
    }
    text.replace(stages, &format!("{lines}{stages}"))
        .replace(headers, &format!("{headers}#include \"swap.h\"\n"))
        .replace(first, &format!("PERCH_STAGE(last, swap)\n\n{first}"))
}

fn tree(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Files::new();
    for part in PARTS {
        take(&root, Path::new(part), &mut files);
    }
    let def = files.get_mut(Path::new("policy/include/perch/mechanisms.def"));
    let def = def.expect("the table");
    *def = table(std::str::from_utf8(def).expect("text")).into_bytes();
    for (path, text) in [
        ("policy/include/perch/swap.h", HEADER),
        ("experiments/idle-neighbours.toml", EXPERIMENT),
        ("experiments/idle-neighbours.csv", FIGURES),
        ("docs/mechanisms/swap.md", "# swap\n\nA test's.\n"),
    ] {
        let before = files.insert(path.into(), text.into());
        assert!(before.is_none(), "{path} is the tree's own");
    }
    let tree = folder.join("tree");
    put(&tree, &files);
    tree
}

struct Perch(PathBuf);

const COMPARE: &str = "compare -m kunpeng920 -w tbench:n=8 --repetitions 1 --warmup 0ms \
                       --measure 60ms --quiet";

impl Perch {
    fn run(&self, line: &str) -> Output {
        Command::new(&self.0).args(line.split_whitespace()).output().expect("perch starts")
    }

    fn stdout(&self, line: &str) -> String {
        let output = self.run(line);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {words}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The trace that an arm's run leaves.
    fn trace(&self, modes: &str, folder: &Path) -> Vec<u8> {
        let file = folder.join("run.pftrace");
        self.stdout(&format!("{COMPARE} --arm x:{modes} --trace {}", file.display()));
        fs::read(file).expect("a trace")
    }
}

/// The names of a folder's entries.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder of cargo's");
    entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("a name in Unicode"))
        .collect()
}

/// Copies a file, or a folder with all that is in it. The times stay, because cargo compares them to
/// tell what is stale.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("a folder");
        for name in names(from) {
            copy(&from.join(&name), &to.join(&name));
        }
    } else if from.is_file() {
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        let modified = fs::metadata(from).and_then(|about| about.modified());
        let times = FileTimes::new().set_modified(modified.expect("the time of a file"));
        let file = fs::OpenOptions::new().write(true).open(to);
        let kept = file.and_then(|file| file.set_times(times));
        kept.unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    }
}

/// Copies from cargo's folder `from` to the folder `to` what cargo has built of other people's
/// crates. Of this workspace's crates nothing is copied: cargo would not see that they differ.
fn lend(from: &Path, to: &Path) {
    let ours = |name: &str| name.starts_with("perch") || name.starts_with("libperch");
    for part in [".fingerprint", "build", "deps"] {
        let library = |name: &str| {
            let kind = Path::new(name).extension().and_then(|kind| kind.to_str());
            matches!(kind, Some("rlib" | "rmeta" | "so" | "d" | "a"))
        };
        fs::create_dir_all(to.join(part)).expect("a folder");
        let names = names(&from.join(part)).into_iter();
        for name in names.filter(|name| !ours(name) && (part != "deps" || library(name))) {
            copy(&from.join(part).join(&name), &to.join(part).join(&name));
        }
    }
}

/// perch, built from the tree, with the dependencies that stand in cargo's folder `from`.
fn build(folder: &Path, tree: &Path, from: &Path) -> Perch {
    let target = folder.join("target");
    if !target.exists() {
        lend(from, &target.join("debug"));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // ./x sets it for the tests, and cargo would build everything anew for it.
    command.env_remove("RUSTC_BOOTSTRAP");
    command.args(["build", "--quiet", "--offline", "--locked", "-p", "perch", "--bin", "perch"]);
    // The time goes into compiling, not into the few milliseconds that are simulated. The
    // dependencies are built as in this tree, so that they need not be built again.
    for member in names(&tree.join("crates")) {
        for setting in ["opt-level=0", "debug=false"] {
            command.arg("--config");
            command.arg(format!("profile.dev.package.{member}.{setting}"));
        }
    }
    let output =
        command.env("CARGO_TARGET_DIR", &target).current_dir(tree).output().expect("cargo starts");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    Perch(target.join("debug/perch"))
}

#[test]
#[ignore = "builds perch a second time, a minute of CPU"]
fn a_header_its_lines_an_experiment_and_a_page_are_a_mechanism() {
    let own = Perch(PathBuf::from(env!("CARGO_BIN_EXE_perch")));
    let built = own.0.parent().expect("cargo's folder");
    let target = built.parent().expect("cargo's folder");
    let folder = target.join("new-mechanism");
    let tree = tree(&folder);
    let perch = build(&folder, &tree, built);

    assert!(perch.stdout("experiment list").contains("idle-neighbours"));
    let help = perch.stdout("compare --help");
    assert!(help.contains("swap       take an idle neighbour instead (off, perch)"), "{help}");
    let refused = |perch: &Perch, modes: &str| {
        let output = perch.run(&format!("compare -m juno -w tbench:n=1 --arm {modes}"));
        assert_eq!(output.status.code(), Some(2), "{modes}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let words = refused(&perch, "x:swap=posted");
    assert!(words.contains("mechanism \"swap\" has no mode \"posted\": expected off, perch"));
    let words = refused(&perch, "x:warp=perch");
    assert!(words.contains(
        "this version has cluster, capacity, cache, overload, steer, behind, spread, sched_idle, swap"
    ));
    assert!(refused(&own, "x:swap=perch").contains("unknown mechanism \"swap\""));

    // Its mode changes decisions, under a reason of its own; off is the perch of this tree.
    let off = perch.trace("swap=off", &folder);
    assert!(off == own.trace("cluster=off", &folder), "off has changed the trace");
    assert!(off != perch.trace("swap=perch", &folder), "perch has changed nothing");
    let result = perch.stdout("experiment run idle-neighbours --format json");
    assert!(result.contains("swap=perch"), "{result}");
    let compared = perch.stdout(&format!("{COMPARE} --arm x:swap=perch --format json"));
    assert!(compared.contains("idle neighbour"), "{compared}");
}
