// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of where capacities come from: x86 machines with unlike cores, and with cores of which some are
//! preferred.

use crate::common::Tree;
use perch_machine::{CapacitySource, Host, Machine, detect};

/// Eight cores of two threads, and eight of one thread in two clusters of four that share an L2: what
/// an i9-12900K has.
fn alder_lake() -> Tree {
    let tree = Tree::new();
    tree.write("cpu/online", "0-23");
    tree.write("cpu/present", "0-23");
    tree.write_at("sys/devices/cpu_core/cpus", "0-15");
    tree.write_at("sys/devices/cpu_atom/cpus", "16-23");
    for cpu in 0..24 {
        let (core, l2) = match cpu {
            0..16 => {
                let core = format!("{}-{}", cpu & !1, cpu | 1);
                (core.clone(), core)
            }
            16..20 => (cpu.to_string(), "16-19".to_string()),
            _ => (cpu.to_string(), "20-23".to_string()),
        };
        let file = |name: &str| format!("cpu/cpu{cpu}/{name}");
        tree.write(&file("topology/physical_package_id"), 0);
        tree.write(&file("topology/core_cpus_list"), &core);
        tree.write(&file("topology/cluster_id"), if cpu < 16 { cpu & !1 } else { cpu & !3 });
        tree.write(&file("topology/cluster_cpus_list"), &l2);
        for (index, level, size, sharers) in
            [(0, 1, "48K", core.as_str()), (2, 2, "1280K", l2.as_str()), (3, 3, "30720K", "0-23")]
        {
            let file = |name: &str| file(&format!("cache/index{index}/{name}"));
            tree.write(&file("level"), level);
            tree.write(&file("type"), if level == 1 { "Data" } else { "Unified" });
            tree.write(&file("size"), size);
            tree.write(&file("shared_cpu_list"), sharers);
        }
    }
    tree
}

/// CPUs with CPPC: two preferred cores of 68, the other large ones of 66, the small ones of 39.
fn cppc(tree: &Tree) {
    tree.cpus(0..24, "acpi_cppc/highest_perf", |cpu| match cpu {
        8..12 => 68,
        0..16 => 66,
        _ => 39,
    });
}

/// 5.2 GHz for the preferred cores, 5.1 and 3.9 for the others.
fn frequencies(tree: &Tree) {
    tree.cpus(0..24, "cpufreq/cpuinfo_max_freq", |cpu| match cpu {
        8..12 => 5_200_000,
        0..16 => 5_100_000,
        _ => 3_900_000,
    });
}

fn found(tree: &Tree) -> Host {
    let host = Host::detect(tree.root()).unwrap();
    for note in &host.capacity_notes {
        assert!(host.machine.sources.contains(note), "{:?}", host.machine.sources);
    }
    // The file that detect writes says the same.
    let again = Machine::from_toml_str(&host.machine.to_toml(), "again").unwrap();
    assert_eq!(again, host.machine);
    host
}

/// Checks that the large cores have 1024, the small ones `small`, and returns the notes.
#[track_caller]
fn hybrid(host: &Host, source: CapacitySource, small: u32) -> String {
    assert_eq!(host.capacity_source, source, "{:?}", host.capacity_notes);
    for (cpu, is) in host.machine.cpus.iter().enumerate() {
        assert_eq!(is.capacity, if cpu < 16 { 1024 } else { small }, "CPU {cpu}");
    }
    host.capacity_notes.join("; ")
}

fn refusal(tree: &Tree) -> String {
    let error = detect(tree.root()).expect_err("the tree is wrong");
    error.to_string()
}

#[test]
fn hybrid_capacities_are_the_best_level_of_each_kind() {
    let tree = alder_lake();
    cppc(&tree);
    frequencies(&tree);
    let host = found(&tree);
    // 39 of 68, as intel_pstate has it.
    let notes = hybrid(&host, CapacitySource::Cppc, 587);
    assert_eq!(
        notes,
        "capacities are the largest acpi_cppc/highest_perf of each kind of core: cpu_core 68, cpu_atom 39"
    );
    let machine = &host.machine;
    assert_eq!((machine.cores(), machine.clusters(), machine.llcs()), (16, 2, 1));
    // The costs are a large core's.
    assert_eq!(machine.hardware.frequency_mhz, 5100);
    let plain = host.with_kernel_capacities();
    assert!(!plain.machine.is_asymmetric());
    assert_eq!(plain.machine.sources.len(), 1);
}

