// SPDX-License-Identifier: GPL-2.0-only
//! A small experiment for tests: a table of statistics on each of two machines, and one whose row
//! is a workload.

/// The file.
pub(crate) const STATISTICS: &str = r#"name = "statistics"
title = "t"
source = "s"
machine = "juno"
era = "7.2"
hz = 250
published = "figures.csv"
repetitions = 20
warmup_ms = 5
measure_ms = 100

[[arm]]
name = "baseline"
modes = "cluster=off"

[[arm]]
name = "patched"
modes = "cluster=posted"

[[arm]]
name = "perch"
modes = "cluster=perch"

[[benchmark]]
name = "pairs"
unit = "MB/s"
statistics = ["mean", "std", "99th"]

[[benchmark.place]]
name = "juno"
workload = "tbench:n=2"

[[benchmark.place]]
name = "phone"
machine = "pixel3"
workload = "tbench:n=3"

[[benchmark.effort]]
places = ["phone"]
repetitions = 30

[[benchmark]]
name = "plain"
workload = "tbench:{row},where={where}"
unit = "MB/s"
places = ["all"]
rows = ["n=1"]

[[calibration]]
benchmarks = ["pairs"]
where = "juno"
row = "mean"
columns = ["baseline"]
why = "w"
"#;

/// Its figures.
pub(crate) const FIGURES: &str = "\
source,benchmark,where,unit,row,baseline,patched,printed_delta_pct,sd_baseline,sd_patched
s,pairs,juno,MB/s,mean,100,110,+10.0,,
s,pairs,juno,MB/s,std,10,5,-50.0,,
s,pairs,juno,MB/s,99th,120,115,-4.17,,
s,pairs,phone,MB/s,mean,200,210,+5.0,,
s,pairs,phone,MB/s,std,20,20,+0.0,,
s,pairs,phone,MB/s,99th,220,230,+4.55,,
s,plain,all,MB/s,n=1,50,60,+20.0,,
";
