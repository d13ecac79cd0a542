// SPDX-License-Identifier: GPL-2.0-or-later
//! perch refuses a request that makes no sense with exit code 2, a sentence on stderr that names
//! the mistake, and nothing on stdout.

mod budget;

use std::path::Path;

use crate::support::{directory, file, refused, told};

/// A copy of the library's experiment with one text replaced by another.
fn experiment(test: &str, from: &str, to: &str) -> String {
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let figures = std::fs::read_to_string(given.join("cluster-scan.csv")).unwrap();
    file(test, "cluster-scan.csv", figures);
    let text = std::fs::read_to_string(given.join("cluster-scan.toml")).unwrap();
    assert!(text.contains(from), "the experiment no longer says `{from}`");
    file(test, "changed.toml", text.replacen(from, to, 1))
}

/// The line of `text` in the file at `path`, as errors name it.
fn at(path: &str, text: &str) -> String {
    let whole = std::fs::read_to_string(path).unwrap();
    let line = whole.lines().position(|line| line.contains(text)).unwrap();
    format!("changed.toml:{}", line + 1)
}

/// A comparison that lacks a workload.
pub const COMPARE: &str = "compare -m kunpeng920 --arm a:cluster=off";
const RUN: &str = "experiment run cluster-scan";
const EARLY: &str = "compare -m juno --era 3.4 --arm";
/// The lab reads arms, programs and gates before it fetches or boots anything. A kernel that is missing
/// would be the next refusal, and a cache that cannot be made the first.
const LAB: &str = "lab compare -m kunpeng920 --arm";
const NO_KERNEL: &str = "lab run -m kunpeng920 --kernel /no/such/kernel";

/// Lines that make no sense, and words of the refusal of each.
const REFUSED: &str = r#"
COMPARE -w tbnch:n=4 | unknown workload | tbnch | tbench, tbench-net
COMPARE -w tbench:n=0 | tbench:n=0
COMPARE -w tbench:n=1 --arm a:cluster=perch | two arms `a`
COMPARE -w tbench:n=1 --measure 5 | 250ms or 2s
COMPARE -w tbench:n=1 --measure 0s | at least 1
COMPARE -w tbench:n=1 --warmup 0ms | the measured time must be at least 1
COMPARE -w tbench:n=1 --effort full --measure 1s | --effort | cannot be used with | --measure
COMPARE -w tbench:n=1 --hz 7 | 100 to 1000
COMPARE -w tbench:n=1 --era 6.20 | unknown era "6.20": the last Linux 6 was 6.19
EARLY a:steer=perch,cache=posted -w pipe | --arm a:steer=perch,cache=posted: cache=posted does nothing in era 3.4 | choose era 5.5 or a later one
EARLY a:steer=perch -w pipe:uclamp_min=100 | era 3.4 has no uclamp: leave uclamp_min and | choose era 5.3 or a later one
compare -m juno -w tbench:n=1 --arm a | expected NAME:MECHANISM=MODE
compare -m juno -w tbench:n=1 --arm a: | names no mechanism
compare -m juno -w tbench:n=1 --arm :cluster=off | the name before `:` is empty
compare -m juno -w tbench:n=1 --arm a:magic=perch | unknown mechanism "magic": this version has cluster
compare -m juno -w tbench:n=1 --arm a:cluster=on | expected off, posted, upstream or perch
machine show kunpeng902 | kunpeng902 | did you mean kunpeng920?
experiment run | NAME
experiment run cluster | no experiment `cluster` | cluster-scan
RUN --format xml | xml | table, markdown, csv, json
RUN --jobs 0 | --jobs | at least 1
RUN --repetitions 0 | --repetitions | at least 1
RUN --only nothing | no cell | benchmark/where/row
RUN --arms magic | no arm `magic` | perch
record | --output
record -o /tmp/x --buffer 9g | --buffer | 64k to 1g
replay no-such-file | no-such-file | No such file
LAB stock:clusters=off -- true | comes after `with` | stock with clusters=off
LAB 'stock with clutser=off' -- true | `clutser=off` changes nothing | feature=NAME
LAB perch:clutser=perch -- true | clutser
LAB a= -- true | no scheduler after `a=`
LAB a=stock@ -- true | no kernel after `stock@` | `stock@7.2`
LAB 'a=stock with clusters=off@7.2' -- true | right behind the scheduler | `stock@7.2`
LAB new=stock@/no/such/bzImage -- true | arm new | there is no file /no/such/bzImage
LAB new=perch:cluster=perch@seven -- true | arm new: kernel seven | such as 7.2
LAB a=stock@7.2 --kernel 6.18 -- true | --kernel 6.18 | every arm has one
LAB stock --arm b=perch --decisions --untimed -- true | arm b | --decisions | leave the arm
LAB stock --arm b=perch --decisions -- true | --decisions | add --untimed
LAB stock --score rate -- true | --score | NAME/UNIT=WORDS
LAB stock --arm perch --fail-if far:time>2% -- true | no arm `far` | expected one of perch
LAB stock --arm perch --fail-if time>2% --repetitions 1 -- true | one repetition has no interval
LAB a=stock@/no/such/kernel -- nosuchprogram | there is no `nosuchprogram` on PATH
lab compare -m juno --arm stock -- true | juno | differ in capacity
NO_KERNEL -- nosuchprogram | there is no `nosuchprogram` on PATH
NO_KERNEL --with nosuchprogram -- true | there is no `nosuchprogram` on PATH
NO_KERNEL -- true | there is no file /no/such/kernel
"#;

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    for row in REFUSED.lines().skip(1) {
        let mut columns = row.split(" | ");
        let line = columns.next().expect(row).replace("COMPARE", COMPARE);
        let line = line.replace("RUN", RUN).replace("EARLY", EARLY).replace("LAB", LAB);
        let line = line.replace("NO_KERNEL", NO_KERNEL);
        refused(&line, &columns.collect::<Vec<_>>());
    }
    let text = file("kernels", "text", "text\n");
    refused(&format!("{LAB} new=stock@{text} -- true"), &["arm new", &text, "it is no kernel"]);
}

