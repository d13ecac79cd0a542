// SPDX-License-Identifier: GPL-2.0-or-later
//! Results that `perch report` makes a page of: of experiments and comparisons.

use std::path::Path;

use perch_fuzz::refused;
use perch_report::{Results, html};

use crate::{files, text};

#[test]
fn results() {
    let seeds = files("crates/perch-fuzz/seeds/results", ".json");
    let words = r#"
"arms":¦"scores":¦"latency":¦"buckets":¦"cpus":¦"busy_pct":¦"cells":¦"loads":¦"machine_toml":¦
"statistics":¦"iterations":¦"contention":¦"further":¦"summary":¦null¦true¦[]¦{}¦
[¦]¦{¦}¦,¦:¦"¦<script>¦\u001b¦\0¦1e308¦-1e308¦5e-324"#;
    text("results", 2000, seeds, words, &|input, _: &Path| {
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
