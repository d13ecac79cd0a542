// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the files of counts, made by hand.

use perch_machine::Distance;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::format::UnknownEnding;
use crate::html::html;
use crate::results::Results;

fn moves(all: &[(LineKind, Distance, u64)]) -> Moves {
    let of = |(kind, distance, count): &(LineKind, Distance, u64)| {
        let (kind, distance) = (*kind, *distance);
        (Move { kind, distance }, *count)
    };
    all.iter().map(of).collect()
}

/// Returns where the modelled time of a CPU went, in picoseconds.
fn time() -> BTreeMap<Cause, u64> {
    let line = |kind, distance| Cause::Line(Move { kind, distance });
    BTreeMap::from([
        (Cause::Instructions, 40_000),
        (Cause::Smt, 4_000),
        (line(LineKind::LoadDirty, Distance::Llc), 2_000),
        (line(LineKind::Llc, Distance::Llc), 6_000),
        (line(LineKind::Cold, Distance::Cpu), 3_000),
        (line(LineKind::Cold, Distance::Package), 5_000),
        (Cause::Queue, 1_000),
        (Cause::Stores, 7_000),
        (Cause::Exit, 500),
    ])
}

/// Returns the counts of a slot without those that come with modelled time, but with lines of code.
fn untimed(slot: SlotCounts) -> SlotCounts {
    SlotCounts {
        used: BTreeMap::from([(0, [9, 70]), (1, [0, 3])]),
        time_ps: BTreeMap::new(),
        aside: BTreeMap::new(),
        ..slot
    }
}

/// Returns counts on two CPUs, of a slot whose time is modelled and another one, with each kind of
/// record, in which one function has a name as no kernel has it. `far` lines moved over the longest
/// distance.
pub(crate) fn sample(scheduler: &str, far: u64) -> LineCounts {
    let slot = |slot, operations| SlotCounts {
        slot,
        operations,
        accesses: 90,
        instructions: vec![[40, 400], [0, 7]],
        used: BTreeMap::from([(0, [9, 0]), (1, [5, 0])]),
        time_ps: BTreeMap::from([(0, time())]),
        aside: BTreeMap::from([(0, moves(&[(LineKind::Upgrade, Distance::Llc, 2)]))]),
        moved: [
            moves(&[(LineKind::LoadDirty, Distance::Cluster, 4)]),
            moves(&[
                (LineKind::LoadDirty, Distance::Machine, far),
                (LineKind::Upgrade, Distance::Llc, 20),
                (LineKind::Cold, Distance::Cpu, 8),
                (LineKind::Llc, Distance::Llc, 6),
            ]),
        ],
        functions: BTreeMap::from([
            (
                "(user)".to_string(),
                moves(&[(LineKind::LoadDirty, Distance::Cluster, 4)]),
            ),
            (
                "ttwu_<queue>".to_string(),
                moves(&[
                    (LineKind::Upgrade, Distance::Llc, 20),
                    (LineKind::Cold, Distance::Cpu, 8),
                ]),
            ),
            (
                format!("__{}", "longer_than_the_chart_has_room_for"),
                moves(&[(LineKind::LoadDirty, Distance::Machine, far)]),
            ),
        ]),
        lines: vec![
            LineMoves {
                name: "runqueues+0x8".to_string(),
                moves: 60,
                loaded_by: "ttwu_<queue>".to_string(),
                written_by: "(user)".to_string(),
            },
            LineMoves {
                name: "ffff888000002000".to_string(),
                moves: 4,
                loaded_by: String::new(),
                written_by: String::new(),
            },
        ],
        tasks: vec![TaskCounts {
            name: "task 1 on 0-1".to_string(),
            runs: 2,
            instructions: [40, 380],
            data: 30,
            own: 12,
            code: 50,
            moved: moves(&[(LineKind::Upgrade, Distance::Llc, 20)]),
        }],
    };
    LineCounts {
        perch: "0.1.0".to_string(),
        command: "perch lab run -- sh -c 'echo \"<b>\" & true'".to_string(),
        machine: "kunpeng920".to_string(),
        kernel: "7.2.12".to_string(),
        scheduler: scheduler.to_string(),
        cpus: 2,
        slots: vec![slot(1, 4), untimed(slot(2, 1))],
    }
}

fn value(counts: &LineCounts) -> Value {
    serde_json::from_str(&counts.write(CountsFormat::Json)).unwrap()
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let mut counts = sample("stock", 40);
    assert_eq!(parse(&value(&counts)).unwrap(), counts);
    counts.slots.clear();
    assert_eq!(parse(&value(&counts)).unwrap(), counts);
    assert!(counts.text().contains("nothing was counted"));
}

#[test]
fn json_has_a_head_and_a_line_a_record() {
    let mut counts = sample("stock", 40);
    counts.slots.truncate(1);
    insta::assert_snapshot!(counts.write(CountsFormat::Json));
}

