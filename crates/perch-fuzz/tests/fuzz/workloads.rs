// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads: their strings, the files of rt-app and those of `perch import`; each that is read is
//! simulated for a millisecond.

use std::sync::Arc;

use perch_fuzz::{Target, fuzz, refused, refused_at};
use perch_machine::Machine;
use perch_sim::Scenario;
use perch_workload::Workload;

use crate::{budget, files, folder, strings, text, tree};

/// A small machine of unequal CPUs.
struct Juno(Arc<Machine>);

impl Juno {
    fn new() -> Juno {
        Juno(Arc::new(perch_machine::library::load("juno").unwrap()))
    }

    /// Reads a workload and runs it for a moment.
    fn run(&self, spec: &str, refuse: impl Fn(&str) -> Result<(), String>) -> Result<(), String> {
        let workload = match Workload::parse_within(spec, &self.0, budget()) {
            Ok(workload) => workload,
            Err(error) => return refuse(&error.to_string()),
        };
        match Scenario::plain(self.0.clone(), workload, 1_000_000).run() {
            Ok(_) => Ok(()),
            Err(error) => refused(&error.to_string(), "", spec.as_bytes()),
        }
    }
}

#[test]
fn workload() {
    let mut seeds = strings(&[
        "pipe:pairs=2",
        "tbench:n=3,where=node0",
        "tbench-net:n=2,latency_us=50,interrupt_ns=900,queues=2",
        "httperf:at_once=4,calls=5,burst=2,think_us=10,serve_us=20",
        "trade:users=9,think_us=100,serve_us=30,queries=2,query_us=9",
        "volano:rooms=1,users=3,socket_ns=900,parse_ns=400,notify_ns=300",
        "vm:vcpus=2,hogs=2x1,shares=512,guest_hz=250,inside=pipe:pairs=1",
        "tcp_rr:n=2,where=all",
        "tcp_stream:n=2,size=9000,where=all",
        "hackbench:groups=1,fds=3,loops=9,size=100,pipe=yes",
        "make:files=9,jobs=2,compile_ms=9,io_us=9",
        "sysbench:threads=4,locks=2,yields=9",
        "schbench:messengers=1,workers=2,sleep_us=9,passes=2,kib=16",
        "schbench-old:messengers=1,workers=2,think_us=9,sleep_us=9",
        "ffmpeg:instances=1,cpus_per_instance=3,decoders=1,filters=1,encoders=1,rows=4,lag=1",
        "runsleep:tasks=2/cpu,run_us=9,sleep_us=9,nice=-3,uclamp_min=9,uclamp_max=800",
        "runsleep:tasks=3,class=fifo:9",
    ]);
    seeds.extend(strings(&["udp_rr", "pipe", "vm", "ffmpeg", "recorded", "rtapp"]));
    let words = r#"
where=¦node0¦0-5¦all¦llc0¦/cpu¦class=¦rr:1¦fifo:99¦fair¦inside=¦vm:¦uclamp_min=¦hogs=4x4¦shares=¦=¦
,¦:¦n=¦spread=¦\0¦\u{1b}[0m¦nice=¦priority=¦kernel_us=¦kworker_ms="#;
    let juno = Juno::new();
    text("workload", 5000, seeds, words, &|input, _| {
        let spec = String::from_utf8_lossy(input);
        // A workload of a file is tried below; here it would be a file of anybody's.
        let spec = spec.replace("recorded:", "recorded;").replace("rtapp:", "rtapp;");
        juno.run(&spec, |said| refused(said, &spec, input))
    });
}

#[test]
fn rt_app() {
    let words = r#"
"tasks":¦"global":¦"phases":¦"loop":¦"run":¦"runtime":¦"sleep":¦"timer":¦
{"ref":"tick","period":1000}¦"lock":¦"unlock":¦"wait":¦"signal":¦"broad":¦"sync":¦"barrier":¦
"suspend":¦"resume":¦"fork":¦"a"¦"sem_post":¦"sem_wait":¦"SCHED_DEADLINE"¦"dl-runtime":¦"/x"¦1.5¦
"instance":¦"priority":¦"policy":¦"SCHED_FIFO"¦"cpus":¦"nodes_membind":¦"taskgroup":¦"mem":¦
"iorun":¦"calibration":¦"CPU0"¦"delay":¦"util_min":¦"mode":¦{¦}¦[¦]¦:¦,¦"¦\u0000¦\ud800¦/*¦*/¦null¦
true¦{{{{¦[[[[[[[[¦\u{1b}¦\0"#;
    let seeds = files("crates/perch-fuzz/seeds/rt_app", ".json");
    let juno = Juno::new();
    text("rt_app", 4000, seeds, words, &|input, path| {
        let path = path.display().to_string();
        juno.run(&format!("rtapp:{path}"), |said| refused(said, &path, input))
    });
}

#[test]
fn recorded() {
    let mut seeds = files("crates/perch-fuzz/seeds/recorded", ".workload");
    seeds.push(crate::read(&tree("crates/perch-import/tests/import/fixture.workload")));
    let words = r#"
task 3 ¦span ¦process=¦nice=¦start=forked¦class=fifo:9¦class=fair¦name=¦c1¦w0¦a1¦s1¦n1¦f2¦e¦
c3600000000000¦#¦ ¦\n¦\0¦\u{1b}¦-¦="#;
    let list = crate::words(words);
    let juno = Juno::new();
    let target = Target {
        name: "recorded",
        inputs: 3500,
        seeds,
        words: &list.iter().map(String::as_str).collect::<Vec<_>>(),
        binary: false,
        seal: counted,
        check: &|input, path| {
            let path = path.display().to_string();
            juno.run(&format!("recorded:{path}"), |said| refused_at(said, &path, input))
        },
    };
    fuzz(&target, &folder());
}

/// Mends the counts at the end of a recorded workload, where it has some.
fn counted(input: &mut Vec<u8>) {
    let Some(end) = input.windows(5).rposition(|words| words == b"\nend ") else {
        return;
    };
    let (mut tasks, mut steps) = (0, 0);
    for line in input[..=end].split(|byte| *byte == b'\n').skip(1) {
        let words = || line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        match words().next() {
            Some(b"task") => tasks += 1,
            None | Some(b"span" | b"#") => {}
            Some(_) => steps += words().count(),
        }
    }
    input.truncate(end + 1);
    input.extend(format!("end tasks={tasks} steps={steps}\n").bytes());
}
