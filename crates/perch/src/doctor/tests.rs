// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the words, of the marks and of the exit codes.

use std::fs;

use perch_plan::Settings;

use super::*;

/// The files of a kernel and of a machine of two CPUs on which perch could run, but for its types.
const SOUND: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.18.15\n"),
    ("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"),
    ("proc/meminfo", "MemAvailable:  1000000 kB\n"),
    ("proc/1/stat", "1 (init) S 0"),
    ("sys/kernel/sched_ext/state", "disabled\n"),
    ("sys/kernel/btf/vmlinux", "none"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
    ("sys/devices/system/cpu/cpu1/topology/core_id", "1\n"),
];

/// The checks of a tree of these files and those.
fn checks(more: &[(&str, &str)], set: &str) -> Checks {
    let root = tempfile::tempdir().unwrap();
    for (file, text) in [SOUND, more].concat() {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut settings = Settings::default();
    if !set.is_empty() {
        settings.set(set).unwrap();
    }
    Checks::of(&diagnose(root.path(), &settings))
}

#[track_caller]
fn is(checks: &Checks, name: &str, mark: Mark, words: &str) {
    let mut of = checks.checks.iter().filter(|check| check.name == name);
    let check = of.next().unwrap_or_else(|| panic!("no check {name}"));
    assert!(of.next().is_none(), "two checks {name}");
    assert_eq!(check.mark, mark, "{check:?}");
    let to_do = check.to_do.as_deref().unwrap_or_default();
    assert!(check.found.contains(words) || to_do.contains(words), "{check:?}");
}

/// A real-time task's line in /proc/PID/stat.
fn fifo(tid: u32, comm: &str, state: char) -> String {
    format!("{tid} ({comm}) {state} {}50 1 0\n", "0 ".repeat(36))
}

#[test]
fn a_sound_machine_has_no_note() {
    let checks = checks(&[], "");
    for check in &checks.checks {
        let unknown = ["functions", "task-groups"].contains(&check.name);
        let expected = if unknown { Mark::Unknown } else { Mark::Ok };
        assert_eq!(check.mark, expected, "{check:?}");
        assert!(!check.found.is_empty() && !check.found.contains('\n'), "{check:?}");
    }
    assert!(checks.can_run);
    assert!(checks.modes.as_deref() == Some("steer=perch,behind=perch,sched_idle=perch"));
    is(&checks, "functions", Mark::Unknown, "it is not BTF");
    is(&checks, "cluster", Mark::Ok, "off: no last-level cache");
    is(&checks, "steer", Mark::Ok, "perch: ");
    is(&checks, "machine", Mark::Ok, "2 CPUs, 2 cores, 1 last-level cache, no clusters, 1 node");
    let failure = checks.outcome().unwrap_err();
    assert_eq!(failure.code, 1, "{failure:?}");
    assert!(failure.message.ends_with(": functions, task-groups"), "{failure:?}");
}

#[test]
fn problems_end_with_3_and_are_named() {
    let checks = checks(
        &[
            ("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t0\n"),
            ("sys/kernel/sched_ext/state", "enabled\n"),
            ("sys/kernel/sched_ext/root/ops", "lavd\n"),
            ("sys/devices/system/cpu/online", "0,x\n"),
        ],
        "",
    );
    is(&checks, "rights", Mark::Problem, "container");
    is(&checks, "scheduler", Mark::Problem, "is loaded: lavd");
    is(&checks, "scheduler", Mark::Problem, "stop it first");
    is(&checks, "machine", Mark::Problem, "system/cpu/online");
    is(&checks, "machine", Mark::Problem, "`x` in `0,x`");
    is(&checks, "memory", Mark::Unknown, "without a machine");
    assert!(!checks.can_run && checks.modes.is_none());
    let failure = checks.outcome().unwrap_err();
    assert_eq!(failure.code, 3);
    assert_eq!(failure.message, "cannot run here: rights, scheduler, machine");
    let line = "problem  scheduler      another sched_ext scheduler is loaded: lavd\n";
    let to_do = "                        to do: stop it first (the kernel runs one at a time)\n";
    assert!(checks.text().contains(&format!("{line}{to_do}")), "{}", checks.text());
}

#[test]
fn a_user_s_rights_are_a_note() {
    let checks = checks(&[("proc/self/status", "Uid:\t1\t1\t1\t1\nCapEff:\t0\n")], "");
    is(&checks, "rights", Mark::Note, "sudo perch run");
    assert!(checks.can_run);
}

#[test]
fn notes_tell_what_would_no_longer_hold() {
    let group = |name: &str, file: &str| format!("sys/fs/cgroup/{name}/{file}");
    let mut files = vec![("sys/fs/cgroup/cgroup.controllers".to_string(), "cpu\n".to_string())];
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        files.push((group(name, "cpu.max"), "50000 100000\n".to_string()));
    }
    files.push((group("a", "cpu.idle"), "1\n".to_string()));
    files.push((group("a", "cpuset.cpus.partition"), "isolated\n".to_string()));
    files.push(("sys/devices/system/cpu/isolated".to_string(), "1\n".to_string()));
    files.push(("sys/devices/cpu_atom/cpus".to_string(), "1\n".to_string()));
    for (tid, comm, state) in [(5, "sleeps", 'S'), (6, "hog\n\u{1b}[31m", 'R')] {
        files.push((format!("proc/{tid}/stat"), fifo(tid, comm, state)));
        files.push((format!("proc/{tid}/task/{tid}/stat"), fifo(tid, comm, state)));
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(file, text)| (&file[..], &text[..])).collect();
    let checks = checks(&files, "");
    is(&checks, "cpu-limits", Mark::Note, "7 cgroups with cpu.max");
    is(&checks, "cpu-limits", Mark::Note, "/a (50 % of a CPU), /b");
    is(&checks, "cpu-limits", Mark::Note, "and 2 more");
    is(&checks, "idle-groups", Mark::Note, "/a");
    is(&checks, "isolated-cpus", Mark::Note, "isolated: CPU 1; isolated partitions: /a;");
    is(&checks, "capacities", Mark::Note, "slower cores: CPU 1;");
    is(
        &checks,
        "real-time",
        Mark::Note,
        r"hog\n\u{1b}[31m (6, fifo 50, running), sleeps (5, fifo 50)",
    );
    is(&checks, "real-time", Mark::Note, "before Linux 7.0");
    assert!(checks.can_run);
}

