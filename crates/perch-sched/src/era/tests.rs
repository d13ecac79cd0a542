// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the eras' rules.

use std::path::Path;

use perch_policy::ERAS;

use super::EraRules;

/// Experiments quote figures that were measured by these rules, so a change of one must show in the
/// diff of rules.txt. `UPDATE=1` rewrites that file.
#[test]
fn rules_of_the_published_eras_stay() {
    let mut now = String::new();
    for (name, era) in ERAS {
        now += &format!("era {name}\n{:#?}\n{:#?}\n", era.rules(), EraRules::new(era, 64));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/era/rules.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &now).expect("rules.txt can be written");
    }
    let then = std::fs::read_to_string(&file).expect("rules.txt");
    assert!(
        then == now,
        "the rules of an era differ from {}: UPDATE=1 rewrites it, git diff shows the difference",
        file.display()
    );
}
