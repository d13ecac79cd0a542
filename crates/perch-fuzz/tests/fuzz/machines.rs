// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines: perch's TOML, hwloc's XML, lscpu's text, trees of sysfs and lists of CPUs.

use std::fs;
use std::path::{Component, Path};

use perch_fuzz::refused;
use perch_machine::{Machine, MachineError, cpulist, detect, draw, import};

use crate::{files, scratch, strings, text};

const WORDS: &str = r#"
name¦description¦sources¦packages¦nodes¦clusters¦llcs¦cores¦threads¦cpus¦capacity¦capacities¦
distance¦[hardware]¦[[group]]¦[regular]¦transfer_ns¦freq_mhz¦[¦]¦[[¦]]¦{¦}¦=¦"¦'''¦#¦,¦-¦:¦true¦
\u{1b}[31m¦\0¦\u{202e}¦\r¦\t¦0-8191¦0-7:1/2¦[[[[[[[["#;

/// A machine that was read can be drawn and written, and is the same when it is read again.
fn used(machine: &Machine) -> Result<(), String> {
    draw::draw(machine, 80);
    let written = machine.to_toml();
    match Machine::from_toml_str(&written, "again") {
        Ok(again) if again == *machine => Ok(()),
        Ok(_) => Err("what was written is another machine".to_string()),
        Err(error) => Err(format!("what was written is refused: {error}")),
    }
}

fn judged(found: Result<Machine, MachineError>, origin: &Path, input: &[u8]) -> Result<(), String> {
    let origin = origin.display().to_string();
    match found {
        Ok(machine) => used(&machine),
        Err(error) => refused(&error.to_string(), &origin, input),
    }
}

#[test]
fn machine_toml() {
    let mut seeds = files("crates/perch-machine/library", ".toml");
    // A written machine has the explicit form, with a table for each CPU.
    for name in ["juno", "x5570"] {
        seeds.push(perch_machine::library::load(name).unwrap().to_toml().into());
    }
    // Some of these have LLCs of unequal bytes.
    seeds.extend((0..6).map(|seed| Machine::random(seed, 12).to_toml().into()));
    text("machine_toml", 900, seeds, WORDS, &|input, path| {
        judged(Machine::from_file(path), path, input)
    });
}

#[test]
fn hwloc_xml() {
    let words = r#"
<object type="PU" os_index="0" cpuset="0x00000001"/>¦<object¦</object>¦/>¦type="Package"¦
type="NUMANode"¦type="L3Cache"¦type="Core"¦os_index¦cpuset¦nodeset¦cache_size¦<!--¦-->¦<![CDATA[¦
]]>¦&lt;¦&#0;¦&#x1b;¦<!DOCTYPE a [<!ENTITY b "c">]>¦&b;¦0xffffffff¦0xf...f¦,¦"¦
<info name="a" value="b"/>¦<info name="LinuxCapacity" value="997"/>¦
<info name="FrequencyMaxMHz" value="3900"/>¦<info name="Architecture" value="aarch64"/>¦
complete_cpuset¦kind="1001"¦<?xml?>¦\0¦\u{1b}"#;
    let seeds = files("crates/perch-machine/tests/data", ".xml");
    text("hwloc_xml", 2500, seeds, words, &|input, path| judged(import(path), path, input));
}

#[test]
fn lscpu_text() {
    let words = r#"
# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n¦CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n¦
0,0,0,0,,0,0,0,0\n¦On-line CPU(s) list: ¦NUMA node0 CPU(s): ¦Socket(s): ¦Thread(s) per core: ¦
L3 cache: ¦64 MiB (2 instances)¦{"cpus":[¦{"lscpu":[¦"children":¦"l1d:l1i:l2:l3"¦0:0:0:0¦:¦,¦-¦null¦
9999¦1e300¦\n¦#¦\0¦\u{1b}"#;
    let seeds = files("crates/perch-fuzz/seeds/lscpu", ".txt");
    text("lscpu_text", 2500, seeds, words, &|input, path| judged(import(path), path, input));
}

/// Trees of sysfs, a line `FILE=TEXT` for each file below `sys/devices/system`, or below `sys/devices`
/// after a slash.
#[test]
fn sysfs() {
    let words = r#"
cpu/online=¦cpu/possible=¦cpu/cpu0/topology/¦cpu/cpu1/cache/index0/¦node/¦cluster_cpus_list=¦
core_cpus_list=¦shared_cpu_list=¦physical_package_id=¦cpu_capacity=¦/cpu_core/cpus=¦/cpu_atom/cpus=¦
acpi_cppc/highest_perf=¦cpufreq/cpuinfo_max_freq=¦distance=¦cpulist=¦cpumap=¦thread_siblings=¦
shared_cpu_map=¦core_siblings_list=¦book_id=¦0000000f,00000000¦level=¦size=¦type=¦K¦M¦Unified¦0-3¦
0,2¦-1¦65535¦0-8191¦cpu8191¦node1023¦=¦,¦-"#;
    let seeds = files("crates/perch-fuzz/seeds/sysfs", ".tree");
    // In memory, where there is such a folder: a tree has a hundred files.
    let folder = match Path::new("/dev/shm") {
        memory if memory.is_dir() => memory.join(format!("perch-fuzz-{}", std::process::id())),
        _ => scratch("sysfs"),
    };
    let below = folder.join("sys/devices/system");
    text("sysfs", 500, seeds, words, &|input, _| {
        let _ = fs::remove_dir_all(folder.join("sys"));
        fs::create_dir_all(&below).map_err(|error| error.to_string())?;
        for line in String::from_utf8_lossy(input).lines().take(500) {
            let (file, value) = line.split_once('=').unwrap_or((line, ""));
            let (above, file) = match file.strip_prefix('/') {
                Some(file) => (folder.join("sys/devices"), Path::new(file)),
                None => (below.clone(), Path::new(file)),
            };
            if !file.components().all(|part| matches!(part, Component::Normal(_))) {
                continue;
            }
            let path = above.join(file);
            // Some names cannot be made: too long, below a file, with a zero.
            if let Some(above) = path.parent() {
                let _ = fs::create_dir_all(above);
            }
            let _ = fs::write(&path, value);
        }
        judged(detect(&folder), &folder, input)
    });
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn cpu_list() {
    let seeds = strings(&["0-3", "0,2,4-7", "0-31:2/4", "", "0-3,8-11,16", "8191"]);
    let words = r",¦-¦:¦/¦all¦N¦0x¦_¦+1¦ ¦\n";
    text("cpu_list", 8000, seeds, words, &|input, _| {
        let list = String::from_utf8_lossy(input);
        match cpulist::parse(&list) {
            Ok(cpus) => match cpulist::parse(&cpulist::format(&cpus)) {
                Ok(again) if again == cpus => Ok(()),
                other => Err(format!("{cpus:?} is read again as {other:?}")),
            },
            Err(why) => refused(&why.to_string(), "", input),
        }
    });
}