/// A pair that was not ready in time has nothing to say of the time that was to be measured.
#[test]
fn a_pair_that_begins_too_late() {
    let (code, stdout, stderr) = told("agent pair --by pipe --from 0 --to 1");
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("--warmup"), "{stderr}");
}

#[test]
fn a_machine_that_is_none_is_named_with_its_line() {
    let empty = file("no-cpus", "empty.toml", "name = \"empty\"\n");
    let compare = format!("compare -m {empty} -w tbench:n=1 --arm a:cluster=off");
    refused(&compare, &["empty.toml", "expected"]);
    refused(&format!("machine show {empty}"), &["empty.toml"]);
    let bad = file("bad-machine", "bad.toml", "name = \"bad\"\n[topology\n");
    refused(&format!("machine show {bad}"), &["bad.toml:2"]);
}

/// Changes of the library's experiment, and words of the refusal of each.
const CONTRADICTORY: &str = r#"
hz = 250 | hertz = 250 | unknown field `hertz`
hz = 250 | hz = 5000 | `hz`: 5000 ticks a second; expected 100 to 1000
"kunpeng920" | "kunpeng902" | did you mean kunpeng920?
era = "6.5" | era = "7.9" | unknown era "7.9": this version has 3.4 to 7.2
era = "6.5" | era = "3.4" | `arm.modes`: cluster=posted does nothing in era 3.4
"cluster=posted" | "cluster=post" | expected off, posted, upstream
name = "patched" | name = "better" | expected `baseline`, then `patched`
"tbench:{row} | "tbench:x{row} | `benchmark.workload`
unit = "MB/s" | unit = "GB/s" | was published in `MB/s`
rows = ["n=1", | rows = ["n=2", | tbench/node0/n=2 has no figures
repetitions =  | repetitions = 0 # | expected at least 1
"baseline", "patched"] | "base"] | expected `baseline` or `patched`
row = "n=128" | row = "n=127" | no cell tbench/node0/n=127
"n=4",  |  | tbench/node0/n=4 of
"n=4",  |  | must be simulated
"#;

#[test]
fn an_experiment_that_contradicts_itself_is_named_with_line_and_key() {
    for (number, row) in CONTRADICTORY.lines().skip(1).enumerate() {
        let [from, to, words] = row.split(" | ").collect::<Vec<_>>()[..] else { panic!("{row}") };
        let path = experiment(&format!("contradictory-{number}"), from, to);
        refused(&format!("experiment run {path}"), &["changed.toml:", words]);
    }
    let path = experiment("bad-toml", "hz = 250", "hz = = 250");
    refused(&format!("experiment run {path}"), &[&at(&path, "hz = =")]);
    let path = experiment("no-csv", "cluster-scan.csv", "gone.csv");
    let words = [&at(&path, "gone.csv"), "`published`", "cannot read", "gone.csv"];
    refused(&format!("experiment run {path}"), &words);
}

#[test]
fn what_is_no_recording() {
    let text = file("recording", "text", "1,2,3\n");
    refused(&format!("replay {text}"), &["recording/text", "not a recording of perch"]);
    // perch never writes over the file that it reads, whatever name the user gives it.
    let other = text.replace("/text", "/../recording/text");
    refused(&format!("replay {text} --list -o {other}"), &["--output", "the recording itself"]);
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "1,2,3\n");
    let list = format!("{text}.csv");
    refused(&format!("replay {text} --list -o {list}"), &["not a recording"]);
    assert!(!std::fs::exists(list).unwrap());
}

#[test]
fn recordings_that_cannot_be_imported() {
    let out = directory("import").join("out.workload").display().to_string();
    let text = file("import", "text.data", "no recording\n");
    refused(
        &format!("import {text} -o {out}"),
        &["text.data", "expected a file of perf sched record"],
    );
    refused(&format!("import /no/such/file -o {out}"), &["/no/such/file"]);
    refused(&format!("import {text} -o {out} -m no-such-machine"), &["no-such-machine"]);
    assert!(!Path::new(&out).exists());
    let cut = file("import", "cut.workload", "perch-workload 1\ntask 0 start=0 name=x\nc5\n");
    let compare = format!("compare -m juno -w recorded:{cut} --arm off:cluster=off");
    refused(&compare, &["cut.workload", "line 4", "cut off"]);
}