#[test]
fn hybrid_without_cppc_has_the_ratio_of_frequencies() {
    let tree = alder_lake();
    frequencies(&tree);
    let notes = hybrid(&found(&tree), CapacitySource::Frequency, 768);
    assert!(notes.starts_with("cpu/cpu0/acpi_cppc/highest_perf is missing; "), "{notes}");
    assert!(notes.contains("cpu_core 5200 MHz, cpu_atom 3900 MHz; "), "{notes}");
    assert!(notes.ends_with("differ more than this"), "{notes}");
    // The link to the policy is missing in some copies.
    for cpu in 0..24 {
        tree.remove(&format!("cpu/cpu{cpu}/cpufreq"));
        let khz = if cpu < 16 { 5_200_000 } else { 2_600_000 };
        tree.write(&format!("cpu/cpufreq/policy{cpu}/cpuinfo_max_freq"), khz);
    }
    hybrid(&found(&tree), CapacitySource::Frequency, 512);
}

/// Kernels without a source of capacities for x86 show 1024 everywhere; one that has it is believed.
#[test]
fn cpu_capacity_goes_first_where_it_differs() {
    let tree = alder_lake();
    cppc(&tree);
    tree.cpus(0..24, "cpu_capacity", |_| 1024);
    hybrid(&found(&tree), CapacitySource::Cppc, 587);
    tree.cpus(16..24, "cpu_capacity", |_| 600);
    let notes = hybrid(&found(&tree), CapacitySource::Kernel, 600);
    assert!(notes.contains("kernel's own (cpu_capacity)"), "{notes}");
    let kept = found(&tree).with_kernel_capacities();
    hybrid(&kept, CapacitySource::Kernel, 600);
}

/// Twelve alike cores with levels that a real machine shows (docs/machines.md).
fn ranked() -> Tree {
    let tree = Tree::of(&Machine::regular("ranked", 1, 1, 2, 0, 6, 2).unwrap());
    let levels = [216, 216, 211, 206, 201, 196, 191, 186, 181, 171, 166, 176];
    for cpu in 0..24 {
        tree.remove(&format!("cpu/cpu{cpu}/cpu_capacity"));
        let level = levels[cpu / 2];
        tree.write(&format!("cpu/cpu{cpu}/acpi_cppc/highest_perf"), level);
        tree.write(&format!("cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"), level * 25_000);
    }
    tree
}

/// The rankings of the first CPUs of cores 0, 1, 2 and 11, and the note.
fn rankings(tree: &Tree) -> ([u32; 4], String) {
    let host = found(tree);
    assert_eq!(host.capacity_source, CapacitySource::Alike);
    assert!(!host.machine.is_asymmetric());
    assert!(host.capacity_notes.is_empty());
    let note = host.ranking_note.unwrap_or_default();
    assert!(note.is_empty() || host.machine.sources.contains(&note));
    let of = |cpu: usize| host.machine.cpus[cpu].ranking;
    let all = [of(0), of(2), of(4), of(22)];
    assert_eq!(host.machine.has_preferred_cores(), all != [0; 4]);
    (all, note)
}

const NONE: [u32; 4] = [0; 4];

