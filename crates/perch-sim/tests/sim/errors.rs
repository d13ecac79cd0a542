// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios and workloads that the simulator refuses, and the words in which it refuses them.

use perch_policy::{Era, Policy};
use perch_sim::workload::{Workload, names};
use perch_sim::{Scenario, SimError};

use crate::common::{ERAS, machine, scenario, workload};

fn refused(spec: &str) -> String {
    match Workload::parse(spec, &machine("kunpeng920")) {
        Ok(_) => panic!("{spec} was taken"),
        Err(error) => error.to_string(),
    }
}

/// Specs of workloads, and words of the error that refuses each.
const REFUSED: &str = r#"
 | unknown workload "": this version has tbench
rt-app | unknown workload "rt-app": this version has tbench
schbench:workers=0 | workers=0: expected a whole number from 1 to 8388608
schbench:n=2,threads=3 | workers and threads and n mean the same: expected one of them
schbench:messengers=5000,workers=5000 | messengers=5000 with workers=5000 each make 25005000 threads: expected fewer than 16777216
schbench:pass_us=0 | pass_us=0: expected a whole number from 1 to 1000000
schbench-old:passes=5 | schbench-old has no key "passes"; its keys are messengers, workers, threads, n
hackbench:groups=0 | groups=0: expected a whole number from 1 to 8388608
hackbench:groups=1000,fds=10000 | groups=1000 and fds=10000 make 20000000 tasks: expected fewer than 16777216
hackbench:size=16065 | size=16065: expected a whole number from 1 to 16064
hackbench:loops=0 | loops=0: expected a whole number from 1
hackbench:tube=1 | hackbench has no key "tube"; its keys are groups, fds
vm:vcpus=2,inside= | unknown workload ""
vm:vcpus=0,inside=pipe | vcpus=0: expected a whole number from 1 to 256
vm:inside=pipe:pairs=2,hogs=4x4 | workload "pipe:pairs=2,hogs=4x4": hogs=4x4: expected a whole number from 0
vm:hogs=4,inside=pipe | hogs=4: expected how many groups and how many hogs in each, as in 4x4
vm:hogs=4x1025,inside=pipe | hogs=4x1025: expected how many groups
vm:shares=1,inside=pipe | shares=1: expected a whole number from 2 to 262144
vm:inside=vm:inside=pipe | a virtual machine in a virtual machine is not modelled
vm:inside=pipe:class=fifo:1 | inside=pipe:class=fifo:1: real-time tasks are not modelled in a guest
vm:inside=schbench:workers=2 | inside=schbench:workers=2: locks that belong to a CPU are not modelled in a guest
vm:vcpus=2,inside=pipe:where=cpu2 | where=cpu2: expected all, node0 to node0 or cpu0 to cpu1
httperf:calls=500,burst=99 | burst=99: expected a divisor of calls=500
volano:rooms=2,users=2,where=all,socket_ns=0 | socket_ns=0: expected a whole number from 1
tbench-net:queues=0 | queues=0: expected a whole number from 1 to 1024
trade:users=0 | users=0: expected a whole number from 1 to
Tbench:n=1 | unknown workload "Tbench"
tbench:n=0 | n=0: expected a whole number from 1 to 8388608
tbench:n=-1 | n=-1: expected a whole number from 1 to
tbench:n=1.5 | n=1.5: expected a whole number from 1 to
tbench:n=8388609 | n=8388609: expected a whole number from 1 to 8388608
tbench:n=99999999999999999999 | expected a whole number from 1 to
tbench:n= | n=: expected a whole number
tbench:n | "n" is no KEY=VALUE
tbench:m=1 | tbench has no key "m"; its keys are 
tbench:n=1,n=2 | key "n" is given twice
tcp_rr:where=node4 | where=node4: expected all, node0 to node3 or cpu0 to cpu127
udp_rr:where=node1-0 | where=node1-0: expected all
pipe:where=cpu128 | where=cpu128: expected all, node0 to node3 or cpu0 to cpu127
pipe:where=cpu | where=cpu: expected all
pipe:where= | where=: expected all
pipe:where=socket0 | where=socket0: expected all
pipe:where=cpu0-127-3 | where=cpu0-127-3: expected all
pipe:pairs=0 | pairs=0: expected a whole number from 1 to
sysbench:threads=0 | threads=0: expected a whole number from 1 to 16777215
sysbench:yields=0 | yields=0: expected a whole number from 1 to
sysbench:locks=0 | locks=0: expected a whole number from 1 to
sysbench:lock=8 | sysbench has no key "lock"; its keys are threads, locks, yields, where
runsleep:tasks=0 | tasks=0: expected a number from 1 to 16777216, N/cpu or N%
runsleep:tasks=0/cpu | tasks=0/cpu: expected a number from 1
runsleep:tasks=200000/cpu | tasks=200000/cpu: expected a number from 1
runsleep:tasks=18446744073709551615/cpu | expected a number from 1
runsleep:run_us=0 | run_us=0: expected a whole number from 1 to
runsleep:uclamp_min=1025 | uclamp_min=1025: expected a whole number from 0 to 1024
pipe:uclamp_max=-1 | uclamp_max=-1: expected a whole number from 0 to 1024
hackbench:uclamp_max= | uclamp_max=: expected a whole number from 0 to 1024
sysbench:uclamp_min=700,uclamp_max=699 | uclamp_min=700 is beyond uclamp_max=699: expected the least to be no more than
tbench:uclamp=3 | tbench has no key "uclamp"; its keys are 
runsleep:nice=20 | nice=20: expected a whole number from -20 to 19
"#;

