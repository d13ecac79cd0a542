// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of perf, trace-cmd and Perfetto that perch imports.

use perch_fuzz::{Target, fuzz, refused};
use perch_import::{ImportError, Options, import, import_text};
use perch_workload::recorded::Script;

use crate::{folder, perfdata, pftrace, read, scratch, strings, text, tracedat, tree};

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

#[test]
fn trace_dat() {
    let target = Target {
        name: "trace_dat",
        inputs: 5000,
        seeds: vec![
            perfdata::dat(false, None, 6),
            perfdata::dat(true, None, 30),
            perfdata::dat(true, Some(("none", <[u8]>::to_vec)), 6),
            perfdata::dat(false, Some(("zstd", tracedat::zstd)), 6),
        ],
        words: &[
            "options  ",
            "latency  ",
            "flyrecord",
            "[local]",
            "zlib",
            "commit",
            "timestamp",
            "data;\toffset:16;\tsize:240;",
            "\u{3}\0\u{c}\0\0\0",
            "\u{c}\0\u{8}\0\0\0",
            "6.1",
            "ID: 301\n",
        ],
        binary: true,
        seal: |_| {},
        check: &|input, path| judged(import(path, &Options::default()), input),
    };
    fuzz(&target, &folder());
}

/// A trace in words: what it has for its events as they are, and in the compact form.
const TRACE: &str = "
1{ 45{ 1{ 3:6.1.75-android14 } 8=4 } } 1{ 2{ 1{ 1=11 3:a } 2{ 1=12 2:b 3=11 } } } 1{ 60{ 1=1 } 7=5 }
1{ 1{ 1=0
  2{ 1=3000010 2=0 5=9 20{ 1:a 2=11 3=120 5=0 } }
  2{ 1=3000020 2=0 5=1 4{ 1:swapper/0 2=0 3=120 4=0 5:a 6=11 7=120 } }
  2{ 1=3000030 2=11 235{ 1=13 2:a 3=65536 } } 2{ 1=3000031 2=11 5=0 239{ 1:a 2=11 3:a 4=13 } }
  2{ 1=3000032 2=11 5=0 114{ 1:a 2=13 3=120 } } 2{ 1=3000033 2=11 237{ 2=11 } } 2{ 1=3000034 13{ 1=1 } }
  2{ 1=3000040 2=11 5=0 4{ 1:a 2=11 3=120 4=1 5:a 6=13 7=98 } }
  2{ 1=3000050 2=13 5=0 17{ 1:b 2=12 } } 2{ 1=3000060 2=13 5=0 4{ 1:a 2=13 3=98 4=32 6=0 7=120 } } } }
1{ 1{ 1=1 3=7 4{ 5:b 5:swapper 5:a
  1{ #3000015 #30 #40 } 2{ #0 #256 #1 } 3{ #12 #0 #12 } 4{ #120 #120 #120 } 6{ #0 #1 #0 }
  7{ #3000016 #20 } 8{ #11 #13 } 9{ #0 #1 } 10{ #120 #98 } 11{ #2 #2 } 12{ #0 #16 } } } }
";

/// The bytes of a trace, of which most changes no longer fit the messages' lengths.
#[test]
fn perfetto() {
    let target = Target {
        name: "perfetto",
        inputs: 5000,
        seeds: vec![pftrace::of_words(TRACE)],
        words: &["\n", "swapper", "6.1.75", "\u{1}", "\"\u{1}", "\u{2}"],
        binary: true,
        seal: |_| {},
        check: &|input, path| judged(import(path, &Options::default()), input),
    };
    fuzz(&target, &folder());
}

/// Traces whose messages are whole, and have anything in them.
#[test]
fn perfetto_messages() {
    let words = r#"
1{ 1{ 1=1 ¦2{ ¦ } ¦4{ ¦20{ ¦235{ ¦239{ ¦114{ ¦1=¦2=¦3=¦4=¦5:¦6=¦7=¦#¦=18446744073709551615 ¦
#4294967296 ¦=-1¦2{ 1=12 2:b 3=11 } ¦50{ } ¦45{ 1{ 3:4.13.0 } } ¦5=16 ¦:\u{1b}[31m ¦491{ } ¦4=256 ¦
0=1 ¦536870912=1 "#;
    let path = scratch("perfetto_messages").join("trace");
    text("perfetto_messages", 4000, strings(&[TRACE]), words, &|input, _| {
        let bytes = pftrace::of_words(&String::from_utf8_lossy(input));
        std::fs::write(&path, &bytes).map_err(|error| error.to_string())?;
        judged(import(&path, &Options::default()), &bytes)
    });
}
