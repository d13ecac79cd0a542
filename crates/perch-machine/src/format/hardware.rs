// SPDX-License-Identifier: GPL-2.0-or-later
//! `[hardware]`: the costs. Every key may be left out; [`Hardware::default`] stands in.

use super::Source;
use super::raw::{Bytes, RawByDistance, RawContendedLine, RawCore, RawHardware};
use crate::error::MachineError;
use crate::hardware::{ByDistance, ContendedLine, Core, Hardware, IdleState};
use perch_file::Spanned;
use std::fmt::Display;

/// The longest time that may be given for any cost: a second. Sums of a few such times stay below
/// 2^32.
const MAX_NS: u32 = 1_000_000_000;

pub(super) fn read(raw: &RawHardware, source: &Source) -> Result<Hardware, MachineError> {
    let base = Hardware::default();
    let idle_states = if raw.idle_state.is_empty() {
        base.idle_states.clone()
    } else {
        idle_states(raw, source)?
    };
    let line_bytes = number("line_bytes", &raw.line_bytes, base.line_bytes, 16..=4096, source)?;
    if !line_bytes.is_power_of_two() {
        let expected = "a power of two";
        return Err(refuse("line_bytes", &raw.line_bytes, line_bytes, expected, source));
    }
    let memory = match &raw.memory_ns {
        None => base.memory_ns,
        Some(given) => {
            let memory = given.get_ref();
            let pair = (
                memory.local.unwrap_or(base.memory_ns.0),
                memory.remote.unwrap_or(base.memory_ns.1),
            );
            for value in [pair.0, pair.1] {
                time("memory_ns", given, value, source)?;
            }
            pair
        }
    };
    Ok(Hardware {
        frequency_mhz: number(
            "frequency_mhz",
            &raw.frequency_mhz,
            base.frequency_mhz,
            1..=100_000,
            source,
        )?,
        line_bytes,
        l1d_bytes: bytes(&raw.l1d_bytes, base.l1d_bytes),
        l2_bytes: bytes(&raw.l2_bytes, base.l2_bytes),
        l2_per_cluster: raw.l2_per_cluster.unwrap_or(base.l2_per_cluster),
        llc_bytes: bytes(&raw.llc_bytes, base.llc_bytes),
        transfer_ns: by_distance("transfer_ns", &raw.transfer_ns, base.transfer_ns, source)?,
        ipi_ns: by_distance("ipi_ns", &raw.ipi_ns, base.ipi_ns, source)?,
        context_switch_ns: number(
            "context_switch_ns",
            &raw.context_switch_ns,
            base.context_switch_ns,
            0..=MAX_NS,
            source,
        )?,
        switch_out_ns: number(
            "switch_out_ns",
            &raw.switch_out_ns,
            base.switch_out_ns,
            0..=MAX_NS,
            source,
        )?,
        switch_in_ns: match &raw.switch_in_ns {
            None => base.switch_in_ns,
            given => Some(number("switch_in_ns", given, 0, 0..=MAX_NS, source)?),
        },
        llc_hit_ns: number("llc_hit_ns", &raw.llc_hit_ns, base.llc_hit_ns, 0..=MAX_NS, source)?,
        wake_ns: number("wake_ns", &raw.wake_ns, base.wake_ns, 0..=MAX_NS, source)?,
        examine_ns: number("examine_ns", &raw.examine_ns, base.examine_ns, 0..=MAX_NS, source)?,
        balance_ns: number("balance_ns", &raw.balance_ns, base.balance_ns, 0..=MAX_NS, source)?,
        balance_lines: number(
            "balance_lines",
            &raw.balance_lines,
            base.balance_lines,
            0..=1000,
            source,
        )?,
        tick_ns: number("tick_ns", &raw.tick_ns, base.tick_ns, 0..=MAX_NS, source)?,
        memory_ns: memory,
        idle_states,
        smt_throughput_1024: number(
            "smt_throughput_1024",
            &raw.smt_throughput_1024,
            base.smt_throughput_1024,
            1..=1024,
            source,
        )?,
        stall_pct: number("stall_pct", &raw.stall_pct, base.stall_pct, 0..=90, source)?,
        contended_line: contended_line(&raw.contended_line, source)?,
        core: core(raw.core.as_ref(), source)?,
    })
}

