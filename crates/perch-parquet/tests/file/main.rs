// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests that write random tables and read them back by a strict reader, which shares nothing with
//! the writer.

mod reader;

use perch_parquet::{Column, Error, Kind, Value, Writer};
use proptest::prelude::*;

use reader::{Cell, read};

const KINDS: [Kind; 7] = [
    Kind::Bool,
    Kind::I32,
    Kind::I64,
    Kind::U32,
    Kind::U64,
    Kind::F64,
    Kind::Text,
];

/// Returns a value of a column from a few random bits; small values of the bits make runs of
/// rows without a value.
fn value(column: &Column, bits: u64) -> Cell {
    if column.optional && bits % 3 == 0 {
        return Cell::Null;
    }
    match column.kind {
        Kind::Bool => Cell::Bool(bits & 8 != 0),
        Kind::I32 => Cell::I32(bits as i32),
        Kind::I64 => Cell::I64(bits as i64),
        Kind::U32 => Cell::U32(bits as u32),
        Kind::U64 => Cell::U64(bits),
        Kind::F64 => Cell::F64(bits as f64 / 7.0),
        Kind::Text => Cell::Text("wäke-up ".repeat((bits % 5) as usize)),
    }
}

fn borrowed(cell: &Cell) -> Value<'_> {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(v) => Value::Bool(*v),
        Cell::I32(v) => Value::I32(*v),
        Cell::I64(v) => Value::I64(*v),
        Cell::U32(v) => Value::U32(*v),
        Cell::U64(v) => Value::U64(*v),
        Cell::F64(v) => Value::F64(*v),
        Cell::Text(v) => Value::Text(v),
    }
}

fn written(columns: &[Column], rows: &[Vec<Cell>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), columns, &[("made by", "a test")]).expect("a table");
    for row in rows {
        let values: Vec<Value> = row.iter().map(borrowed).collect();
        writer.row(&values).expect("a row");
    }
    writer.finish().expect("memory")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tables_come_back(
        kinds in prop::collection::vec((0..KINDS.len(), any::<bool>()), 1..9),
        seeds in prop::collection::vec(any::<u64>(), 0..300),
        few in 1..u64::MAX,
    ) {
        let columns: Vec<Column> = kinds
            .iter()
            .enumerate()
            .map(|(i, &(kind, optional))| Column {
                name: format!("c{i}"),
                kind: KINDS[kind],
                optional,
            })
            .collect();
        let rows: Vec<Vec<Cell>> = seeds
            .iter()
            .map(|seed| {
                let bits = |i: usize| (seed % few).rotate_left(7 * i as u32);
                columns.iter().enumerate().map(|(i, c)| value(c, bits(i))).collect()
            })
            .collect();
        let file = written(&columns, &rows);
        let table = read(&file);
        prop_assert_eq!(table.columns, columns);
        prop_assert_eq!(table.rows, rows);
        prop_assert_eq!(table.pairs, [("made by".to_string(), "a test".to_string())]);
    }
}

/// The writer's memory is bounded: a long table has many row groups of some MiB.
#[test]
fn long_tables_have_several_row_groups() {
    let columns = [
        Column::new("n", Kind::U64),
        Column::optional("t", Kind::Text),
    ];
    let rows: Vec<Vec<Cell>> = (0..400_000u64)
        .map(|i| {
            // These values have nothing that a packer could shorten.
            let n = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            vec![Cell::U64(n), value(&columns[1], n >> 7)]
        })
        .collect();
    let file = written(&columns, &rows);
    let table = read(&file);
    assert!(table.groups.len() > 1, "{:?}", table.groups);
    assert!(table.groups.iter().all(|&(_, bytes)| bytes < 9 << 20));
    assert!(table.rows == rows);
}

#[test]
fn what_repeats_is_packed() {
    let columns = [Column::new("n", Kind::U64)];
    let rows = vec![vec![Cell::U64(7)]; 10_000];
    let file = written(&columns, &rows);
    assert!(file.len() < 2_000, "{}", file.len());
    assert_eq!(read(&file).rows, rows);
}

#[test]
fn what_makes_no_table_is_refused() {
    let refused = |columns: &[Column]| match Writer::new(Vec::new(), columns, &[]) {
        Err(Error::Columns(why)) => why,
        _ => panic!("{columns:?} is no table"),
    };
    assert_eq!(refused(&[]), "expected at least one");
    assert_eq!(
        refused(&[Column::new("", Kind::U32)]),
        "number 0 has no name"
    );
    let twice = [Column::new("a", Kind::U32), Column::new("a", Kind::Text)];
    assert_eq!(refused(&twice), "two are called \"a\"");
}

#[test]
fn rows_of_another_table_are_refused_and_leave_nothing() {
    let columns = [
        Column::new("a", Kind::U32),
        Column::optional("b", Kind::Text),
    ];
    let mut writer = Writer::new(Vec::new(), &columns, &[]).expect("a table");
    writer.row(&[Value::U32(1), Value::Null]).expect("a row");
    let mut refused = |values: &[Value]| writer.row(values).expect_err("no row").to_string();
    assert_eq!(refused(&[Value::U32(1)]), "row 1: 1 values for 2 columns");
    assert_eq!(
        refused(&[Value::Null, Value::Null]),
        "row 1: nothing in \"a\", which is not optional"
    );
    assert_eq!(
        refused(&[Value::U32(1), Value::I64(1)]),
        "row 1: I64 in \"b\", which is Text"
    );
    let long = "x".repeat(17 << 20);
    assert!(refused(&[Value::U32(1), Value::Text(&long)]).contains("expected at most"));
    let file = writer.finish().expect("memory");
    assert_eq!(read(&file).rows, [[Cell::U32(1), Cell::Null]]);
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let columns = [Column::new("a", Kind::U64)];
    let mut writer = Writer::new(Full(100), &columns, &[]).expect("room");
    let full = (0..2_000_000u64).find_map(|i| writer.row(&[Value::U64(i * i)]).err());
    assert!(matches!(full, Some(Error::Io(_))), "{full:?}");
}
