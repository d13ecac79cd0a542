// SPDX-License-Identifier: GPL-2.0-or-later
//! A small experiment for tests: a table of statistics on each of two machines, and one whose row
//! is a workload.

use perch_sim::{Batch, Metrics, Outcome, Score};

/// Returns the result of a simulation whose only score has this value.
pub(crate) fn scored_by(value: f64) -> (Outcome, Vec<Batch>) {
    let score = Score { name: "s".to_string(), value, unit: "u", higher_is_better: true };
    let mut metrics = Metrics::default();
    metrics.wake_latency.record(1000);
    (Outcome { scores: vec![score], metrics }, Vec::new())
}

/// The experiment's file.
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

/// The experiment's published figures.
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

/// A table with several scores a row, and one of multiples of an unknown baseline.
pub(crate) const SCORES: &str = r#"name = "scores"
title = "t"
source = "s"
machine = "juno"
era = "7.2"
hz = 250
published = "figures.csv"
repetitions = 4
warmup_ms = 5
measure_ms = 200

[[arm]]
name = "baseline"
modes = "cluster=off"

[[arm]]
name = "patched"
modes = "cluster=posted"

[[benchmark]]
name = "several"
workload = "schbench:{row}"
places = ["all"]
rows = ["two", "n=3"]
keys = { two = "workers=2" }
printed = "fall"
scores = [
    { name = "wake_p50.0", unit = "us", within_rounded = 1 },
    { name = "rps20", unit = "req/s" },
    { name = "wake_p99.0", unit = "us" },
]

[[benchmark]]
name = "multiples"
workload = "schbench:{row}"
score = "wake_p99.0"
unit = "times"
relative = true
printed = "fall"
places = ["all"]
rows = ["n=2"]

[[calibration]]
benchmarks = ["several"]
where = "all"
row = "two:*"
columns = ["baseline"]
why = "w"
"#;

/// The published figures of [`SCORES`].
pub(crate) const SCORES_FIGURES: &str = "\
source,benchmark,where,unit,row,baseline,patched,printed_delta_pct,sd_baseline,sd_patched
s,several,all,us,two:wake_p50.0,10,9,10.0,,
s,several,all,us,two:wake_p99.0,20,25,-25.0,,
s,several,all,req/s,two:rps20,500,490,2.0,,
s,several,all,us,n=3:wake_p50.0,10,9,10.0,,
s,several,all,us,n=3:wake_p99.0,20,25,-25.0,,
s,several,all,req/s,n=3:rps20,750,735,2.0,,
s,multiples,all,times,n=2,1.00,,+9.0,6.5,4.7
";
