// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of perf and trace-cmd that perch imports.

use perch_fuzz::{Target, fuzz, refused};
use perch_import::{ImportError, Options, import, import_text};
use perch_workload::recorded::Script;

use crate::{folder, perfdata, read, strings, text, tree};

/// A script that was made ends, and its file says the same when it is read and written again.
/// Control characters in names do not get that far.
fn judged<T>(found: Result<(Script, T), ImportError>, input: &[u8]) -> Result<(), String> {
    let script = match found {
        Ok((script, _)) => script,
        Err(error) => return refused(&error.to_string(), "", input),
    };
    script.check().map_err(|why| format!("the script: {why}"))?;
    let mut written = Vec::new();
    script.write(&mut written).expect("memory takes it");
    let again = Script::read(&mut &written[..]);
    let again = again.map_err(|error| format!("what was written is refused: {error}"))?;
    let mut twice = Vec::new();
    again.write(&mut twice).expect("memory takes it");
    match written == twice {
        true => Ok(()),
        false => Err("what was written is another script".to_string()),
    }
}

/// What the kernel's own `trace` shows, with processes.
const KERNEL: &str = "# tracer: nop
#
# entries-in-buffer/entries-written: 6/8   #P:2
#
          <idle>-0     (-----) [000] d.h2.     3.000010: sched_waking: comm=a pid=11 prio=120 target_cpu=000
          <idle>-0     (-----) [000] d..2.     3.000020: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=11 next_prio=120
               a-11    (     11) [000] d..3.     3.000030: sched_waking: comm=b c pid=12 prio=98 target_cpu=001
          <idle>-0     (-----) [001] d..2.     3.000040: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b c next_pid=12 next_prio=98
               a-11    (     11) [000] d..2.     3.000050: sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
             b c-12    (     12) [001] d.s3.     3.000060: sched_process_fork: comm=b c pid=12 child_comm=b c child_pid=13
";
/// What `trace-cmd report` prints by default.
const SHORT: &str = "cpus=2
          <idle>-0     [000] d.h2.     3.000010: sched_waking:         a:11 [120] CPU:000
          <idle>-0     [000] d..2.     3.000020: sched_switch:         swapper/0:0 [120] R ==> a:11 [120]
               a-11    [000] d..3.     3.000030: sched_wakeup:         b c:12 [98] CPU:001
          <idle>-0     [001] d..2.     3.000040: sched_switch:         swapper/1:0 [120] R ==> b c:12 [98]
CPU:1 [LOST 3 EVENTS]
               a-11    [000] d..2.     3.000050: sched_switch:         a:11 [120] S ==> swapper/0:0 [120]
";

#[test]
fn trace_cmd() {
    let words = r#"
sched_switch:¦sched_waking:¦sched_wakeup:¦sched_wakeup_new:¦sched_process_fork:¦sched_process_exec:¦
prev_pid=¦next_pid=¦prev_state=¦prev_prio=¦comm=¦pid=¦child_pid=¦target_cpu=¦cpus=¦CPU:1 [¦
[001] d.h2. 3.000070: ¦( 12) [000] ..s1. ¦# tracer: nop\n¦
entries-in-buffer/entries-written: 9/12   #P:4¦a:11 [120] S ==> b:12 [98]¦EVENTS DROPPED]¦<idle>-0¦
-¦0x¦[¦]¦ ¦\n¦\0¦\u{1b}¦.¦:"#;
    let mut seeds = vec![read(&tree("crates/perch-import/tests/import/fixture.txt"))];
    seeds.extend(strings(&[KERNEL, SHORT]));
    text("trace_cmd", 5000, seeds, words, &|input, _| {
        judged(import_text(&mut &input[..], &Options::default()), input)
    });
}

#[test]
fn perf_data() {
    let target = Target {
        name: "perf_data",
        inputs: 3500,
        seeds: vec![perfdata::file(false, 6), perfdata::file(true, 6)],
        words: &[
            "PERFILE2",
            "2ELIFREP",
            "tracing",
            "\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n",
            "signed:",
            "size:",
            "offset:",
            "name: sched_switch\n",
            "ID: 301\n",
            "6.18.4",
        ],
        binary: true,
        seal: |_| {},
        check: &|input, path| judged(import(path, &Options::default()), input),
    };
    fuzz(&target, &folder());
}
