// SPDX-License-Identifier: GPL-2.0-or-later
//! Each rule finds what breaks it in a small tree, and says nothing about the tree's mended twin.

use std::fs;
use std::path::Path;

use perch_lint::{House, Tree, check};

const LICENCE: &str = "// SPDX-License-Identifier: GPL-2.0-or-later\n";

/// Write `files` into an empty folder of this `test`, each source file behind a licence line, and
/// read them back.
fn tree(test: &str, files: &[(&str, &str)]) -> Tree {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if root.exists() {
        fs::remove_dir_all(&root).expect("the folder of an earlier run can be removed");
    }
    for (path, text) in files {
        let full = root.join(path);
        fs::create_dir_all(full.parent().expect("a file has a folder")).expect("a folder");
        let licence = if path.ends_with(".rs") || path.ends_with(".h") {
            LICENCE
        } else {
            ""
        };
        fs::write(&full, format!("{licence}{text}")).expect("a file");
    }
    Tree::read(&root).expect("the tree that was just written")
}

/// The complaints about a small tree, a line each.
fn complaints(test: &str, files: &[(&str, &str)]) -> Vec<String> {
    let tree = tree(test, files);
    let house = House::of(&tree).expect("house.txt is well formed");
    check(&tree, &house)
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The only complaint about a small tree begins with `place` and holds each of `words`.
fn only(test: &str, files: &[(&str, &str)], place: &str, words: &[&str]) {
    let found = complaints(test, files);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with(place), "{}", found[0]);
    for word in words {
        assert!(found[0].contains(word), "no '{word}' in {}", found[0]);
    }
}

fn none(test: &str, files: &[(&str, &str)]) {
    let found = complaints(test, files);
    assert!(found.is_empty(), "{found:#?}");
}

const HOUSE: &str = "crates/perch-lint/house.txt";
const LIB: &str = "crates/a/src/lib.rs";
const ONE: &str = "crates/a/src/one.rs";
const TWO: &str = "crates/a/src/two.rs";
const THREE: &str = "crates/a/src/three.rs";
const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "");

#[test]
fn a_file_without_licence_or_end_is_found() {
    let long = "\n".repeat(500);
    only("long", &[("a.rs", &long)], "a.rs:500:", &["501 lines"]);
    none("short", &[("a.rs", &long[1..])]);
    none("generated", &[("crates/a/src/generated.rs", &long)]);
    only("bare", &[("x", "#!/bin/sh\n# hello\n")], "x:1:", &["SPDX"]);
    none(
        "named",
        &[(
            "x",
            "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-or-later\n",
        )],
    );
}

#[test]
fn a_long_function_is_found_in_both_languages() {
    let body = "a();\n".repeat(99);
    let rust = format!("fn whole() {{\n{body}}}\n");
    only(
        "fn",
        &[("a.rs", &rust)],
        "a.rs:2:",
        &["'whole'", "101 lines"],
    );
    none("fn-short", &[("a.rs", &rust.replacen("a();\n", "", 1))]);
    let c = format!("static int\nwhole(int a)\n{{\n{}}}\n", &body[10..]);
    only("c", &[("a.h", &c)], "a.h:2:", &["'whole'", "101 lines"]);
    none("c-short", &[("a.h", &c.replacen("a();\n", "", 1))]);
}

#[test]
fn broken_links_and_anchors_are_found() {
    let page = ("docs/b.md", "# One thing\n## 3.2 More\n**P4** holds.\n");
    let from = |link| [("docs/a.md", link), page];
    only(
        "link",
        &from("x\n[b](bb.md)\n"),
        "docs/a.md:2:",
        &["'bb.md'", "no file"],
    );
    only(
        "anchor",
        &from("[b](b.md#one-think)\n"),
        "docs/a.md:1:",
        &["#one-think", "#one-thing"],
    );
    only(
        "own",
        &from("[b](#nothing)\n"),
        "docs/a.md:1:",
        &["docs/a.md has no '#nothing'"],
    );
    none(
        "links",
        &from("# Here\n[b](b.md), [c](b.md#one-thing), [d](#here), [e](https://f.g/h)\n"),
    );
}

#[test]
fn broken_mentions_are_found_with_what_is_nearest() {
    let page = ("docs/b.md", "# One thing\n## 3.2 More\n**P4** holds.\n");
    let with = |text| [("crates/a/src/wake.rs", text), page];
    let place = "crates/a/src/wake.rs:2:";
    only(
        "name",
        &with("// as in wale.rs\n"),
        place,
        &["'wale.rs'", "crates/a/src/wake.rs"],
    );
    only(
        "path",
        &with("// policy/wake.rs:7\n"),
        place,
        &["nearest: crates/a/src/wake.rs"],
    );
    only(
        "section",
        &with("// b.md §3.3\n"),
        place,
        &["docs/b.md has no '§3.3'", "§3.2"],
    );
    only(
        "property",
        &with("// docs/b.md (P5)\n"),
        place,
        &["no 'P5'", "P4"],
    );
    only(
        "message",
        &with("const A: &str = \"see docs/c.md\";\n"),
        place,
        &["docs/c.md"],
    );
    none(
        "mentions",
        &with("// wake.rs, b.md\n// §3.2, docs/b.md (P4), crates/a/src, /proc/stat.c\n"),
    );
}

#[test]
fn an_exception_counts_until_nothing_needs_it() {
    let house = (HOUSE, "[elsewhere]\nkernel/*: Linux's\n");
    none("needed", &[("a.rs", "// kernel/sched/fair.c\n"), house]);
    only(
        "unneeded",
        &[("a.rs", "// nothing\n"), house],
        &format!("{HOUSE}:2:"),
        &["remove"],
    );
}

