// SPDX-License-Identifier: GPL-2.0-or-later
//! Holds the mirror of policy/'s structures and numbers against what the C compiler made of them.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::mem::{offset_of, size_of};

use super::{CpuState, TaskState};
use crate::cache::{CacheStep, LlcLoad, Move};
use crate::ffi;
use crate::mode::Mode;
use crate::overload::{self, Layout};
use crate::reason::Reason;
use crate::topology;

/// `struct perch_layout`.
#[repr(C)]
struct Line {
    name: *const c_char,
    offset: u64,
    size: u64,
}

unsafe extern "C" {
    fn perch_native_layout(count: *mut u64) -> *const Line;
}

type Table = BTreeMap<String, (u64, u64)>;

fn in_c() -> Table {
    let mut count = 0;
    // SAFETY: the table is constant and has `count` lines, each with a constant string.
    unsafe {
        let lines = perch_native_layout(&mut count);
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

/// `C structure = Rust structure: fields`, which have the same names.
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

fn in_rust() -> Table {
    let mut all = Table::new();
    fields!(all, "perch_modes" = ffi::Modes: cluster, capacity, cache, overload, steer,
        overload_layout, pad);
    fields!(all, "perch_overload" = ffi::Overload: counters, nr, layout, exact, pad);
    fields!(all, "perch_overload_memory" = ffi::OverloadMemory: alloc, free, context);
    fields!(all, "perch_rules" = ffi::Rules: flip_decay_ns, idle_sees_policy,
        empty_mask_fails_early, groups_by_affinity, wake_cap, early_groups,
        recent_when_taken, far_imbalance_pct, near_imbalance_pct,
        early_path, pad);
    fields!(all, "perch_policy" = ffi::Policy: modes, rules);
    fields!(all, "perch_wake" = ffi::Wake: now_ns, this_cpu, prev_cpu, flags, pad);
    fields!(all, "perch_task" = TaskState: allowed, flip_decay_at_ns, id, last_wakee, wakee_flips,
        recent_cpu, nr_allowed, flags, load, util, uclamp_min, uclamp_max,
        process, process_id, group_id, queued, load_shift, pad);
    fields!(all, "perch_occupancy" = ffi::Occupancy: runtime_ns, epoch);
    fields!(all, "perch_epoch" = ffi::Epoch: runtime_ns, epoch, next_ns, pad);
    fields!(all, "perch_seat" = ffi::Seat: hot_cpu, occupancy, preferred, pad);
    fields!(all, "perch_process" = ffi::Process: occupancy, seats, scan_epoch, pref_cpu,
        nr_preferred, nr_threads, nr_running, running_avg, footprint_kib);
    fields!(all, "perch_llc_load" = LlcLoad: util, nr, known, capacity, cores, size_kib, pad);
    fields!(all, "perch_verdict" = ffi::Verdict: cpu, reason, examined, target, cache, pad);
    fields!(all, "perch_native_set" = ffi::Set: first, words, offset, weight);
    fields!(all, "perch_native_domain" = ffi::Domain: flags, set, imbalance_pct, imb_numa_nr,
        groups, first_group, level, pad);
    fields!(all, "perch_native_place" = ffi::Place: core_set, cluster_set, llc_set, llc,
        asym_set, capacity, domains);
    fields!(all, "perch_native_cpu" = CpuState: idle_since_ns, nr_running, nr_delayed, load,
        runnable, util, capacity, curr_load, idle_exit_ns);
    fields!(all, "perch_native_llc" = ffi::Llc: set, nr_idle_scan, idle_cores, pad);
    fields!(all, "perch_topology" = ffi::Topology: pool, sets, domains, group_sets, places,
            llc_of_set, llc_sets, nr_cpus, nr_llcs, has_clusters, has_smt, max_capacity, pad);
    fields!(all, "perch_host" = ffi::Host: topology, idle, sched_idle, cpus, llcs, epochs, loads);
    fields!(all, "perch_question" = ffi::Question: host, policy, wake, waker, wakee, verdict);

    let mut number = |name: &str, value: u64| all.insert(name.to_string(), (0, value));
    number("PERCH_NONE", ffi::NONE.into());
    number("PERCH_MAX_LEVELS", ffi::MAX_LEVELS as u64);
    for mode in Mode::ALL {
        number(
            &format!("PERCH_{}", mode.name().to_uppercase()),
            mode as u64,
        );
    }
    for (name, bit) in ["SYNC", "FORK", "EXEC", "CURRENT", "IN_TASK"]
        .into_iter()
        .zip(0..)
    {
        number(&format!("PERCH_WAKE_{name}"), 1 << bit);
    }
    let mut task = TaskState::new(1);
    task.set_percpu_kthread(true);
    number("PERCH_TASK_PERCPU_KTHREAD", task.flags.into());
    task.set_percpu_kthread(false);
    task.set_sched_idle(true);
    number("PERCH_TASK_SCHED_IDLE", task.flags.into());
    for (name, flag) in topology::FLAGS {
        number(&format!("PERCH_{name}"), flag.into());
    }
    for reason in Reason::ALL {
        number(
            &format!("PERCH_BY_{}", screaming(&format!("{reason:?}"))),
            reason as u64,
        );
    }
    number("PERCH_NR_REASONS", Reason::ALL.len() as u64);
    for step in CacheStep::ALL {
        let name = screaming(&format!("{step:?}"));
        number(&format!("PERCH_CACHE_{name}"), step as u64);
    }
    number("PERCH_NR_CACHE_STEPS", CacheStep::ALL.len() as u64);
    for layout in Layout::ALL {
        let name = screaming(&format!("{layout:?}"));
        number(&format!("PERCH_OVERLOAD_{name}"), layout as u64);
    }
    for level in [
        overload::Level::None,
        overload::Level::One,
        overload::Level::More,
    ] {
        let name = screaming(&format!("{level:?}"));
        number(&format!("PERCH_OVERLOAD_{name}"), level as u64);
    }
    for said in [Move::Free, Move::Stay, Move::Go] {
        let name = screaming(&format!("{said:?}"));
        number(&format!("PERCH_MOVE_{name}"), said as u64);
    }
    all
}

/// `ClusterScan` as `CLUSTER_SCAN`.
fn screaming(camel: &str) -> String {
    let mut out = String::new();
    for c in camel.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_uppercase());
    }
    out
}

#[test]
fn the_mirror_is_what_c_has() {
    let (c, rust) = (in_c(), in_rust());
    for (name, (offset, size)) in &c {
        let mirror = rust.get(name);
        assert_eq!(
            mirror,
            Some(&(*offset, *size)),
            "{name}: offset and size (or 0 and value)"
        );
    }
    let unknown: Vec<_> = rust.keys().filter(|name| !c.contains_key(*name)).collect();
    assert!(
        unknown.is_empty(),
        "not in the table of policy/hosts/native.c: {unknown:?}"
    );
}
