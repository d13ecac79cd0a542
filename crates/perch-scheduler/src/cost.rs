// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures the cost of a loaded scheduler's programs, perch's or another's: for `./x bench --lab`.
//!
//! [`Meter::new`] finds the programs, [`Meter::by_run`] measures every run of each
//! (bpf/cost.bpf.c). In a deterministic guest a nanosecond is an instruction.

mod probe;

use std::os::fd::AsFd;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Func;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{Link, Object, Program, ProgramInput, ProgramType};
use serde::Serialize;

use crate::error::SchedulerError;
use crate::histogram::Histogram;
use crate::kernel::UnableError;
use crate::refusal::RefusedError;
use probe::Probe;

/// How often the meter runs the program that does nothing, to know the cost of measuring.
const NOTHING_RUNS: u64 = 1000;

/// The cost of one program in a stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The program's name.
    pub program: String,
    /// The callback of sched_ext that it is; none for a program of another type.
    pub callback: Option<String>,
    /// How often it ran.
    pub runs: u64,
    /// Mean of a run in ns without what measuring adds, and without the runs in `dropped`.
    pub mean_ns: f64,
    /// Runs longer than ten medians, which are not in the mean: they waited for others.
    pub dropped: u64,
}

/// The cost of all programs of a scheduler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Tasks that became runnable meanwhile (the tracepoint sched_wakeup).
    pub wakeups: u64,
    /// One for each program, those of sched_ext first.
    pub programs: Vec<Cost>,
}

/// A program of the scheduler.
#[derive(Clone, Debug)]
struct Target {
    id: u32,
    name: String,
    callback: Option<String>,
}

/// Measures the programs that were loaded when it was made.
pub struct Meter {
    targets: Vec<Target>,
    object: Object,
    _wakeup: Link,
}

fn failed(what: &str) -> impl FnOnce(libbpf_rs::Error) -> SchedulerError {
    let what = what.to_string();
    move |source| RefusedError::Meter { what, source }.into()
}

impl Meter {
    /// A meter for all BPF programs that are loaded now.
    ///
    /// # Errors
    /// [`SchedulerError::Unable`] when no program of sched_ext is there, or the user may not see
    /// it; [`SchedulerError::Refused`] when the kernel takes no program of the meter's own.
    pub fn new() -> Result<Meter, SchedulerError> {
        let targets = targets();
        if targets.iter().all(|target| target.callback.is_none()) {
            return Err(UnableError::NoScheduler.into());
        }
        let object = probe::load(&["cost_nothing", "cost_wakeup"], None)
            .map_err(failed("the meter's BPF programs"))?;
        let wakeup = program(&object, "cost_wakeup")
            .and_then(|program| program.attach())
            .map_err(failed("the tracepoint sched_wakeup"))?;
        Ok(Meter { targets, object, _wakeup: wakeup })
    }

