// SPDX-License-Identifier: GPL-2.0-or-later
//! Records as CSV.

/// Writes the records, which are all of one length, as CSV.
pub fn write_csv(records: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.write_record(record).expect("memory takes records of one length");
    }
    let bytes = writer.into_inner().expect("memory takes what is written");
    String::from_utf8(bytes).expect("the records were UTF-8")
}