fn core(raw: Option<&RawCore>, source: &Source) -> Result<Core, MachineError> {
    let base = Core::default();
    let Some(raw) = raw else {
        return Ok(base);
    };
    let key = |key: &str, given: &Option<Spanned<u32>>, default, range| {
        number(&format!("core.{key}"), given, default, range, source)
    };
    Ok(Core {
        instructions_per_100_cycles: key(
            "instructions_per_100_cycles",
            &raw.instructions_per_100_cycles,
            base.instructions_per_100_cycles,
            10..=1000,
        )?,
        misses_at_once: key("misses_at_once", &raw.misses_at_once, base.misses_at_once, 1..=64)?,
        reorder_instructions: key(
            "reorder_instructions",
            &raw.reorder_instructions,
            base.reorder_instructions,
            0..=4096,
        )?,
        store_buffer: key("store_buffer", &raw.store_buffer, base.store_buffer, 0..=512)?,
    })
}

fn number(
    key: &str,
    given: &Option<Spanned<u32>>,
    default: u32,
    range: std::ops::RangeInclusive<u32>,
    source: &Source,
) -> Result<u32, MachineError> {
    let value = given.as_ref().map_or(default, |given| *given.get_ref());
    if range.contains(&value) {
        return Ok(value);
    }
    let expected = format!("{} to {}", range.start(), range.end());
    Err(refuse(key, given, value, expected, source))
}

fn refuse(
    key: &str,
    given: &Option<Spanned<u32>>,
    value: u32,
    expected: impl Display,
    source: &Source,
) -> MachineError {
    let span = given.as_ref().map_or(0..0, |given| given.span());
    source.place(format!("hardware.{key}"), span).problem(
        source.origin,
        format!("{value} is out of range"),
        format!("expected {expected}"),
    )
}

fn time<T>(key: &str, at: &Spanned<T>, value: u32, source: &Source) -> Result<(), MachineError> {
    if value <= MAX_NS {
        return Ok(());
    }
    Err(source.place(format!("hardware.{key}"), at.span()).problem(
        source.origin,
        format!("{value} ns is out of range"),
        "expected at most a second, 1000000000",
    ))
}

fn bytes(given: &Option<Spanned<Bytes>>, default: u64) -> u64 {
    given.as_ref().map_or(default, |given| given.get_ref().0)
}

fn by_distance(
    key: &str,
    given: &Option<Spanned<RawByDistance>>,
    default: ByDistance,
    source: &Source,
) -> Result<ByDistance, MachineError> {
    let Some(given) = given else {
        return Ok(default);
    };
    let raw = given.get_ref();
    let levels = [raw.cpu, raw.core, raw.cluster, raw.llc, raw.node, raw.package, raw.machine];
    let mut values = default;
    for (slot, level) in values.0.iter_mut().zip(levels) {
        *slot = level.unwrap_or(*slot);
        time(key, given, *slot, source)?;
    }
    Ok(values)
}

/// Reads the costs of contended lines. Without the table such lines are not modelled; an empty
/// table models them with the default figures.
fn contended_line(
    given: &Option<Spanned<RawContendedLine>>,
    source: &Source,
) -> Result<Option<ContendedLine>, MachineError> {
    let Some(given) = given else {
        return Ok(None);
    };
    let (raw, base) = (given.get_ref(), ContendedLine::default());
    let line = ContendedLine {
        hit_ns: raw.hit_ns.unwrap_or(base.hit_ns),
        atomic_ns: raw.atomic_ns.unwrap_or(base.atomic_ns),
        hold_ns: raw.hold_ns.unwrap_or(base.hold_ns),
    };
    for value in [line.hit_ns, line.atomic_ns, line.hold_ns] {
        time("contended_line", given, value, source)?;
    }
    Ok(Some(line))
}

fn idle_states(raw: &RawHardware, source: &Source) -> Result<Vec<IdleState>, MachineError> {
    let mut states: Vec<IdleState> = Vec::new();
    for (index, spanned) in raw.idle_state.iter().enumerate() {
        let state = spanned.get_ref();
        let key = format!("idle_state[{index}]");
        time(&key, spanned, state.exit_ns, source)?;
        time(&key, spanned, state.residency_ns, source)?;
        if let Some(last) = states.last().filter(|last| last.exit_ns > state.exit_ns) {
            let place = source.place(format!("hardware.{key}"), spanned.span());
            return Err(place.problem(
                source.origin,
                format!(
                    "`{}` wakes up sooner ({} ns) than the state before it, `{}` ({} ns)",
                    state.name, state.exit_ns, last.name, last.exit_ns
                ),
                "expected idle states from the shallowest to the deepest",
            ));
        }
        states.push(IdleState {
            name: state.name.clone(),
            exit_ns: state.exit_ns,
            residency_ns: state.residency_ns,
        });
    }
    Ok(states)
}