    /// Measures the cost of the programs of sched_ext while `work` runs, run by run; the result
    /// leaves out other programs. Calls `work` `times` times, each time with the number of the turn.
    ///
    /// # Errors
    /// [`SchedulerError::Refused`] when the kernel refuses to have a program measured, and what
    /// `work` returns.
    pub fn by_run<E: From<SchedulerError>>(
        &mut self,
        times: usize,
        mut work: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Vec<Costs>, E> {
        let own = self.own_ns()?;
        let measured = self.targets.iter().filter(|t| t.callback.is_some());
        let probes: Vec<(&Target, Probe)> = measured
            .map(|target| {
                let probe = Program::fd_from_id(target.id)
                    .and_then(|fd| Probe::new(fd.as_fd(), &target.name));
                let what = format!("cannot measure {}", target.name);
                Ok((target, probe.map_err(failed(&what))?))
            })
            .collect::<Result<_, SchedulerError>>()?;
        let mut all = Vec::new();
        for turn in 0..times {
            for (_, probe) in &probes {
                probe.begin().map_err(failed("the meter"))?;
            }
            let wakeups = self.wakeups()?;
            let worked = work(turn);
            let wakeups = self.wakeups()? - wakeups;
            let programs = probes
                .iter()
                .map(|(target, probe)| {
                    let histogram = probe.end().map_err(failed("the meter"))?;
                    Ok(target.cost(&histogram, own))
                })
                .collect::<Result<_, SchedulerError>>()?;
            worked?;
            all.push(Costs { wakeups, programs });
        }
        Ok(all)
    }

    /// The time that a probe takes around a program that does nothing.
    fn own_ns(&self) -> Result<f64, SchedulerError> {
        let fault = |error| failed("the meter cannot measure itself")(error);
        let nothing = program(&self.object, "cost_nothing").map_err(fault)?;
        let probe = Probe::new(nothing.as_fd(), "cost_nothing").map_err(fault)?;
        probe.begin().map_err(fault)?;
        self.run_nothing()?;
        Ok(probe.end().map_err(fault)?.median())
    }

    fn run_nothing(&self) -> Result<(), SchedulerError> {
        let nothing = program(&self.object, "cost_nothing").map_err(failed("the meter"))?;
        for _ in 0..NOTHING_RUNS {
            nothing
                .test_run(ProgramInput::default())
                .map_err(failed("the meter cannot run a program"))?;
        }
        Ok(())
    }

    fn wakeups(&self) -> Result<u64, SchedulerError> {
        let value = probe::value(&self.object, ".data.wakeups").map_err(failed("the meter"))?;
        let bytes = value.first_chunk().copied().unwrap_or_default();
        Ok(u64::from_ne_bytes(bytes))
    }
}

impl Target {
    fn cost(&self, histogram: &Histogram, own_ns: f64) -> Cost {
        let (mean, dropped) = histogram.mean_within_ten_medians();
        Cost {
            program: self.name.clone(),
            callback: self.callback.clone(),
            runs: histogram.runs(),
            mean_ns: (mean - own_ns).max(0.0),
            dropped,
        }
    }
}

fn program<'a>(
    object: &'a Object,
    name: &str,
) -> Result<libbpf_rs::ProgramMut<'a>, libbpf_rs::Error> {
    probe::program(object, name)
}

/// Every program that is loaded.
fn targets() -> Vec<Target> {
    let options = ProgInfoQueryOptions::default().include_func_info(true);
    let programs = ProgInfoIter::with_query_opts(options);
    let mut targets: Vec<Target> = programs
        .map(|program| {
            let name = full_name(&program);
            let is_callback = program.ty == ProgramType::StructOps;
            Target {
                id: program.id,
                callback: is_callback.then(|| callback(&name).to_string()),
                name,
            }
        })
        .collect();
    targets.sort_by_key(|target| (target.callback.is_none(), target.id));
    targets
}

/// The name of its function: the kernel's own copy of it is cut after 15 characters.
fn full_name(program: &ProgramInfo) -> String {
    let known = || {
        let first = program.func_info.first()?;
        let btf = Btf::from_prog_id(program.id).ok()?;
        let function = btf.type_by_id::<Func<'_>>(first.type_id.into())?;
        Some(function.name()?.to_string_lossy().into_owned())
    };
    known().unwrap_or_else(|| program.name.to_string_lossy().into_owned())
}

/// The callbacks of sched_ext. The kernel does not tell which of them a program is, but every
/// scheduler's programs end with their names.
const CALLBACKS: [&str; 34] = [
    "select_cpu",
    "enqueue",
    "dequeue",
    "dispatch",
    "tick",
    "runnable",
    "running",
    "stopping",
    "quiescent",
    "yield",
    "core_sched_before",
    "set_weight",
    "set_cpumask",
    "update_idle",
    "cpu_acquire",
    "cpu_release",
    "init_task",
    "exit_task",
    "enable",
    "disable",
    "dump",
    "dump_cpu",
    "dump_task",
    "cgroup_init",
    "cgroup_exit",
    "cgroup_prep_move",
    "cgroup_move",
    "cgroup_cancel_move",
    "cgroup_set_weight",
    "cgroup_set_bandwidth",
    "cpu_online",
    "cpu_offline",
    "init",
    "exit",
];

/// The callback that a program of this name is; its name where that says nothing.
fn callback(name: &str) -> &str {
    let ends = |callback: &&&str| name == **callback || name.ends_with(&format!("_{callback}"));
    let known = CALLBACKS.iter().filter(ends);
    known.max_by_key(|callback| callback.len()).map_or(name, |callback| *callback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_s_name_tells_its_callback() {
        assert_eq!(callback("perch_select_cpu"), "select_cpu");
        assert_eq!(callback("lavd_cgroup_set_weight"), "cgroup_set_weight");
        assert_eq!(callback("flash_init_task"), "init_task");
        assert_eq!(callback("enqueue"), "enqueue");
        assert_eq!(callback("perch_exited"), "perch_exited");
    }
}