/// A large core and a small one, with more files.
fn hybrid(more: &[(&str, &str)]) -> Checks {
    let kinds = [("sys/devices/cpu_core/cpus", "0\n"), ("sys/devices/cpu_atom/cpus", "1\n")];
    checks(&[&kinds, more].concat(), "")
}

#[test]
fn capacities_are_told_with_their_source() {
    let cpu = |file: &str| {
        let name = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/{file}");
        [name(0), name(1)]
    };
    let [large, small] = cpu("acpi_cppc/highest_perf");
    let [fast, slow] = cpu("cpufreq/cpuinfo_max_freq");
    let frequencies = [(&fast[..], "4000000\n"), (&slow[..], "3000000\n")];

    let cppc = hybrid(&[&frequencies[..], &[(&large, "66\n"), (&small, "33\n")]].concat());
    is(
        &cppc,
        "capacities",
        Mark::Ok,
        "1 CPU of 1024, 1 CPU of 512; capacities are the largest acpi_cppc/highest_perf of each kind of \
         core: cpu_core 66, cpu_atom 33",
    );
    is(&cppc, "capacity", Mark::Ok, "perch: ");
    let words = "1 CPU of 1024, 1 CPU of 768; cpu/cpu0/acpi_cppc/highest_perf is 255, which firmware \
                 writes where it does not tell; capacities are the largest cpufreq/cpuinfo_max_freq";
    let firmware = [(&large[..], "255\n"), (&small[..], "255\n")];
    let frequency = hybrid(&[&frequencies[..], &firmware].concat());
    is(&frequency, "capacities", Mark::Note, words);
    is(&frequency, "capacities", Mark::Note, "--machine my.toml");
    let none = hybrid(&[]);
    is(
        &none,
        "capacities",
        Mark::Note,
        "slower cores: CPU 1; cpu/cpu0/acpi_cppc/highest_perf is missing; \
         cpu/cpu0/cpufreq/cpuinfo_max_freq is missing; perch takes all CPUs for alike",
    );
    let ranks = [(&large[..], "216\n"), (&small[..], "166\n")];
    let words =
        "all CPUs have the same capacity; acpi_cppc/highest_perf ranks cores, from 166 to 216";
    let untold = checks(&ranks, "");
    is(&untold, "capacities", Mark::Ok, &format!("{words}; no file that"));
    let switch = [("proc/sys/kernel/sched_itmt_enabled", "1\n")];
    let preferred = checks(&[&ranks[..], &switch].concat(), "");
    is(&preferred, "capacities", Mark::Ok, &format!("{words}, and the kernel prefers the higher"));
    let [own, other] = cpu("cpu_capacity");
    let kernel = hybrid(&[(&own, "1024\n"), (&other, "600\n")]);
    is(
        &kernel,
        "capacities",
        Mark::Ok,
        "1 CPU of 600; capacities are the kernel's own (cpu_capacity)",
    );
    let bad = hybrid(&[(&large, "fast\n")]);
    is(&bad, "machine", Mark::Problem, "acpi_cppc/highest_perf`: `fast` is not a number");
}

