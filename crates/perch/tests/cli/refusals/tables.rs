// SPDX-License-Identifier: GPL-2.0-or-later
//! A table is shown when it is finished: a failure of a later one takes nothing back.

use super::experiment;
use crate::support::told;

#[test]
fn what_is_finished_is_shown_before_a_later_table_fails() {
    // The scores of pipe are in another unit, which shows when they are there.
    let path = experiment("tables", "tcp_rr:{row},where={where}", "pipe:pairs=1,where={where}");
    let only = "--only */node0/n=1 --repetitions 1 --jobs 2";
    let (code, stdout, stderr) = told(&format!("experiment run {path} {only}"));
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("the workload scores in ops/s"), "{stderr}");
    let tables = stdout.matches("published").count();
    assert!(tables == 1 && stdout.contains("tbench, node0"), "{stdout}");
}