#[test]
fn preferred_cores_rank_where_the_kernel_ranks_them() {
    let tree = ranked();
    let levels = "acpi_cppc/highest_perf ranks cores, from 166 to 216";
    let (found, note) = rankings(&tree);
    assert_eq!(found, NONE);
    assert_eq!(
        note,
        format!(
            "{levels}; no file that can be read says that the kernel prefers any, or (sys/devices/cpu_core, \
             cpu_atom, cpu_lowpower) that they are of several kinds"
        )
    );
    // The switch of 6.13 and before, and that of newer kernels.
    for (file, on, off) in [
        ("proc/sys/kernel/sched_itmt_enabled", "1", "0"),
        ("sys/kernel/debug/x86/sched_itmt_enabled", "Y", "N"),
    ] {
        let tree = ranked();
        tree.write_at(file, on);
        let (found, note) = rankings(&tree);
        assert_eq!(found, [216, 216, 211, 176]);
        assert_eq!(note, format!("{levels}, and the kernel prefers the higher"));
        tree.write_at(file, off);
        let (found, note) = rankings(&tree);
        assert_eq!(found, NONE);
        let off = "sched_itmt_enabled is off, so the kernel prefers none";
        assert_eq!(note, format!("{levels}; {off}"));
    }
    // Where all have the same there is nothing to tell.
    let tree = ranked();
    tree.cpus(0..24, "acpi_cppc/highest_perf", |_| 255);
    assert_eq!(rankings(&tree), (NONE, String::new()));
    // Nor where firmware has no levels for some, which says 255.
    tree.write("cpu/cpu2/acpi_cppc/highest_perf", 199);
    tree.write("cpu/cpu3/acpi_cppc/highest_perf", 200);
    tree.write_at("proc/sys/kernel/sched_itmt_enabled", "1");
    let (found, note) = rankings(&tree);
    assert_eq!(found, NONE);
    assert!(note.contains("; cpu/cpu0/acpi_cppc/highest_perf is 255, which firmware"), "{note}");
}

#[test]
fn amd_ranks_its_preferred_cores_in_a_file_of_its_own() {
    let tree = ranked();
    tree.cpus(0..24, "cpufreq/amd_pstate_prefcore_ranking", |cpu| if cpu < 4 { 255 } else { 231 });
    tree.write("cpu/amd_pstate/prefcore", "disabled");
    assert_eq!(rankings(&tree).0, NONE);
    tree.write("cpu/amd_pstate/prefcore", "enabled");
    let (found, note) = rankings(&tree);
    assert_eq!(found, [255, 255, 231, 231]);
    assert_eq!(
        note,
        "cpufreq/amd_pstate_prefcore_ranking ranks cores, from 231 to 255, and the kernel prefers \
         the higher"
    );
    tree.write_at("sys/kernel/debug/x86/sched_itmt_enabled", "N");
    assert_eq!(rankings(&tree).0, NONE);
    tree.write_at("sys/kernel/debug/x86/sched_itmt_enabled", "Y");
    tree.remove("cpu/cpu23/cpufreq/amd_pstate_prefcore_ranking");
    let (found, note) = rankings(&tree);
    assert_eq!(found, NONE);
    assert!(note.contains("; cpu/cpu23/cpufreq/amd_pstate_prefcore_ranking is missing"), "{note}");
    tree.write("cpu/cpu23/cpufreq/amd_pstate_prefcore_ranking", "high");
    assert!(refusal(&tree).contains("`high` is not a number"));
}

/// On a hybrid whose kernel knows no capacities, the preferred cores of a kind have the capacity of the
/// others, and rank above them.
#[test]
fn a_hybrid_has_preferred_cores_too() {
    let tree = alder_lake();
    cppc(&tree);
    tree.write_at("sys/kernel/debug/x86/sched_itmt_enabled", "Y");
    let host = found(&tree);
    hybrid(&host, CapacitySource::Cppc, 587);
    let of = |cpu: usize| host.machine.cpus[cpu].ranking;
    assert_eq!([of(0), of(8), of(16)], [66, 68, 39]);
}

/// perf counts the two low-power cores of a Meteor Lake among `cpu_atom`; other processors have a
/// folder for them.
#[test]
fn low_power_cores_are_a_kind_of_their_own() {
    let tree = alder_lake();
    cppc(&tree);
    tree.cpus([22, 23], "acpi_cppc/highest_perf", |_| 25);
    let capacities = |host: &Host| -> Vec<u32> {
        let cpus = host.machine.cpus.iter();
        cpus.skip(15).map(|cpu| cpu.capacity).collect()
    };
    let expected = [1024, 587, 587, 587, 587, 587, 587, 376, 376];
    let host = found(&tree);
    assert_eq!(capacities(&host), expected);
    let notes = host.capacity_notes.join("; ");
    assert!(notes.ends_with("cpu_core 68, cpu_atom 39 and 25"), "{notes}");
    tree.write_at("sys/devices/cpu_atom/cpus", "16-21");
    tree.write_at("sys/devices/cpu_lowpower/cpus", "22-23");
    let host = found(&tree);
    assert_eq!(capacities(&host), expected);
    let notes = host.capacity_notes.join("; ");
    assert!(notes.ends_with("cpu_atom 39, cpu_lowpower 25"), "{notes}");
}

