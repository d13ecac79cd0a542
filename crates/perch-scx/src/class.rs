// SPDX-License-Identifier: GPL-2.0-or-later
//! A loaded scheduler as a class of the simulated kernel.

use std::collections::HashMap;

use perch_engine::TaskId;
use perch_sched::{ExtClass, ExtKernel, ExtWake, NewGroup, NewTask, Setup};

use crate::abi::{Callbacks, KernelCalls, flag};
use crate::calls;
use crate::core::Core;
use crate::costs::{Costs, Counted};
use crate::faults::Faults;
use crate::maps::Maps;
use crate::memory::{CgroupShape, Memory};
use crate::object::{Object, ObjectError};

/// What a loader does beside loading the object.
pub(crate) trait Loader {
    /// The name of the scheduler's `struct sched_ext_ops`; empty for its first.
    fn ops(&self) -> &str;

    /// What the program's callbacks cost.
    fn counted(&self) -> Counted;

    /// Writes what the program finds in its variables when it starts, and changes the callbacks and
    /// the sizes of maps as the loader would.
    ///
    /// # Errors
    /// The object is not what the loader expects.
    fn prepare(
        &mut self,
        object: &Object,
        callbacks: &mut Callbacks,
        maps: &mut Maps,
    ) -> Result<(), ObjectError>;

    /// Runs what the loader runs of the program before the scheduler's init, with the kernel at hand.
    ///
    /// # Errors
    /// What the program refused.
    fn start(&mut self, _object: &Object, _core: &Core) -> Result<(), String> {
        Ok(())
    }
}

/// A scheduler that is loaded into a simulated kernel.
pub(crate) struct Scheduler {
    object: Object,
    loader: Box<dyn Loader>,
    loaded: Option<Loaded>,
    faults: Option<u64>,
}

struct Loaded {
    // Boxed, since the program has the addresses of both.
    core: Box<Core>,
    _calls: Box<KernelCalls>,
    tasks: Vec<NewTask>,
}

impl Scheduler {
    pub fn new(object: Object, loader: Box<dyn Loader>) -> Scheduler {
        Scheduler { object, loader, loaded: None, faults: None }
    }

    /// Lets things happen that are rare on a real machine, as the seed says, if there is one (see
    /// [`Faults`]).
    pub fn with_faults(self, faults: Option<u64>) -> Scheduler {
        Scheduler { faults, ..self }
    }

    fn core(&self) -> &Core {
        &self.loaded.as_ref().expect("it is loaded first").core
    }

    /// Runs a function of the class, with the kernel at hand.
    fn run<T>(&self, kernel: &mut ExtKernel<'_>, function: impl FnOnce(&Core) -> T) -> T {
        let core = self.core();
        core.kernel.lend(kernel, || function(core))
    }
}

/// sched_ext's weight for a nice level: 100 for nice 0.
fn weight(nice: i8) -> u32 {
    let load = perch_sched::NICE_WEIGHT[(i32::from(nice) + 20) as usize];
    (load * 100).div_ceil(1024).clamp(1, 10_000)
}

/// `cpu.weight` of a group with these shares.
fn group_weight(shares: u32) -> u32 {
    ((u64::from(shares) * 100 + 512) / 1024).clamp(1, 10_000) as u32
}

/// The cgroups of a run: the root, then the groups.
fn cgroups(groups: &[NewGroup]) -> Vec<CgroupShape> {
    let root = CgroupShape { path: vec![0], name: String::new() };
    let mut all = vec![root];
    for (number, group) in groups.iter().enumerate() {
        let above = group.parent.map_or(0, |parent| parent + 1);
        let mut path = all[above].path.clone();
        path.push(number + 1);
        all.push(CgroupShape { path, name: format!("group{number}") });
    }
    all
}

