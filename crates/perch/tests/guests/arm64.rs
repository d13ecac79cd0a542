// SPDX-License-Identifier: GPL-2.0-or-later
//! arm64 guests, booted: machines whose CPUs differ in capacity, and the perch that was built for
//! them, which is static and from another compiler than the one that runs this test.
//!
//! `./x test` builds that perch first; after a change, `./x cross` does.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use perch_lab::guest::{Command, perch_for};
use perch_lab::{Arch, Cpus};
use perch_machine::Machine;

use crate::guest::{Lab, PERCH, Place, deterministic, resolve, same_twice};
use crate::support;

/// The newest of perch's source files, and its time. Snapshots of tests are no part of perch.
fn newest(folder: &Path) -> (SystemTime, PathBuf) {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| !path.ends_with("snapshots"));
    let each = paths.map(|path| match path.is_dir() {
        true => newest(&path),
        false => (path.metadata().unwrap().modified().unwrap(), path),
    });
    let none = (SystemTime::UNIX_EPOCH, folder.to_path_buf());
    each.max().unwrap_or(none)
}

/// Refuses to test a perch that was built from other sources than these.
pub fn is_up_to_date() {
    let perch = perch_for(Arch::Aarch64, PERCH.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let built = perch.metadata().unwrap().modified().unwrap();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let root = crates.parent().unwrap();
    let mut folders = vec![root.join("policy")];
    for entry in std::fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path();
        folders.extend(["src", "bpf", "library"].map(|part| path.join(part)));
    }
    let folders = folders.iter().filter(|folder| folder.is_dir());
    let (changed, file) = folders.map(|folder| newest(folder)).max().unwrap();
    assert!(
        changed <= built,
        "{} is older than {}: build it with ./x cross",
        perch.display(),
        file.display()
    );
}

/// Levels and flags of CPU 0's domains, innermost first.
fn domains(lab: &Lab) -> Vec<(String, Vec<String>)> {
    let script = "mount -t debugfs none /sys/kernel/debug 2>/dev/null
        for d in /sys/kernel/debug/sched/domains/cpu0/*
        do echo $(cat $d/name $d/flags); done";
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_string).collect() };
    let lines = lab.text(script);
    let lines = lines.lines().map(words);
    lines.map(|mut words| (words.remove(0), words)).collect()
}

/// Demands that the kernel and perch find the machine in the guest that the topology promised.
fn looks_as_promised(lab: &Lab) {
    let promised = lab.machine();
    let found = lab.text("cat $(ls -v /sys/devices/system/cpu/cpu*/cpu_capacity)");
    let found: Vec<u32> = found.lines().map(|line| line.parse().unwrap()).collect();
    let capacities: Vec<u32> = promised.cpus.iter().map(|cpu| cpu.capacity).collect();
    assert_eq!(found, capacities, "{}", promised.name);

    let sizes = |machine: &Machine| {
        let hardware = &machine.hardware;
        let bytes = [hardware.l1d_bytes, hardware.l2_bytes, hardware.llc_bytes];
        (bytes, hardware.line_bytes)
    };
    let detected = crate::lab::looks_as_promised(lab);
    assert_eq!(sizes(&detected), sizes(promised), "{}", promised.name);
}

fn has(flags: &[String], flag: &str) -> bool {
    flags.iter().any(|found| found == flag)
}

/// juno has two LLCs of one kind of CPU each, below one domain of all capacities; perch schedules
/// there.
#[test]
#[ignore = "an arm64 guest and a build for it, for --long"]
fn juno_comes_up_as_promised_and_perch_schedules_it() {
    let lab = Lab::on(&resolve("juno"), "");
    looks_as_promised(&lab);
    let domains = domains(&lab);
    let names: Vec<&str> = domains.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["MC", "PKG"]);
    assert!(has(&domains[0].1, "SD_SHARE_LLC") && !has(&domains[0].1, "SD_ASYM_CPUCAPACITY"));
    assert!(has(&domains[1].1, "SD_ASYM_CPUCAPACITY_FULL") && !has(&domains[1].1, "SD_SHARE_LLC"));

    let run = "perch agent scheduled --set cluster=off -- hackbench -g 2 -l 100";
    let said = lab.text(run);
    assert!(said.contains("Time: "), "{said}");
    assert_eq!(lab.text("cat /sys/kernel/sched_ext/state"), "disabled\n");
    assert_eq!(lab.text("cat /sys/kernel/sched_ext/enable_seq"), "1\n");
    lab.is_well();
}

