// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the forms of replies on the kernel list: their columns, and what they say where there
//! is no figure.

use proptest::prelude::*;

use super::sheet::{Iterations, Row, Sheet};
use super::tests::{any_sheet, row, sheet};
use super::{cases, imp};

fn netperf() -> Sheet {
    let rows = vec![
        row("n=28", true, &[100.0, 138.49, 99.2], 0.0),
        row("n=224", true, &[80.0, 81.05, 80.0], 0.0),
    ];
    let mut sheet = sheet("TCP_RR", &["baseline", "patched", "perch"], rows);
    sheet.rows[0].figures[0].std = Some(5.91);
    sheet.rows[1].unsettled = true;
    sheet
}

/// The columns are those of the replies: a baseline ends in column 54, a change in column 71.
#[test]
fn cases_stand_where_replies_have_them() {
    let text = cases::tables(&netperf());
    let line = "TCP_RR                  28-threads       1.00 (  5.91)  +38.49 (  1.00)";
    assert!(text.lines().any(|found| found.starts_with(line)), "{text}");
    insta::assert_snapshot!(text);
    let mut two = netperf().only(&[0, 1]);
    two.arms[1] = "compare".to_string();
    let text = cases::tables(&two);
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(
        lines[..2],
        [
            "case                    load            baseline(std%)  compare%( std%)",
            "TCP_RR                  28-threads       1.00 (  5.91)  +38.49 (  1.00)",
        ]
    );
}

#[test]
fn improvements_stand_where_replies_have_them() {
    let hackbench = || {
        let rows = vec![
            row("groups=1", false, &[0.5, 0.51], 0.0),
            row("groups=16", false, &[2.0, 0.75], 0.0),
        ];
        sheet("hackbench", &["tip", "patched"], rows)
    };
    let text = imp::tables(&hackbench());
    let line = " 1-groups     1.00 [  0.00]( 1.00)     1.02 [ -2.00]( 1.00)";
    assert!(text.lines().any(|found| found == line), "{text}");
    insta::assert_snapshot!(text);
    insta::assert_snapshot!(imp::tables(&netperf()));
}

#[test]
fn each_score_of_a_load_has_a_table() {
    let rows = vec![
        row("n=1:wake_p99.0", false, &[6.0, 5.0], 0.0),
        row("n=1:rps50", true, &[300.0, 301.0], 0.0),
        row("n=16:wake_p99.0", false, &[35.0, 21.0], 0.0),
    ];
    let sheet = sheet("schbench-new", &["baseline", "patched"], rows);
    insta::assert_snapshot!(cases::tables(&sheet) + "\n" + &imp::tables(&sheet));
}

#[test]
fn statistics_have_a_row_each_and_only_the_mean_a_deviation() {
    let rows = vec![
        row("mean", true, &[100.0, 110.0], 10.0),
        row("std", false, &[5.0, 6.0], 20.0),
        row("99th", true, &[120.0, 125.0], 4.0),
    ];
    let mut sheet = sheet("sysbench", &["baseline", "patched"], rows);
    sheet.rows[1..].iter_mut().for_each(|row| {
        row.figures.iter_mut().for_each(|figure| figure.std = None);
    });
    sheet.iterations =
        Some(Iterations { workload: "sysbench:threads=8".to_string(), values: Vec::new() });
    insta::assert_snapshot!(cases::tables(&sheet) + "\n" + &imp::tables(&sheet));
}

fn comparison(values: [f64; 2]) -> Sheet {
    let rows = vec![row("throughput", true, &values, 0.0)];
    let mut sheet = sheet("tbench:n=16", &["a", "b"], rows);
    sheet.place = String::new();
    sheet
}

#[test]
fn the_name_of_a_comparison_is_its_workload() {
    let sheet = comparison([200.0, 190.0]);
    let text = cases::tables(&sheet);
    assert!(text.starts_with("tbench:n=16 throughput, us, more is better"), "{text}");
    assert!(text.contains("\ntbench                  16-threads       1.00"), "{text}");
    let text = imp::tables(&sheet);
    assert!(text.contains("Test          : tbench:n=16\n"), "{text}");
    assert!(text.contains("\n       16     1.00 ["), "{text}");
    let mut sheet = sheet;
    sheet.benchmark = "perf bench sched pipe -l a:b".to_string();
    let text = cases::tables(&sheet);
    assert!(text.contains("\nperf_bench_sched_pipe_-l_a:b  -  "), "{text}");
}

/// The last row of both tables.
fn last_rows(sheet: &Sheet) -> [String; 2] {
    [cases::tables(sheet), imp::tables(sheet)].map(|text| {
        let last = text.lines().last().unwrap();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        last.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn one_repetition_has_a_dash_for_its_deviation() {
    let mut sheet = comparison([200.0, 190.0]);
    for figure in &mut sheet.rows[0].figures {
        figure.std = None;
    }
    assert_eq!(
        last_rows(&sheet),
        ["16-threads 1.00 ( -) -5.00 ( -)", "1.00 [ 0.00]( -) 0.95 [ -5.00]( -)"]
    );
}

#[test]
fn nothing_in_both_arms_is_no_change() {
    let mut sheet = comparison([0.0, 0.0]);
    for figure in &mut sheet.rows[0].figures {
        figure.delta_pct = 0.0;
    }
    assert_eq!(
        last_rows(&sheet),
        ["16-threads 0.00 ( 0.00) +0.00 ( 0.00)", "0.00 [ 0.00]( 0.00) 0.00 [ 0.00]( 0.00)"]
    );
}

#[test]
fn a_change_from_nothing_is_said_in_words() {
    assert_eq!(
        last_rows(&comparison([0.0, 12.5])),
        [
            "16-threads 0.00 ( 0.00) - ( 1.00) from 0: b is 12.50 us",
            "0.00 [ 0.00]( 0.00) - [ -]( 1.00) from 0: b is 12.50 us"
        ]
    );
}

proptest! {
    /// All rows of a table end their columns where its heading ends them, whatever the names and
    /// figures are.
    #[test]
    fn columns_line_up(sheet in any_sheet()) {
        let mut sheet = sheet;
        for (index, arm) in sheet.arms.iter_mut().enumerate() {
            // A parenthesis in a name would be taken for the end of a column.
            *arm = format!("{}{index}", "long-".repeat(arm.len() % 7));
        }
        sheet.benchmark.retain(|c| !"()".contains(c));
        sheet.rows.iter_mut().for_each(|row: &mut Row| row.label.retain(|c| !"()".contains(c)));
        for text in [cases::tables(&sheet), imp::tables(&sheet)] {
            prop_assert!(text.is_ascii() && !text.contains("NaN"), "{text}");
            let mut ends: Option<Vec<usize>> = None;
            for line in text.lines() {
                if line.contains("(std%)") || line.contains("(CV)") {
                    ends = Some(line.match_indices(')').map(|(at, _)| at).collect());
                } else if let Some(ends) = ends.as_ref().filter(|_| line.ends_with(')')) {
                    let found: Vec<usize> = line.match_indices(')').map(|(at, _)| at).collect();
                    prop_assert_eq!(&found, ends, "{}", text);
                } else {
                    ends = ends.filter(|_| !line.is_empty());
                }
            }
        }
    }
}
