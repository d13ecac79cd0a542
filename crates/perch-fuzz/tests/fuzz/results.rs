// SPDX-License-Identifier: GPL-2.0-or-later
//! Results that `perch report` makes a page of: of experiments, comparisons and counts of lines.

use std::path::Path;

use perch_fuzz::refused;
use perch_report::{Results, html};

use crate::{files, read, text, tree};

#[test]
fn results() {
    let mut seeds = files("crates/perch-fuzz/seeds/results", ".json");
    // The page of counts has a snapshot, below a head of the snapshot's own.
    let snapshot = read(&tree(
        "crates/perch-report/src/moved/snapshots/perch_report__moved__tests__json_has_a_head_and_a_line_a_record.snap",
    ));
    let snapshot = String::from_utf8(snapshot).expect("JSON is text");
    let counts = snapshot.splitn(3, "---\n").nth(2).expect("a head");
    seeds.push(counts.as_bytes().to_vec());
    let words = [
        "\"arms\":",
        "\"scores\":",
        "\"latency\":",
        "\"buckets\":",
        "\"cpus\":",
        "\"busy_pct\":",
        "\"cells\":",
        "\"loads\":",
        "\"machine_toml\":",
        "\"statistics\":",
        "\"iterations\":",
        "\"contention\":",
        "\"further\":",
        "\"summary\":",
        "\"slots\":",
        "\"records\":",
        "null",
        "true",
        "[]",
        "{}",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "\"",
        "<script>",
        "\\u001b",
        "\0",
        "1e308",
        "-1e308",
        "5e-324",
    ];
    text("results", 2000, seeds, &words, &|input, _: &Path| {
        let text = String::from_utf8_lossy(input);
        match Results::parse(&text) {
            Ok(results) => {
                let page = html(&[results], "0.1.0");
                match page.contains("<script>") || page.contains("NaN") {
                    true => Err("the page has a script or a NaN".to_string()),
                    false => Ok(()),
                }
            }
            Err(why) => refused(&why.to_string(), "", input),
        }
    });
}
