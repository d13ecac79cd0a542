// SPDX-License-Identifier: GPL-2.0-or-later
//! A writer of a machine as a file in the explicit form, with one table for each group of CPUs.

use crate::cpulist;
use crate::hardware::{ByDistance, Core};
use crate::model::{Cpu, Machine};
use std::collections::BTreeMap;
use std::fmt::Write;

// The write to a String cannot fail, so this module drops the results of write! throughout.
pub(super) fn to_toml(machine: &Machine) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "name = {}", quote(&machine.name));
    let _ = writeln!(out, "description = {}", quote(&machine.description));
    out.push_str("sources = [\n");
    for source in &machine.sources {
        let _ = writeln!(out, "    {},", quote(source));
    }
    out.push_str("]\n");

    table(&mut out, "package", machine, |cpu| Some(cpu.package));
    table(&mut out, "node", machine, |cpu| Some(cpu.node));
    for (llc, cpus) in members(machine, |cpu| Some(cpu.llc)) {
        let _ = writeln!(out, "\n[[llc]]\ncpus = \"{}\"", cpulist::format(&cpus));
        if !machine.llc_bytes.is_empty() {
            let _ = writeln!(out, "bytes = {}", size(machine.llc_bytes(llc)));
        }
    }
    table(&mut out, "cluster", machine, |cpu| cpu.cluster);
    if machine.has_smt() {
        table(&mut out, "core", machine, |cpu| Some(cpu.core));
    }
    if machine.has_phantom_llcs() {
        out.push_str("\n[declared]\nllc = [\n");
        for cpus in members(machine, |cpu| Some(cpu.declared_llc)).values() {
            let _ = writeln!(out, "    \"{}\",", cpulist::format(cpus));
        }
        out.push_str("]\n");
    }
    values(&mut out, "capacity", machine, |cpu| (cpu.capacity != 1024).then_some(cpu.capacity));
    values(&mut out, "ranking", machine, |cpu| (cpu.ranking != 0).then_some(cpu.ranking));
    out.push_str("\n[numa]\ndistance = [\n");
    for row in &machine.node_distance {
        let _ = writeln!(out, "    {row:?},");
    }
    out.push_str("]\n");
    hardware(&mut out, machine);
    out
}

fn hardware(out: &mut String, machine: &Machine) {
    let hardware = &machine.hardware;
    out.push_str("\n[hardware]\n");
    let _ = writeln!(out, "frequency_mhz = {}", hardware.frequency_mhz);
    let _ = writeln!(out, "line_bytes = {}", hardware.line_bytes);
    let _ = writeln!(out, "l1d_bytes = {}", size(hardware.l1d_bytes));
    let _ = writeln!(out, "l2_bytes = {}", size(hardware.l2_bytes));
    let _ = writeln!(out, "l2_per_cluster = {}", hardware.l2_per_cluster);
    let _ = writeln!(out, "llc_bytes = {}", size(hardware.llc_bytes));
    let _ = writeln!(out, "transfer_ns = {}", by_distance(&hardware.transfer_ns));
    let _ = writeln!(out, "ipi_ns = {}", by_distance(&hardware.ipi_ns));
    let _ = writeln!(out, "context_switch_ns = {}", hardware.context_switch_ns);
    let _ = writeln!(out, "switch_out_ns = {}", hardware.switch_out_ns);
    if let Some(ns) = hardware.switch_in_ns {
        let _ = writeln!(out, "switch_in_ns = {ns}");
    }
    let _ = writeln!(out, "llc_hit_ns = {}", hardware.llc_hit_ns);
    let _ = writeln!(out, "wake_ns = {}", hardware.wake_ns);
    let _ = writeln!(out, "examine_ns = {}", hardware.examine_ns);
    let _ = writeln!(out, "balance_ns = {}", hardware.balance_ns);
    let _ = writeln!(out, "balance_lines = {}", hardware.balance_lines);
    let _ = writeln!(out, "tick_ns = {}", hardware.tick_ns);
    let (local, remote) = hardware.memory_ns;
    let _ = writeln!(out, "memory_ns = {{ local = {local}, remote = {remote} }}");
    let _ = writeln!(out, "smt_throughput_1024 = {}", hardware.smt_throughput_1024);
    let _ = writeln!(out, "stall_pct = {}", hardware.stall_pct);
    if let Some(line) = hardware.contended_line {
        let _ = writeln!(
            out,
            "contended_line = {{ hit_ns = {}, atomic_ns = {}, hold_ns = {} }}",
            line.hit_ns, line.atomic_ns, line.hold_ns
        );
    }
    let core = &hardware.core;
    // A file that gives nothing has the defaults, and what was written before there were such keys
    // stays as it is.
    if *core != Core::default() {
        let _ = writeln!(
            out,
            "core = {{ instructions_per_100_cycles = {}, misses_at_once = {}, \
             reorder_instructions = {}, store_buffer = {} }}",
            core.instructions_per_100_cycles,
            core.misses_at_once,
            core.reorder_instructions,
            core.store_buffer
        );
    }
    for state in &hardware.idle_states {
        let _ = writeln!(
            out,
            "\n[[hardware.idle_state]]\nname = {}\nexit_ns = {}\nresidency_ns = {}",
            quote(&state.name),
            state.exit_ns,
            state.residency_ns
        );
    }
}

/// Returns the CPUs of each group, by the group's index.
pub(super) fn members(
    machine: &Machine,
    group: impl Fn(&Cpu) -> Option<u32>,
) -> BTreeMap<u32, Vec<u32>> {
    let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (number, cpu) in machine.cpus.iter().enumerate() {
        if let Some(group) = group(cpu) {
            members.entry(group).or_default().push(number as u32);
        }
    }
    members
}

fn table(out: &mut String, name: &str, machine: &Machine, group: impl Fn(&Cpu) -> Option<u32>) {
    for cpus in members(machine, group).values() {
        let _ = writeln!(out, "\n[[{name}]]\ncpus = \"{}\"", cpulist::format(cpus));
    }
}

fn values(out: &mut String, name: &str, machine: &Machine, of: impl Fn(&Cpu) -> Option<u32>) {
    for (value, cpus) in members(machine, of) {
        let list = cpulist::format(&cpus);
        let _ = writeln!(out, "\n[[{name}]]\ncpus = \"{list}\"\nvalue = {value}");
    }
}

fn by_distance(values: &ByDistance) -> String {
    let [cpu, core, cluster, llc, node, package, machine] = values.0;
    format!(
        "{{ cpu = {cpu}, core = {core}, cluster = {cluster}, llc = {llc}, node = {node}, \
         package = {package}, machine = {machine} }}"
    )
}

/// Returns `"512K"`, `"32M"`, or plain bytes where neither unit divides them.
fn size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_string(),
        _ if bytes % (1 << 20) == 0 => format!("\"{}M\"", bytes >> 20),
        _ if bytes % (1 << 10) == 0 => format!("\"{}K\"", bytes >> 10),
        _ => bytes.to_string(),
    }
}

fn quote(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}