#[test]
fn csv_is_flat_and_has_every_figure() {
    let mut counts = sample("stock", 40);
    counts.slots.truncate(1);
    insta::assert_snapshot!(counts.write(CountsFormat::Csv));
}

#[test]
fn markdown_has_the_tables_of_the_terminal() {
    let counts = sample("stock", 40);
    let markdown = counts.write(CountsFormat::Markdown);
    assert_eq!(markdown.matches("### by function").count(), 2);
    let row = "| ttwu_<queue> | 5.000 | 0.00 | 5.000 | 0.00 |";
    assert!(markdown.contains(row), "{markdown}");
    assert!(counts.text().contains("ttwu_<queue>"));
}

#[test]
fn the_terminal_has_each_table_that_has_rows() {
    let mut counts = sample("stock", 40);
    insta::assert_snapshot!(counts.text());
    for slot in &mut counts.slots {
        *slot = SlotCounts {
            instructions: vec![[0; 2]; 2],
            moved: [
                moves(&[(LineKind::Upgrade, Distance::Llc, 0)]),
                Moves::new(),
            ],
            time_ps: BTreeMap::from([(0, BTreeMap::from([(Cause::Queue, 0)]))]),
            used: BTreeMap::from([(1, [0; 2])]),
            ..SlotCounts::default()
        };
    }
    let nothing = "slot 0: 0 operations, 0 loads and stores\n\n";
    assert_eq!(counts.text(), nothing.repeat(2));
}

/// All memory has one column, and the rows of an LLC's lines are its distance's.
#[test]
fn time_is_summed_by_distance() {
    let counts = sample("stock", 40);
    let arms = [
        ("a".to_string(), &counts.slots[0]),
        ("b".to_string(), &counts.slots[1]),
    ];
    let found = time::table(&arms);
    let head = "CPU,,instructions,SMT,memory,LLC,queue,store buffer,idle exit,sum";
    assert_eq!(found.head().join(","), head);
    let row = "0,a,10.00,1.000,2.000,2.000,0.250,1.750,0.125,17.12";
    let rows: Vec<String> = found.rows().iter().map(|row| row.join(",")).collect();
    assert_eq!(rows, [row]);
    assert!(time::table(&arms[1..]).rows().is_empty());
}

#[test]
fn arms_have_the_columns_that_they_count() {
    let counts = sample("stock", 40);
    let arms = [
        ("a".to_string(), &counts.slots[0]),
        ("b".to_string(), &counts.slots[1]),
    ];
    let used = tables::used(&arms);
    assert_eq!(used.head(), ["CPU", "a data", "b data", "b code"]);
    assert_eq!(used.rows(), [["0", "9", "9", "70"], ["1", "5", "0", "3"]]);
    let head = tables::moves(&arms).head();
    let aside: Vec<&String> = head.iter().filter(|name| name.contains("aside")).collect();
    assert_eq!(aside, ["a aside"]);
}

#[test]
fn a_files_ending_is_its_format() {
    assert_eq!(CountsFormat::of("a/b.csv".as_ref()), Ok(CountsFormat::Csv));
    assert_eq!(
        CountsFormat::of("b.md".as_ref()),
        Ok(CountsFormat::Markdown)
    );
    for bad in ["b.txt", "b", "json"] {
        let error = CountsFormat::of(bad.as_ref()).unwrap_err();
        assert_eq!(error, UnknownEnding(bad.into()));
    }
}

/// Returns the pointers to all values below `value`, with their places in the words of errors.
fn places(value: &Value, pointer: &str, place: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let place = format!("{place}.{key}").trim_start_matches('.').to_string();
                let pointer = format!("{pointer}/{key}");
                found.push((pointer.clone(), place.clone()));
                places(value, &pointer, &place, found);
            }
        }
        Value::Array(all) => {
            for (at, value) in all.iter().enumerate() {
                let (pointer, place) = (format!("{pointer}/{at}"), format!("{place}[{at}]"));
                found.push((pointer.clone(), place.clone()));
                places(value, &pointer, &place, found);
            }
        }
        _ => {}
    }
}