/// A crate of three files with these texts.
fn three<'a>(one: &'a str, two: &'a str, three: &'a str) -> Vec<(&'a str, &'a str)> {
    let lib = "mod one;\nmod two;\nmod three;\npub use one::A;\n";
    vec![MANIFEST, (LIB, lib), (ONE, one), (TWO, two), (THREE, three)]
}

#[test]
fn a_circle_of_three_files_is_found() {
    let (one, two) = (
        "use crate::two::B;\npub struct A(B);\n",
        "use super::three::C;\npub struct B(C);\n",
    );
    // The crate's own file only passes A on: the arrow leads to where A is.
    let back = "pub struct C(Option<Box<crate::A>>);\n";
    only(
        "circle",
        &three(one, two, back),
        ONE,
        &["3 files", "three.rs:2 uses 'crate::A'"],
    );
    none(
        "line",
        &three(
            one,
            two,
            "pub struct C;\n#[cfg(test)]\nmod tests { use crate::A; }\n",
        ),
    );
    none("pair", &three(one, "pub struct B(Box<crate::A>);\n", back));
    let house = (HOUSE, "[circles]\ncrates/a/src 3: for now\n");
    let with_house = |mut files: Vec<(&'static str, &'static str)>| {
        files.push(house);
        files
    };
    none("standing", &with_house(three(one, two, back)));
    let gone = with_house(three(one, two, "pub struct C;\n"));
    only(
        "gone",
        &gone,
        &format!("{HOUSE}:2:"),
        &["no circle is left"],
    );
}

#[test]
fn a_circle_by_methods_is_found() {
    let one = "pub struct A;\nimpl A { pub fn go(&self) { self.second(); } }\n";
    let two = "use crate::one::A;\nimpl A { pub fn second(&self) { self.third(); } }\n";
    let back = "use crate::one::A;\nimpl A { pub fn third(&self) {} }\n";
    only(
        "methods",
        &three(one, two, back),
        ONE,
        &["3 files", "uses 'second'"],
    );
    let apart = "pub struct A;\nimpl A { pub fn go(&self) {} }\n";
    none("methods-apart", &three(apart, two, back));
}

#[test]
fn an_arrow_back_up_is_found() {
    let house = (HOUSE, "[rooms a]\none\ntwo three\n");
    let mut files = three(
        "pub struct A;\n",
        "pub struct B;\n",
        "pub struct C(crate::one::A);\n",
    );
    files.push(house);
    only(
        "up",
        &files,
        &format!("{THREE}:2:"),
        &["back up", "'crate::one::A'"],
    );
    files[2].1 = "pub struct A(crate::three::C);\n";
    files[4].1 = "pub struct C(crate::two::B);\n";
    none("down", &files);
    files[5].1 = "[rooms a]\none\ntwo\n";
    only("roomless", &files, &format!("{THREE}:1:"), &["no room"]);
}

#[test]
fn a_crate_that_needs_a_higher_floor_is_found() {
    let manifest = |name| ("crates/a/Cargo.toml", name);
    let others = [("crates/b/Cargo.toml", ""), (HOUSE, "[floors]\nb\na\n")];
    let needs_b = manifest("[dependencies]\nb.workspace = true\n");
    let place = "crates/a/Cargo.toml:2:";
    only(
        "floor",
        &[needs_b, others[0], others[1]],
        place,
        &["may not depend on b", "above"],
    );
    let tests_need_b = manifest("[dev-dependencies]\nb.workspace = true\n");
    none("floor-tests", &[tests_need_b, others[0], others[1]]);
    let house = (HOUSE, "[floors]\na\n");
    only(
        "floorless",
        &[tests_need_b, others[0], house],
        HOUSE,
        &["b stands on no floor"],
    );
}

#[test]
fn an_include_through_a_wall_is_found() {
    let house = (HOUSE, "[walls]\nbase never follow: base is below\n");
    let follow = ("follow/b.h", "#include \"../base/a.h\"\n");
    let bad = [("base/a.h", "#include \"follow/b.h\"\n"), follow, house];
    let found = complaints("wall", &bad);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("base/a.h:2:") && found[0].contains("base is below"));
    none("wall-kept", &[("base/a.h", "int a;\n"), follow, house]);
    only(
        "wall-gone",
        &[("base/a.h", "int a;\n"), house],
        HOUSE,
        &["there is no 'follow'"],
    );
}

#[test]
fn a_headless_sentence_is_found() {
    for (test, bad, good) in [
        (
            "prose-whether",
            "// Whether the\n// queue is empty.\n",
            "// Returns whether the queue is empty.\n",
        ),
        (
            "prose-what",
            "/// A task. What it has run.\n",
            "/// A task. The time that it has run. What is time? A number.\n",
        ),
        ("prose-which", "// Which CPU.\n", "// Which CPU?\n"),
        ("prose-who", "// Who waits.\n", "// How many tasks wait.\n"),
    ] {
        only(
            test,
            &[("a.rs", bad)],
            "a.rs:2: ",
            &["headless", "begin with"],
        );
        none(test, &[("a.rs", good)]);
    }
    only(
        "prose-page",
        &[("a.md", "Who waits.\n")],
        "a.md:1: ",
        &["'Who waits.'"],
    );
    none("prose-example", &[("a.md", "```\nWho waits.\n```\n")]);
}
