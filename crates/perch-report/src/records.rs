// SPDX-License-Identifier: GPL-2.0-or-later
//! Records as CSV, and values as JSON.

use serde::Serialize;

/// Writes the records, which are all of one length, as CSV.
pub fn write_csv(records: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.write_record(record).expect("memory takes records of one length");
    }
    let bytes = writer.into_inner().expect("memory takes what is written");
    String::from_utf8(bytes).expect("the records were UTF-8")
}

/// Returns a value as indented JSON, with the end of its last line.
///
/// # Panics
/// Panics when a map of the value has keys that are no texts.
pub fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string_pretty(value).expect("maps have text keys") + "\n"
}
