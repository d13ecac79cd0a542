// SPDX-License-Identifier: GPL-2.0-or-later
//! Words that tell how a result's machine and load fared against published tables.

use perch_experiment::{Comparison, Record, Trust, TrustOfMany};

/// Returns the lines below a comparison; none where nothing was simulated.
pub(crate) fn lines(found: &Comparison) -> Vec<String> {
    let trust = found.trust.as_ref();
    trust.map_or(Vec::new(), |trust| trust_lines(trust, &found.machine))
}

/// Returns the words of [`Trust`] in one line, or two.
pub fn trust_lines(trust: &Trust, machine: &str) -> Vec<String> {
    let load = &trust.load;
    let first = match (trust.held.cells, trust.other_loads.cells) {
        (1.., _) => format!(
            "held against published tables, {machine} under {load}: {}",
            record_words(&trust.held)
        ),
        (0, 1..) => format!(
            "{machine} under {load} was never held against a published table; under other loads: {}",
            record_words(&trust.other_loads)
        ),
        (0, 0) if !trust.not_carried.is_empty() => format!(
            "{machine} was held against published tables ({}), and this build does not carry the result: \
             perch experiment run {0}",
            trust.not_carried.join(" ")
        ),
        (0, 0) => {
            format!(
                "no published table was ever held against {machine}, under {load} or another load"
            )
        }
    };
    let costs = trust.default_costs.then(|| default_costs(machine));
    [Some(first), costs].into_iter().flatten().collect()
}

/// Returns the words of [`TrustOfMany`] in one line, or two.
pub fn trust_lines_of_many(trust: &TrustOfMany) -> Vec<String> {
    let (loads, held) = (trust.loads, trust.held_loads);
    let first = match held {
        0 if !trust.not_carried.is_empty() => format!(
            "some of these machines were held against published tables ({}), and this build does not carry \
             the result: perch experiment run {0}",
            trust.not_carried.join(" ")
        ),
        0 => {
            "no published table was ever held against these machines under these loads".to_string()
        }
        _ => format!(
            "held against published tables, {held} of {loads} kinds of load on a machine: {}",
            record_words(&trust.held)
        ),
    };
    let costs =
        (!trust.default_costs.is_empty()).then(|| default_costs(&trust.default_costs.join(", ")));
    [Some(first), costs].into_iter().flatten().collect()
}

fn default_costs(machine: &str) -> String {
    format!(
        "the costs of {machine} are defaults, which belong to no machine: give it its own ([hardware] of its file)"
    )
}

/// Returns a record in words.
fn record_words(record: &Record) -> String {
    let error = match (record.error_pp, record.no_change_error_pp) {
        (Some(error), Some(none)) => {
            format!("; off by {error:.1} points, \"no change\" by {none:.1}")
        }
        _ => String::new(),
    };
    format!(
        "{} of {} cells agree, {} disagree; sign right in {} of {}{error} ({})",
        record.agrees,
        record.cells,
        record.disagrees,
        record.directions_agree,
        record.directions,
        record.experiments.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::given;

    #[test]
    fn a_machine_without_a_record_says_so() {
        let mut found = given();
        let trust = found.trust.as_mut().unwrap();
        let held = std::mem::take(&mut trust.held);
        trust.other_loads = held.clone();
        assert!(lines(&found)[0].starts_with("kunpeng920 under tbench was never held against"));
        assert!(lines(&found)[0].contains("under other loads: 9 of 12 cells agree"));
        let trust = found.trust.as_mut().unwrap();
        trust.other_loads = Record::default();
        trust.default_costs = true;
        let lines = lines(&found);
        assert!(lines[0].starts_with("no published table was ever held against kunpeng920"));
        assert!(lines[1].starts_with("the costs of kunpeng920 are defaults"));
    }
}