#[test]
fn a_configuration_that_does_nothing_is_a_note_and_one_too_large_a_problem() {
    let small = checks(&[("proc/meminfo", "MemAvailable: 1 kB\n")], "cluster=perch,processes=7");
    is(&small, "cluster", Mark::Note, "off: no last-level cache");
    is(&small, "configuration", Mark::Note, "cluster stays off");
    is(&small, "configuration", Mark::Note, "processes does nothing");
    is(&small, "memory", Mark::Note, "only 0 MiB are free");

    let cpus: Vec<String> =
        (2..1100).map(|cpu| format!("sys/devices/system/cpu/cpu{cpu}/topology/core_id")).collect();
    let mut files: Vec<(&str, &str)> = cpus.iter().map(|file| (&file[..], "0")).collect();
    files.push(("sys/devices/system/cpu/online", "0-1099"));
    let large = checks(&files, "groups=65536");
    is(&large, "configuration", Mark::Problem, "groups: 65536 of them take");
    let failure = large.outcome().unwrap_err();
    assert_eq!(failure.code, 2);
    assert!(failure.message.starts_with("groups: 65536"), "{failure:?}");
}

#[test]
fn modes_are_those_asked_for() {
    let checks = checks(&[], "steer=off,overload=perch");
    let modes = checks.modes.as_ref().unwrap();
    assert!(!modes.contains("overload") && !modes.contains("steer"), "{modes}");
    assert!(modes.contains("sched_idle=perch"), "{modes}");
    is(&checks, "overload", Mark::Note, "");
}

#[test]
fn a_kernel_before_6_16_is_a_note_and_one_without_sched_ext_a_problem() {
    let old = checks(&[("proc/sys/kernel/osrelease", "6.12.9\n")], "");
    is(&old, "kernel", Mark::Note, "before 6.16");
    let root = tempfile::tempdir().unwrap();
    let none = Checks::of(&diagnose(root.path(), &Settings::default()));
    is(&none, "kernel", Mark::Problem, "has no sched_ext");
    is(&none, "btf", Mark::Problem, "has no BTF");
    is(&none, "machine", Mark::Problem, "cpu0");
    is(&none, "processes", Mark::Unknown, "sudo perch doctor");
    assert_eq!(none.outcome().unwrap_err().code, 3);
}

#[test]
fn a_hostile_version_is_cut() {
    let long = "x".repeat(100_000);
    let checks = checks(&[("proc/sys/kernel/osrelease", &long)], "");
    assert!(checks.text().len() < 20_000);
    assert!(checks.kernel.ends_with('…'));
}
