// SPDX-License-Identifier: GPL-2.0-or-later
//! perch as a service: it says how it is, reads its configuration again while it runs, and holds no
//! right that it does not need.

use perch_lab::Cpus;
use perch_lab::guest::Status;

use crate::guest::{Lab, resolve, shell};
use crate::loaded::Perch;

const CONFIG: &str = "/etc/perch.toml";

/// CAP_PERFMON and CAP_BPF, as /proc shows capabilities.
const KEPT: &str = "000000c000000000";

/// The process id of `perch run`.
pub fn pid(lab: &Lab) -> String {
    let script = "for task in /proc/[0-9]*; do
            case $(tr '\\0' ' ' <$task/cmdline) in 'perch run'*) echo ${task#/proc/} ;; esac
        done 2>/dev/null";
    let pid = lab.text(script).trim().to_string();
    assert!(pid.parse::<u32>().is_ok(), "{pid}");
    pid
}

/// What an idle service has run by now, ns, twice, and the guest's clock around its end.
const IDLE: &str = "
    perch agent notified --watchdog 4 perch run >/tmp/said 2>&1 & service=$!
    until grep -q WATCHDOG /tmp/said; do sleep 0.1; kill -0 $service || exit; done
    perch=$(sed -n s/^PID=//p /tmp/said)
    ran() { cat /proc/$perch/schedstat; }
    now() { grep -m 1 'now at' /proc/timer_list; }
    sleep 2; ran; sleep 20; ran
    grep VmRSS /proc/$perch/status
    now; kill $perch
    while read state </sys/kernel/sched_ext/state && [ $state != disabled ]; do sleep 0.002; done
    now; wait $service
";

/// Each instruction takes 4 ns here, so this is what the daemon executes, in any guest.
#[test]
fn an_idle_service_executes_few_instructions() {
    let text = shell(&resolve("kunpeng920"), Cpus::AtMost(8), "7.2", IDLE);
    println!("{text}");
    let number = |line: &str, word: usize| -> u64 {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[word].parse().unwrap()
    };
    let lines: Vec<&str> = text.lines().collect();
    let [before, after, resident, from, to] = lines[..] else {
        panic!("{text}");
    };
    let ran = number(after, 0) - number(before, 0);
    let unloading = number(to, 2) - number(from, 2);
    println!(
        "{} instructions in 20 s, {} KiB, unloaded in {:.0} ms",
        ran / 4,
        number(resident, 1),
        unloading as f64 / 1e6
    );
    assert!(ran > 0 && ran < 80_000_000, "{ran} ns in 20 s, four an instruction");
}

#[test]
#[ignore = "loads perch twice, for --long"]
fn a_service_reads_its_configuration_again() {
    let lab = Lab::boot("7.2", 8);
    lab.put(CONFIG, "slice_us = 5000\n");
    let script = format!("exec perch agent notified --watchdog 4 perch run --config {CONFIG}");
    let perch = Perch::new(&lab, lab.start(&script));
    perch.says("READY=1\nSTATUS=scheduling 8 CPUs: cluster=perch");
    // Signs of life come while the timer does: at once, and each second.
    perch.says("WATCHDOG=1\nWATCHDOG=1\nWATCHDOG=1\n");
    let service = pid(&lab);
    let rights = lab.text(&format!("cat /proc/{service}/status"));
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let has = rights.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key == name).then_some(value.trim())
        });
        let expected = match name {
            "CapInh" | "CapAmb" => "0000000000000000",
            _ => KEPT,
        };
        assert_eq!(has, Some(expected), "{name}");
    }

    let hang_up = format!("kill -HUP {service}");
    let reread = |text: &str| {
        lab.put(CONFIG, text);
        lab.text(&hang_up);
    };
    lab.text(&hang_up);
    perch.says_often("/etc/perch.toml has not changed", 1);
    reread("slice_us = 50\n");
    perch.says_often("slice_us: 50: expected 100 to 1000000; perch goes on", 1);
    reread("processes = 65536\ngroups = 65536\nslice_us = 1\n");
    perch.says_often("/etc/perch.toml:3: slice_us: 1: expected", 1);
    assert_eq!(perch.report().restarts, 0);

    reread("modes = \"cluster=off\"\n[[band]]\ncomm = \"x*\"\npriority = 1\n");
    perch.says("RELOADING=1\nMONOTONIC_USEC=");
    perch.says("READY=1\nSTATUS=scheduling 8 CPUs: cluster=off");
    perch.says_often("/etc/perch.toml has changed: loading again", 1);
    perch.is_well();
    let report = perch.report();
    assert_eq!(report.restarts, 1);
    assert!(report.about.band.starts_with("comm=x*"), "{report:?}");

    lab.text(&format!("kill {service}"));
    perch.says("STOPPING=1\n");
    let (status, said) = perch.ended();
    assert_eq!(status, Status::Code(0), "{said}");
    lab.is_on_its_own();
    lab.is_well();
}

#[test]
#[ignore = "loads perch for one signal, for --long"]
fn a_terminal_that_goes_leaves_the_scheduler() {
    let lab = Lab::boot("7.2", 8);
    let perch = lab.load("");
    lab.text(&format!("kill -HUP {}", pid(&lab)));
    perch.says_often("nothing to read again without --config", 1);
    perch.unload();
}