#[test]
fn levels_that_cannot_be_true_are_named_and_left_out() {
    let tree = alder_lake();
    frequencies(&tree);
    let file = |cpu: u32| format!("cpu/cpu{cpu}/acpi_cppc/highest_perf");
    for (cpu, text, words) in [
        (0, "255", "cpu/cpu0/acpi_cppc/highest_perf is 255, which firmware writes"),
        (5, "0", "cpu/cpu5/acpi_cppc/highest_perf is 0, expected 1 to 254"),
        (23, "-7", "cpu/cpu23/acpi_cppc/highest_perf is -7, expected"),
        (16, "3400", "cpu/cpu16/acpi_cppc/highest_perf is 3400, expected"),
        (20, "70", "acpi_cppc/highest_perf is 68 for cpu_core and 70 for cpu_atom, expected less"),
        (20, "68", "acpi_cppc/highest_perf is 68 for cpu_core and 68 for cpu_atom, expected less"),
    ] {
        cppc(&tree);
        tree.write(&file(cpu), text);
        let notes = hybrid(&found(&tree), CapacitySource::Frequency, 768);
        assert!(notes.starts_with(words), "{notes}");
    }
    tree.write("cpu/cpu17/cpufreq/cpuinfo_max_freq", 12);
    let host = found(&tree);
    assert_eq!(host.capacity_source, CapacitySource::Alike);
    assert!(!host.machine.is_asymmetric());
    assert_eq!(
        host.capacity_notes[1],
        "cpu/cpu17/cpufreq/cpuinfo_max_freq is 12, expected 1000 to 100000000"
    );
}

#[test]
fn files_that_hold_something_else_are_refused() {
    let tree = alder_lake();
    cppc(&tree);
    tree.write("cpu/cpu3/acpi_cppc/highest_perf", "fast");
    tree.refused(&[
        "`sys/devices/system/cpu/cpu3/acpi_cppc/highest_perf`",
        "`fast` is not a number",
    ]);
    cppc(&tree);

    tree.write_at("sys/devices/cpu_atom/cpus", "16-x");
    tree.refused(&["`sys/devices/cpu_atom/cpus`", "expected a CPU list"]);

    tree.write_at("sys/devices/cpu_atom/cpus", "15-23");
    tree.refused(&[
        "CPU 15 is in sys/devices/cpu_core/cpus too; expected each CPU to be of one kind",
    ]);

    tree.write_at("sys/devices/cpu_atom/cpus", "17-23");
    let host = found(&tree);
    assert!(!host.machine.is_asymmetric());
    let notes = host.capacity_notes.join("; ");
    assert!(notes.contains("no such file names CPU 16, so all are taken for alike"), "{notes}");
}

#[test]
fn one_kind_that_is_online_is_alike() {
    let tree = alder_lake();
    cppc(&tree);
    tree.write("cpu/online", "0-15");
    for cpu in 16..24 {
        tree.remove(&format!("cpu/cpu{cpu}/topology"));
        tree.remove(&format!("cpu/cpu{cpu}/cache"));
    }
    tree.cpus(0..16, "cache/index3/shared_cpu_list", |_| "0-15");
    let host = found(&tree);
    assert_eq!(host.capacity_source, CapacitySource::Alike);
    // Where some small ones stay, nothing else changes.
    tree.write("cpu/online", "0-15,18");
    tree.write("cpu/cpu18/topology/physical_package_id", 0);
    tree.cpus((0..16).chain([18]), "cache/index3/shared_cpu_list", |_| "0-15,18");
    tree.write("cpu/cpu18/cache/index3/level", 3);
    tree.write("cpu/cpu18/cache/index3/type", "Unified");
    hybrid(&found(&tree), CapacitySource::Cppc, 587);
}