/// Each value of a file, replaced or taken out, is refused by its place. A text that may be any is
/// taken.
#[test]
fn what_perch_does_not_write_is_refused_by_its_place() {
    let good = value(&sample("stock", 40));
    let mut all = Vec::new();
    places(&good, "", "", &mut all);
    assert!(all.len() > 100, "{}", all.len());
    for (pointer, place) in all {
        for bad in [
            json!(null),
            json!(-1),
            json!(1.5),
            json!("zz"),
            json!([7]),
            json!({"a": 1}),
        ] {
            let mut file = good.clone();
            let old = file.pointer_mut(&pointer).unwrap();
            let any = ["perch", "command", "machine", "kernel", "scheduler"];
            let by = ["loaded_by", "written_by"];
            let key = pointer.rsplit('/').next().unwrap();
            let is_text = any.contains(&key) || by.contains(&key) || key == "name";
            *old = bad.clone();
            match parse(&file) {
                Err(error) => assert!(error.to_string().starts_with(&place), "{place}: {error}"),
                Ok(_) => assert!(bad == "zz" && is_text, "{place}: {bad} was taken"),
            }
        }
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let mut file = good.clone();
        if let Some(Value::Object(map)) = file.pointer_mut(parent) {
            map.remove(key);
            match parse(&file) {
                Err(error) => {
                    let expected = format!("{place}: missing, expected ");
                    assert!(error.to_string().starts_with(&expected), "{error}");
                }
                Ok(_) => assert!(["loaded_by", "written_by"].contains(&key), "{place}"),
            }
        }
        if let Some(Value::Object(map)) = file.pointer_mut(&pointer) {
            map.insert("more".to_string(), json!(1));
            let error = parse(&file).unwrap_err().to_string();
            let expected = format!("{place}.more: no such key, expected one of ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    let good = value(&sample("stock", 40));
    let refused = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut file = good.clone();
        change(&mut file);
        let error = parse(&file).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(
        &|file| file["version"] = json!(2),
        "version: found 2, expected 1,",
    );
    refused(
        &|file| file["cpus"] = json!(3),
        "slots[0].records: found 4 records of instructions, expected 6",
    );
    refused(
        &|file| file["cpus"] = json!(u32::MAX),
        "expected 8589934590",
    );
    refused(
        &|file| file["cpus"] = json!(1),
        "slots[0].records[2].name: found \"1\", expected a CPU, 0 to 0",
    );
    refused(
        &|file| {
            let records = file["slots"][0]["records"].as_array_mut().unwrap();
            let again = records[4].clone();
            records.push(again);
        },
        "a record above counts the same",
    );
    // Every CPU's records are of a CPU that is there, and lines alone come over a distance.
    let find = |what: &str, kind: &str| -> String {
        let records = good["slots"][0]["records"].as_array().unwrap();
        let is = |record: &Value| record["what"] == what && record["kind"] == kind;
        format!("/slots/0/records/{}", records.iter().position(is).unwrap())
    };
    let of = |what: &str, kind: &str, key: &str, value: Value, expected: &str| {
        let record = find(what, kind);
        let change = |file: &mut Value| {
            let record = file.pointer_mut(&record).unwrap();
            record[key] = value.clone();
        };
        refused(&change, expected);
    };
    let beyond = ".name: found \"2\", expected a CPU, 0 to 1";
    for (what, kind) in [("used", "data"), ("time_ps", "queue"), ("aside", "upgrade")] {
        of(what, kind, "name", json!("2"), beyond);
    }
    let none = ".distance: no such key, expected one of what, name, kind, count";
    of("time_ps", "queue", "distance", json!("LLC"), none);
    let missing = ".distance: missing, expected one of memory, ";
    of("time_ps", "queue", "kind", json!("LLC"), missing);
    of(
        "time_ps",
        "SMT",
        "kind",
        json!("queue"),
        "a record above counts the same",
    );
    refused(
        &|file| file["slots"][1]["operations"] = json!(0),
        "slots[1].operations: found 0, expected a whole number, at least 1",
    );
}

/// Sums of counts that fit in no number end at the largest.
#[test]
fn counts_of_any_size_have_a_page() {
    let mut counts = sample("stock", u64::MAX);
    for slot in &mut counts.slots {
        slot.instructions = vec![[u64::MAX; 2]; 2];
        slot.used = BTreeMap::from([(1, [u64::MAX; 2])]);
        slot.time_ps = BTreeMap::from([(1, time())]);
        slot.aside = BTreeMap::from([(0, slot.moved[1].clone()), (1, slot.moved[1].clone())]);
        let times = slot.time_ps.values_mut();
        times
            .flat_map(|causes| causes.values_mut())
            .for_each(|ps| *ps = u64::MAX);
        let all = slot.functions.values_mut().chain(&mut slot.moved);
        let all = all.chain(slot.aside.values_mut());
        all.flat_map(|moves| moves.values_mut())
            .for_each(|count| *count = u64::MAX);
    }
    let text = counts.write(CountsFormat::Json);
    let page = html(&[Results::parse(&text).unwrap()], "0.1.0");
    assert!(!page.contains("NaN") && !page.contains(">inf"));
}

proptest! {
    /// Whatever happened to a file, it is refused or it has a page.
    #[test]
    fn a_damaged_file_is_refused_or_has_a_page(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..4)
    ) {
        let mut bytes = sample("stock", 40).write(CountsFormat::Json).into_bytes();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, b'0' + byte % 10),
                2 => drop(bytes.remove(at)),
                _ => bytes[at] = bytes[at].wrapping_add(1),
            }
        }
        match Results::parse(&String::from_utf8_lossy(&bytes)) {
            Ok(found) => prop_assert!(html(&[found], "0.1.0").ends_with("</html>\n")),
            Err(error) => prop_assert!(error.to_string().starts_with("is "), "{error}"),
        }
    }
}