#[test]
fn workloads_are_refused_by_name_key_and_value() {
    for row in REFUSED.lines().skip(1) {
        let (spec, words) = row.split_once(" | ").expect(row);
        let message = refused(spec);
        let start = format!("workload \"{spec}\": ");
        assert!(message.starts_with(&start) && message.contains(words), "{spec}: {message}");
    }
}

#[test]
fn every_workload_runs_by_its_name_alone() {
    let jacobsville = machine("jacobsville");
    for (name, help) in names() {
        assert!(!help.is_empty());
        // Those are named with a file, and have tests of their own.
        if ["recorded", "rtapp"].contains(&name) {
            continue;
        }
        let scenario = scenario(
            &jacobsville,
            ERAS[1],
            workload(&jacobsville, name),
            [
                20,
                match name {
                    "hackbench" => 2000,
                    "make" => 60_000,
                    "schbench-old" | "ffmpeg" => 200,
                    _ => 20,
                },
            ],
        );
        let outcome = scenario.run().expect("a scenario that runs");
        assert!(outcome.scores[0].value > 0.0, "{name}: {outcome:?}");
    }
}

#[test]
fn scenarios_out_of_range_are_refused() {
    let jacobsville = machine("jacobsville");
    let good = scenario(&jacobsville, ERAS[0], workload(&jacobsville, "pipe"), [1, 1]);
    let refused = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = good.clone();
        change(&mut scenario);
        scenario.run().expect_err("out of range").to_string()
    };
    assert_eq!(refused(&|s| s.hz = 0), "hz = 0: expected 1 to 10000 ticks a second");
    assert_eq!(refused(&|s| s.hz = 10_001), "hz = 10001: expected 1 to 10000 ticks a second");
    let hackbench = workload(&jacobsville, "hackbench:groups=1");
    assert_eq!(
        refused(&|s| s.workload = hackbench.clone()),
        "workload \"hackbench:groups=1\" has not begun after 0.002 s of simulated time: give it \
         more time to be measured (--measure), or less to do"
    );
    assert_eq!(
        refused(&|s| (s.workload, s.warmup_ns) = (hackbench.clone(), 100_000_000)),
        "workload \"hackbench:groups=1\" is not done after 0.001 s of simulated time: give it \
         more time to be measured (--measure), or less to do"
    );
    assert!(refused(&|s| s.measure_ns = 0).contains("measured time is 0"));
    assert!(refused(&|s| s.warmup_ns = u64::MAX).contains("exceed 100 years"));
    assert!(refused(&|s| s.measure_ns = u64::MAX / 2).contains("exceed 100 years"));
}

#[test]
fn what_the_era_has_not_is_refused() {
    let jacobsville = machine("jacobsville");
    let refused = |spec: &str, modes: &str| {
        let load = workload(&jacobsville, spec);
        let mut scenario = scenario(&jacobsville, Era::V3_4, load, [1, 1]);
        scenario.policy = Policy::new(Era::V3_4, modes.parse().expect(modes));
        match scenario.run() {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(refused("pipe", "steer=perch"), "");
    assert_eq!(
        refused("pipe", "cache=perch"),
        "cache=perch does nothing in era 3.4, of which steer alone is modelled: leave cache out, \
         or choose era 5.5 or a later one"
    );
    assert_eq!(
        refused("pipe:uclamp_max=512", "steer=off"),
        "workload \"pipe:uclamp_max=512\": era 3.4 has no uclamp: leave uclamp_min and uclamp_max \
         out, or choose era 5.3 or a later one"
    );
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space left"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let jacobsville = machine("jacobsville");
    let scenario = scenario(&jacobsville, ERAS[0], workload(&jacobsville, "pipe"), [1, 1]);
    let error = scenario.run_traced(&mut Full).expect_err("the trace cannot be written");
    assert!(matches!(error, SimError::Trace(_)) && error.to_string().contains("no space left"));
}
