// SPDX-License-Identifier: GPL-2.0-or-later
//! Holds the mirror against what the C compiler made of bpf/interface.h.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::mem::offset_of;

use perch_policy::Reason;

use super::{
    ARENA_BASE, BAND_CGROUP, BAND_COMM, BAND_GLOB, BAND_NAME, BAND_NICE, BAND_PATH, Band,
    CELL_SIZE, Config, Cpu, Event, Exit, Group, Llc, MAX_BANDS, MAX_EVENTS, MAX_REASONS, Memory,
    NONE, OCCUPANCY_SIZE, Overload, SEAT_SIZE, Slot,
};

/// `struct perch_layout_line`.
#[repr(C)]
struct Line {
    name: *const c_char,
    offset: u64,
    size: u64,
}

unsafe extern "C" {
    fn perch_interface_layout(count: *mut u64) -> *const Line;
}

type Layout = BTreeMap<String, (u64, u64)>;

fn in_c() -> Layout {
    let mut count = 0;
    // SAFETY: the table is constant and has `count` lines, each with a constant string.
    unsafe {
        let lines = perch_interface_layout(&mut count);
        std::slice::from_raw_parts(lines, count as usize)
            .iter()
            .map(|line| {
                let name = CStr::from_ptr(line.name).to_string_lossy().into_owned();
                (name, (line.offset, line.size))
            })
            .collect()
    }
}

fn size_of_field<T, F>(_: fn(&T) -> &F) -> u64 {
    size_of::<F>() as u64
}

macro_rules! fields {
    ($layout:ident, $c:literal = $rust:ty: $($field:ident),*) => {
        $layout.insert($c.to_string(), (0, size_of::<$rust>() as u64));
        $(
            let size = size_of_field(|s: &$rust| &s.$field);
            let offset = offset_of!($rust, $field) as u64;
            $layout.insert(format!("{}.{}", $c, stringify!($field)), (offset, size));
        )*
    };
}

fn in_rust() -> Layout {
    let mut all = Layout::new();
    fields!(all, "perch_cpu" = Cpu: clock, curr_vtime, busy_ns, pull_from, move_to, flat, capacity, node, llc, process,
        refused, homeward, band_prio, overloaded, overload_mark, overload_home, band_since_ns, band_returns,
        group, impatient, jumped, events,
        reasons);
    fields!(all, "perch_llc" = Llc: set, nr_idle_scan, span, note_at_ns);
    fields!(all, "perch_band" = Band: slice_ns, flags, prio, nice, depth, comm, path);
    fields!(all, "perch_overload" = Overload: counters, nr, layout, exact);
    fields!(all, "perch_slot" = Slot: occupancy, seats, tgid);
    fields!(all, "perch_config" = Config: policy, topology, cpus, llcs, waiting, misfits, epochs, llc_loads,
        slice_ns, slice_min_ns, lag_ns, preempt_ns, balance_ns, steal_remote_ns, memories, memory_mask,
        nr_llcs, nr_possible, detail, capacities, cache, utils, slots, nr_slots, follows, bands,
        overload, overloaded, band_period_ns, band_share_ns, nr_bands, band_cgroups,
        groups, nr_groups, credits);
    fields!(all, "perch_group_slot" = Group: load, weight, counted, parent, refs, queued, cells);
    fields!(all, "perch_memory" = Memory: flip_decay_at_ns, pid, last_wakee, wakee_flips,
        recent_cpu, util_at_ns, util, util_est, process, llc, llc_before, llc_since_ns);
    fields!(all, "perch_exit" = Exit: code, kind, reason, message);
    let mut number = |name: &str, value: u64| all.insert(name.to_string(), (0, value));
    number("PERCH_ARENA_BASE", ARENA_BASE);
    number("PERCH_NONE", NONE.into());
    number("PERCH_MAX_EVENTS", MAX_EVENTS as u64);
    number("PERCH_MAX_REASONS", MAX_REASONS as u64);
    number("PERCH_NR_REASONS", Reason::ALL.len() as u64);
    number("PERCH_MAX_BANDS", MAX_BANDS as u64);
    number("PERCH_BAND_GLOB", BAND_GLOB as u64);
    number("PERCH_BAND_PATH", BAND_PATH as u64);
    number("PERCH_BAND_NAME", BAND_NAME as u64);
    number("PERCH_BAND_COMM", BAND_COMM.into());
    number("PERCH_BAND_CGROUP", BAND_CGROUP.into());
    number("PERCH_BAND_NICE", BAND_NICE.into());
    for &event in Event::ALL {
        let name = format!("PERCH_EV_{}", event.name().to_uppercase());
        number(&name, event as u64);
    }
    number("perch_occupancy", OCCUPANCY_SIZE as u64);
    number("perch_group_cell", CELL_SIZE as u64);
    number("perch_seat", SEAT_SIZE as u64);
    number("PERCH_NR_EVENTS", Event::ALL.len() as u64);
    all
}

#[test]
fn the_mirror_is_what_c_has() {
    let (c, rust) = (in_c(), in_rust());
    for (name, (offset, size)) in &c {
        assert_eq!(
            rust.get(name),
            Some(&(*offset, *size)),
            "{name}: offset and size (or 0 and value)"
        );
    }
    let unknown: Vec<_> = rust.keys().filter(|name| !c.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "not in layout.c: {unknown:?}");
}
