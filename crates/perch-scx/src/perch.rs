// SPDX-License-Identifier: GPL-2.0-or-later
//! perch's own scheduler: the files that the BPF compiler takes, compiled natively.

use std::sync::Arc;

use perch_machine::Machine;
use perch_plan::{Abilities, Plan, Settings, SettingsError};
use perch_policy::Topology;
use perch_sched::ExtClass;
use perch_sim::Outside;

use crate::abi::Callbacks;
use crate::class::{Loader, Scheduler};
use crate::costs::Counted;
use crate::maps::Maps;
use crate::object::{Object, ObjectError};

/// native/perch.c, compiled by build.rs.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/perch.so"));

/// The maps whose size depends on the settings.
const SIZED: [&str; 3] = ["processes", "free_slots", "free_groups"];

/// Instructions of the callbacks: medians of `./x bench --lab` for perch-cluster at 8 CPUs, pipe; of
/// a select_cpu that searches, under hackbench.
const COUNTED: Counted = Counted {
    select_cpu: 1370,
    select_prev: 605,
    select_here: 358,
    enqueue: 282,
    dispatch: 100,
    running: 44,
    stopping: 112,
    tick: 97,
    queued: 10,
    init_task: 1049,
    exit_task: 113,
    enable: 74,
    update_idle: 34,
    timer: 1000,
    rare: 100,
};

/// The reason why perch cannot be loaded into a simulated kernel.
#[derive(Debug, thiserror::Error)]
enum PerchError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Returns perch with the settings that `perch run --set` takes, for the scenarios of a comparison.
///
/// # Errors
/// As `perch run` refuses them.
pub fn live(set: &str) -> Result<Outside, SettingsError> {
    outside(set, format!("live:{set}"), None)
}

/// Returns perch as [`live`] does, on a machine where claims of idle CPUs are lost and interrupts and
/// timers are late, as the seed says.
///
/// # Errors
/// As `perch run` refuses the settings.
pub fn live_with_faults(set: &str, seed: u64) -> Result<Outside, SettingsError> {
    outside(set, format!("live:{set} with faults {seed}"), Some(seed))
}

fn outside(set: &str, words: String, faults: Option<u64>) -> Result<Outside, SettingsError> {
    let mut settings = Settings::default();
    if !set.is_empty() {
        settings.set(set)?;
    }
    let make = move |machine: &Machine, topology: &Arc<Topology>| {
        let scheduler = scheduler(machine, topology, &settings).map_err(|e| e.to_string())?;
        Ok(Box::new(scheduler.with_faults(faults)) as Box<dyn ExtClass>)
    };
    Ok(Outside::new(words.clone(), words.into_bytes(), make))
}

/// Returns perch as `perch run` would load it on `machine`.
fn scheduler(
    machine: &Machine,
    topology: &Arc<Topology>,
    settings: &Settings,
) -> Result<Scheduler, PerchError> {
    let object = Object::load(OBJECT)?;
    // The first plan says how long the image is.
    let len = Plan::simulated(0, machine, topology, settings)?.image().len();
    let mut arena: Vec<Line> = vec![Line([0; 64]); len.div_ceil(64)];
    let base = arena.as_mut_ptr();
    let plan = Plan::simulated(base as u64, machine, topology, settings)?;
    // SAFETY: the image is as long as the first one.
    unsafe { base.cast::<u8>().copy_from_nonoverlapping(plan.image().as_ptr(), len) };
    let loader = PerchLoader { plan, _arena: arena };
    Ok(Scheduler::new(object, Box::new(loader)))
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]);

struct PerchLoader {
    plan: Plan,
    /// The program has its address.
    _arena: Vec<Line>,
}

impl Loader for PerchLoader {
    fn ops(&self) -> &str {
        self.plan.ops()
    }

    fn counted(&self) -> Counted {
        COUNTED
    }

    fn prepare(
        &mut self,
        object: &Object,
        callbacks: &mut Callbacks,
        maps: &mut Maps,
    ) -> Result<(), ObjectError> {
        let config = self.plan.config();
        let variable = object.variable("perch_config")?;
        // SAFETY: the variable is writable natively, and a test of perch-scheduler compares the
        // size of the structure with C's.
        unsafe { variable.cast::<u8>().copy_from_nonoverlapping(config.as_ptr(), config.len()) };
        for map in SIZED {
            if let Some(entries) = self.plan.max_entries(map) {
                let at = object.variable(map)? as usize;
                maps.set_max_entries(at, entries);
            }
        }
        callbacks.flags = self.plan.flags();
        for member in self.plan.left_out(KERNEL) {
            leave_out(callbacks, member);
        }
        Ok(())
    }
}

/// What the simulated kernel does. Its groups have no `cpu.max` and no `cpu.idle`.
const KERNEL: Abilities = Abilities { takes_back: true, limits: false, idle_groups: false };

fn leave_out(callbacks: &mut Callbacks, member: &str) {
    match member {
        "runnable" => callbacks.runnable = None,
        "quiescent" => callbacks.quiescent = None,
        "cgroup_init" => callbacks.cgroup_init = None,
        // Nobody calls these here.
        "cgroup_exit"
        | "cgroup_move"
        | "cgroup_set_bandwidth"
        | "cgroup_set_idle"
        | "cgroup_set_weight"
        | "cpu_offline"
        | "cpu_online"
        | "cpu_release" => {}
        "exit_task" => callbacks.exit_task = None,
        "init_task" => callbacks.init_task = None,
        other => unreachable!("the loader leaves out {other}"),
    }
}