impl ExtClass for Scheduler {
    fn load(&mut self, kernel: &mut ExtKernel<'_>, setup: &Setup<'_>) -> Result<(), String> {
        let (object, loader) = (&self.object, &mut self.loader);
        let nr_cpus = kernel.topology().nr_cpus();
        let cgroups = cgroups(setup.groups);
        let memory = Memory::new(object.layout(), kernel.nr_tasks(), nr_cpus, &cgroups);
        let hardware = perch_sched::hardware::Costs::new(setup.machine);
        let costs = Costs::new(hardware, loader.counted(), nr_cpus);
        let mut maps = Maps::new(nr_cpus);
        let mut callbacks = object.callbacks(loader.ops()).map_err(|e| e.to_string())?;
        (loader.prepare(object, &mut callbacks, &mut maps)).map_err(|e| e.to_string())?;
        let faults = Faults::new(self.faults);
        let core = Box::new(Core::new(kernel, memory, callbacks, maps, costs, faults));
        let calls = Box::new(calls::table(&core));
        // SAFETY: both are boxed and live as long as the object is called.
        unsafe { object.bind(&*calls) };
        // The threads of a process share its data; its number is that of the first.
        let mut processes = HashMap::new();
        for (number, task) in setup.tasks.iter().enumerate() {
            let id = TaskId(number as u32);
            let pid = number as i32 + 1;
            let tgid = match task.space {
                Some(space) => *processes.entry(space).or_insert(pid),
                None => pid,
            };
            let cgroup = task.group.map_or(0, |group| group + 1);
            core.memory.put_task(id, pid, tgid, task.nice.into(), cgroup);
            object.set_uclamp(core.memory.task(id), task.uclamp.0, task.uclamp.1);
        }
        core.kernel.lend(kernel, || {
            loader.start(object, &core)?;
            if let Some(init) = callbacks.init {
                let error = init();
                if error != 0 {
                    return Err(format!("ops.init() failed with {error}"));
                }
            }
            if let Some(cgroup_init) = callbacks.cgroup_init {
                for number in 0..cgroups.len() {
                    let weight = match number {
                        0 => 100,
                        _ => group_weight(setup.groups[number - 1].shares),
                    };
                    let error = cgroup_init(core.memory.cgroups.at(number), weight);
                    if error != 0 {
                        return Err(format!("ops.cgroup_init() failed with {error}"));
                    }
                }
            }
            core.switch_on();
            Ok(())
        })?;
        self.loaded = Some(Loaded { core, _calls: calls, tasks: setup.tasks.to_vec() });
        Ok(())
    }

    fn fork(&mut self, kernel: &mut ExtKernel<'_>, task: TaskId) {
        let loaded = self.loaded.as_ref().expect("it is loaded first");
        let spec = &loaded.tasks[task.0 as usize];
        let cgroup = spec.group.map_or(0, |group| group + 1);
        self.run(kernel, |core| core.fork(task, weight(spec.nice), cgroup));
    }

    fn exit(&mut self, kernel: &mut ExtKernel<'_>, task: TaskId) {
        self.run(kernel, |core| core.exit(task));
    }

    fn select(
        &mut self,
        kernel: &mut ExtKernel<'_>,
        task: TaskId,
        prev: usize,
        wake: ExtWake,
    ) -> usize {
        let flags = match wake {
            ExtWake::Forked => flag::WAKE_FORK,
            ExtWake::Woken { sync: false } => flag::WAKE_TTWU,
            ExtWake::Woken { sync: true } => flag::WAKE_TTWU | flag::WAKE_SYNC,
        };
        self.run(kernel, |core| core.select(task, prev, flags))
    }

    fn enqueue(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId, woken: bool) {
        self.run(kernel, |core| core.enqueue(cpu, task, woken));
    }

    fn dequeue(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId, sleeps: bool) {
        self.run(kernel, |core| core.dequeue(cpu, task, sleeps));
    }

    fn pick(
        &mut self,
        kernel: &mut ExtKernel<'_>,
        cpu: usize,
        prev: Option<TaskId>,
    ) -> Option<TaskId> {
        self.run(kernel, |core| core.pick(cpu, prev))
    }

    fn search_ns(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize) -> u64 {
        self.run(kernel, |core| core.search_ns(cpu))
    }

    fn put(
        &mut self,
        kernel: &mut ExtKernel<'_>,
        cpu: usize,
        task: TaskId,
        next: Option<TaskId>,
        outranked: bool,
    ) {
        self.run(kernel, |core| core.put(cpu, task, next, outranked));
    }

    fn set_next(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId) {
        self.run(kernel, |core| core.set_next(cpu, task));
    }

    fn tick(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId) {
        self.run(kernel, |core| core.tick(cpu, task));
    }

    fn yields(&mut self, kernel: &mut ExtKernel<'_>, _cpu: usize, task: TaskId) {
        self.run(kernel, |core| core.yields(task));
    }

    fn charge(&mut self, kernel: &mut ExtKernel<'_>, _cpu: usize, task: TaskId, ran_ns: u64) {
        self.run(kernel, |core| core.charge(task, ran_ns));
    }

    fn idle(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, exit_ns: Option<u32>) {
        self.run(kernel, |core| core.idle(cpu, exit_ns));
    }

    fn bind(&mut self, kernel: &mut ExtKernel<'_>, task: TaskId) {
        self.run(kernel, |core| core.bind(task));
    }

    fn timer(&mut self, kernel: &mut ExtKernel<'_>, key: u64) {
        self.run(kernel, |core| {
            let expired = core.timers.borrow().expired(key, core.now_ns());
            if let Some(timer) = expired {
                core.charge_call(|counted| counted.timer);
                self.object.timer_expired(timer);
            }
            // Where real-time tasks have every CPU, no task of the program's sees a tick.
            core.watch();
        });
    }

    fn queues_wakeups(&self) -> bool {
        self.core().callbacks.flags & flag::OPS_ALLOW_QUEUED_WAKEUP != 0
    }

    fn waiting(&self) -> Vec<TaskId> {
        self.core().queues.borrow().waiting()
    }

    fn ended(&self) -> Option<&str> {
        self.core().ended()
    }
}
