// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the build script: the tables that it makes of mechanisms.def, and the line that it
//! names when it refuses one.

use perch_policy::{Mechanism, Reason};

#[allow(dead_code, reason = "the build script reads the rest")]
#[path = "../build/table.rs"]
mod table;

const TEXT: &str = include_str!("../../../policy/include/perch/mechanisms.def");

/// The number of the line that has `what`.
fn line_of(text: &str, what: &str) -> usize {
    let at = text.find(what).expect(what);
    text[..at].matches('\n').count() + 1
}

#[test]
fn the_table_is_what_rust_has() {
    let table = table::parse(TEXT).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let names: Vec<_> = table.mechanisms.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, Mechanism::ALL.map(Mechanism::name));
    let words: Vec<_> = table.reasons.iter().map(|r| r.words.as_str()).collect();
    assert_eq!(words, Reason::ALL.map(Reason::name));
}

/// Recordings hold the numbers: those that were ever written mean what they meant.
#[test]
fn reasons_keep_their_numbers() {
    let expected = "nothing, affinity, hint, target idle, previous idle, kthread, recent idle, \
                    sibling idle, cluster core, cluster scan, LLC core, LLC thread, LLC scan, \
                    cluster fallback to previous, cluster fallback to recent, target busy, no LLC, \
                    slow path, fallback, capacity fit, best capacity, most spare capacity, \
                    wake balance, idle group, not searched, empty queue, SCHED_IDLE, \
                    behind the waker, left a busy LLC";
    let expected: Vec<_> = expected.split(", ").collect();
    let names = Reason::ALL.map(Reason::name);
    assert_eq!(names[..expected.len()], expected);
}

/// A change of one place, and what is said of the line where it is.
const MISTAKES: &str = r#"
PERCH_MODES(steer, posted | PERCH_MODES(steer, poted | PERCH_MODES: unknown "poted": expected posted, upstream, perch
PERCH_ERA(steer, 3.4) | PERCH_ERA(stear, 3.4) | "stear" is not a mechanism: expected PERCH_MECHANISM(stear, ...) above
PERCH_ERA(steer, 3.4) | PERCH_ERA(steer, 34) | PERCH_ERA: "34": expected a version like 6.7
PERCH_ERA(steer, 3.4) | PERCH_ERA(cache, 3.4) | PERCH_ERA of cache stands in line
PERCH_ERA(steer, 3.4) | PERCH_AERA(steer, 3.4) | PERCH_AERA is not a macro of this table
PERCH_ERA(steer, 3.4) | PERCH_ERA(steer, 3.4, 5) | PERCH_ERA has 3 arguments: expected 2
PERCH_ERA(steer, 3.4) | ERA(steer, 3.4) | expected PERCH_...(...), found ERA(steer, 3.4)
PERCH_ERA(steer, 3.4) | PERCH_ERA(steer; 3.4) | expected , or ) after an argument
EMPTY_QUEUE, 25, | EMPTY_QUEUE, 24, | EMPTY_QUEUE has the number 24 of UNSEARCHED
EMPTY_QUEUE, 25, | UNSEARCHED, 25, | UNSEARCHED stands here for the second time
"empty queue", queued | "empty queue", busy | PERCH_REASON: unknown "busy": expected none, given, idle, queued, slow
"empty queue", queued | empty, queued | PERCH_REASON: expected a text in quotes as argument 4
PERCH_STAGE(last, steer) | PERCH_STAGE(late, steer) | PERCH_STAGE: unknown "late": expected first, leave, aim, near, scan, unbudgeted, home, last
"#;

#[test]
fn a_mistake_is_refused_by_its_line() {
    for row in MISTAKES.lines().skip(1) {
        let [before, after, message] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let text = TEXT.replacen(before, after, 1);
        let (line, said) = table::parse(&text).err().unwrap_or_else(|| panic!("{after}"));
        assert!(said.starts_with(message), "{after}: {said}");
        assert_eq!(line, line_of(&text, after), "{after}: {said}");
    }
}

/// The build reports a missing line at the mechanism that lacks it, or at the end.
#[test]
fn a_missing_line_is_told() {
    let refused = |before: &str| table::parse(&TEXT.replacen(before, "", 1)).err().expect(before);
    let (line, said) = refused("PERCH_ERA(steer, 3.4)");
    assert_eq!(said, "steer has no line PERCH_ERA(steer, ...)");
    assert_eq!(line, line_of(TEXT, "PERCH_MECHANISM(steer,"));
    let (_, said) = refused(
        "PERCH_REASON(stock, IDLE_GROUP, 23, \"idle group\", idle,\n\t     \
         \"3.4: the first idle group of CPUs, from the last-level cache downward.\")",
    );
    assert_eq!(said, "no reason has the number 23: expected them without a gap");
}
