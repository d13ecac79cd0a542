// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of settings in the documentation is the one that the program has.

use std::path::Path;

use perch_plan::settings;

/// The page with the table.
const PAGE: &str = "docs/live/tuner.md";
const BEGIN: &str = "<!-- settings: begin -->\n";
const END: &str = "<!-- settings: end -->\n";
/// The variable that asks for the page to be written.
const RENEW: &str = "PERCH_RENEW";

#[test]
fn the_page_has_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{PAGE}: {error}"));
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (found, after) = rest.split_once(END)?;
        Some((before, found, after))
    });
    let Some((before, found, after)) = parts else {
        panic!("{PAGE} has no lines {BEGIN}and {END}between which the table goes");
    };
    let table = format!("\n{}\n", settings::markdown());
    if std::env::var_os(RENEW).is_some() {
        let page = format!("{before}{BEGIN}{table}{END}{after}");
        std::fs::write(&path, page).unwrap_or_else(|error| panic!("{PAGE}: {error}"));
        return;
    }
    assert!(
        found == table,
        "the table of settings in {PAGE} is stale; renew it: {RENEW}=1 cargo test -p \
         perch-plan --test settings"
    );
}
