// SPDX-License-Identifier: GPL-2.0-or-later
//! The configuration of the live scheduler.

use perch_fuzz::refused_at;
use perch_plan::Settings;

use crate::{files, text};

#[test]
fn settings() {
    let words = r#"
[modes]¦[[band]]¦[band]¦cluster¦capacity¦cache¦overload¦steer¦name¦nice¦cgroup¦priority¦policy¦
= "perch"¦= true¦= []¦= {}¦slice_us¦=¦"¦*¦/¦[¦]¦\0¦\u{1b}¦#¦1979-05-27T07:32:00Z¦0xff¦1_000"#;
    let seeds = files("crates/perch-fuzz/seeds/settings", ".toml");
    text("settings", 3500, seeds, words, &|input, path| match Settings::from_file(path) {
        Ok(_) => Ok(()),
        Err(error) => refused_at(&error.to_string(), &path.display().to_string(), input),
    });
}