/// pixel3 has one LLC for both kinds of CPU; the policy decides there as it does natively.
#[test]
#[ignore = "an arm64 guest and a build for it, for --long"]
fn pixel3_comes_up_as_promised_and_perch_decides_the_same() {
    let lab = Lab::on(&resolve("pixel3"), "");
    looks_as_promised(&lab);
    let domains = domains(&lab);
    assert_eq!(domains.len(), 1);
    assert_eq!(domains[0].0, "MC");
    assert!(has(&domains[0].1, "SD_ASYM_CPUCAPACITY_FULL") && has(&domains[0].1, "SD_SHARE_LLC"));

    let decided = lab.text("perch self-test decide --seed 3 --count 5000");
    let number = |what: &str| -> u64 {
        let mut lines = decided.lines();
        let line = lines.find_map(|line| line.strip_prefix(what)?.strip_prefix(": "));
        line.and_then(|number| number.parse().ok()).expect(what)
    };
    assert!(number("wake-ups") >= 5_000, "{decided}");
    assert_eq!(number("mismatches"), 0, "{decided}");
    lab.is_well();
}

/// Machines with three kinds of CPU under one LLC, and with the phantom domains of older Android
/// kernels, come up.
#[test]
#[ignore = "two arm64 guests, like those of juno and pixel3, for --long"]
fn three_kinds_and_phantom_domains_come_up_as_promised() {
    let lab = Lab::on(&resolve("pixel4"), "");
    looks_as_promised(&lab);
    assert!(has(&domains(&lab)[0].1, "SD_ASYM_CPUCAPACITY_FULL"));
    drop(lab);

    let lab = Lab::on(&resolve("pixel3-phantom"), "");
    looks_as_promised(&lab);
    let names: Vec<String> = domains(&lab).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["MC", "PKG"]);
}

/// One machine has everything that a device tree can tell: threads, clusters, LLCs, nodes and
/// packages, CPUs numbered in no order, and capacities.
#[test]
#[ignore = "an arm64 guest, like those of juno and pixel3, for --long"]
fn an_irregular_machine_comes_up_as_promised() {
    let odd = "name = \"odd\"\n\
        [[core]]\ncpus = \"0,5\"\n\
        [[cluster]]\ncpus = \"0,2,5\"\n[[cluster]]\ncpus = \"1,6\"\n\
        [[llc]]\ncpus = \"0-2,5-6\"\n[[llc]]\ncpus = \"3-4\"\n[[llc]]\ncpus = \"7\"\n\
        [[node]]\ncpus = \"0-6\"\n[[node]]\ncpus = \"7\"\n\
        [[package]]\ncpus = \"0-2,5-6\"\n[[package]]\ncpus = \"3-4\"\n\
        [[package]]\ncpus = \"7\"\n\
        [[capacity]]\ncpus = \"3-4\"\nvalue = 100\n[[capacity]]\ncpus = \"7\"\nvalue = 512\n\
        [numa]\ndistance = [[10, 17], [17, 10]]\n";
    let odd = Machine::from_toml_str(odd, "odd").unwrap();
    let lab = Lab::on(&odd, "");
    assert_eq!(lab.machine().cpus, odd.cpus);
    looks_as_promised(&lab);
}

/// Deterministic guests of either architecture.
#[test]
#[ignore = "two deterministic guests each, which may differ on a busy host (docs/hardware.md), for --long"]
fn a_deterministic_guest_does_the_same_twice() {
    let _place = Place::take();
    for (machine, cpus) in [("kunpeng920", Cpus::AtMost(4)), ("juno", Cpus::All)] {
        let mut setup = deterministic(&resolve(machine), cpus);
        let script = "hackbench -g 1 -l 5 -p; cat /proc/uptime /proc/schedstat /proc/interrupts";
        setup.job = Some(Command::shell(script));
        let output = same_twice(&setup);
        assert!(output.contains("Time: "), "{output}");
    }
}

#[test]
#[ignore = "two arm64 guests, for --long"]
fn the_command_chooses_the_architecture_or_is_told() {
    let _place = Place::take();
    let run = |arguments: &[&str]| {
        let output = support::perch_with(&[&["lab", "run"], arguments].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let (out, err) = run(&["-m", "pixel4", "--cpus", "3", "--", "uname", "-m"]);
    assert_eq!(out, "aarch64\n", "{err}");
    assert!(err.contains("left out: 5 of pixel4's 8 CPUs: the guest has 3"), "{err}");
    let machine = ["-m", "kunpeng920", "--cpus", "2"];
    let (out, err) = run(&[&machine[..], &["--arch", "arm64", "--", "uname", "-m"]].concat());
    assert_eq!(out, "aarch64\n", "{err}");
    let host_s = std::env::current_exe().unwrap();
    let (_, err) = run(&["-m", "juno", "--", host_s.to_str().unwrap()]);
    assert!(err.contains("it is for x86_64 and the guest is aarch64"), "{err}");
}
