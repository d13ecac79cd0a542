// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine laid out for the BPF program's arena.

mod array;
mod group;
mod overload;

use std::collections::HashMap;

use bytemuck::{Zeroable, bytes_of};
use perch_machine::Machine;
use perch_policy::{Era, Image, Mode, Modes, Policy, Reason, SetView, Topology};

use array::Array;
use group::check as check_groups;

use crate::abilities::Abilities;
use crate::band::Band;
use crate::interface::{
    self, ARENA_BASE, Config, Cpu, Idle, Llc, MAX_EVENTS, MAX_REASONS, Memory, NONE, Occupancy,
    Process, Seat, Slot, Wait, Waits,
};
use crate::places::Places;
use crate::rule::RuleError;
use crate::settings::{Settings, SettingsError, Tuning};

/// The stock kernel whose rules the live scheduler follows.
const ERA: Era = Era::V7_2;

const _: () = assert!(Reason::ALL.len() <= MAX_REASONS);

/// `SCX_OPS_ALLOW_QUEUED_WAKEUP`, with which perch_ops is compiled.
const OPS_ALLOW_QUEUED_WAKEUP: u64 = 1 << 5;
/// `SCX_OPS_ENQ_LAST`: a task whose slice ends and that is alone is enqueued.
const OPS_ENQ_LAST: u64 = 1 << 1;

/// `SCX_OPS_SWITCH_PARTIAL`: only tasks of SCHED_EXT are the scheduler's.
const OPS_SWITCH_PARTIAL: u64 = 1 << 3;

/// The callbacks that are for task groups alone.
const GROUP_MEMBERS: [&str; 7] =
    ["quiescent", "cgroup_init", "cgroup_exit", "cgroup_move", "cgroup_set_weight", LIMITS, IDLE];

/// The callback for a task that becomes runnable: for task groups and for waits.
const RUNNABLE: &str = "runnable";

/// The callback by which a kernel tells of `cpu.max`.
pub const LIMITS: &str = "cgroup_set_bandwidth";

/// The callback by which a kernel tells of a change of `cpu.idle`.
pub const IDLE: &str = "cgroup_set_idle";

/// The memory with which the BPF program starts: the arena's first bytes and its read-only
/// configuration.
#[derive(Debug)]
pub struct Plan {
    image: Vec<u8>,
    config: Config,
    places: Places,
    /// The scheduler gets the tasks of SCHED_EXT only.
    partial: bool,
}

/// The number of places for the policy's memory of tasks: 1024 for each CPU, but from 32768 (2 MiB,
/// as many as there are pids unless an administrator raised their number) to a million. A power of
/// two.
fn memories(nr_cpus: usize) -> usize {
    (nr_cpus * 1024).next_power_of_two().clamp(1 << 15, 1 << 20)
}

/// Places for processes.
fn slots(modes: Modes, tuning: &Tuning) -> usize {
    match modes.cache {
        Mode::Off => 0,
        _ => tuning.processes as usize,
    }
}

/// The most memory that the table of processes may take: it stays resident.
const PROCESSES_BYTES: usize = 1 << 30;

/// Checks that the table of processes has a sensible size on this machine.
///
/// # Errors
/// [`SettingsError::Memory`] when it is not.
fn check_processes(
    topology: &Topology,
    modes: Modes,
    tuning: &Tuning,
) -> Result<(), SettingsError> {
    let nr_cpus = topology.nr_cpus();
    let each = size_of::<Slot>()
        + nr_cpus * size_of::<Occupancy>()
        + topology.nr_llcs() * size_of::<Seat>();
    let bytes = slots(modes, tuning) * each;
    if bytes <= PROCESSES_BYTES {
        return Ok(());
    }
    Err(SettingsError::Memory {
        key: "processes",
        asked: tuning.processes as usize,
        mib: bytes >> 20,
        cpus: nr_cpus,
        most_mib: PROCESSES_BYTES >> 20,
    })
}

/// CPUs of the smallest domain that is wider than this one: its balancer looks at this one as a
/// whole.
fn span_above(topology: &Topology, of: &SetView<'_>) -> u32 {
    let first = of.iter().next().expect("no empty set shares anything");
    let wider = |weight: &u32| *weight > of.weight();
    let mut spans = topology.domains(first).map(|domain| domain.span().weight());
    spans.find(wider).unwrap_or(of.weight())
}

/// The longest time that a CPU of the machine takes to leave an idle state.
fn deepest_exit_ns(machine: &Machine) -> u64 {
    let states = machine.hardware.idle_states.iter();
    states.map(|state| state.exit_ns).max().unwrap_or(0).into()
}

/// How many CPUs have their idle bits in one line, as a power of two: as many as always share a
/// cluster, or an LLC where there are no clusters. CPUs that are numbered in turns have a line each.
fn idle_shift(topology: &Topology) -> u32 {
    // A CPU apart shares with nobody, and its bit is written once in a while: it may lie anywhere.
    let beside = || (0..topology.nr_cpus()).filter(|&cpu| !topology.is_apart(cpu));
    let home = |cpu: usize| match (topology.cluster_span(cpu), topology.llc(cpu)) {
        (Some(cluster), _) => (1, cluster.number()),
        (None, Some(llc)) => (2, llc),
        (None, None) => (3, cpu),
    };
    let share = |shift: &u32| {
        let pairs = beside().zip(beside().skip(1));
        let mut of_a_line = pairs.filter(|(one, next)| one >> shift == next >> shift);
        of_a_line.all(|(one, next)| home(one) == home(next))
    };
    (0..=6).rev().find(share).expect("a CPU shares with itself")
}

/// For each CPU: true if the kernel prefers another that shares the last-level cache and has the same
/// capacity.
fn outranked(topology: &Topology) -> Vec<bool> {
    let peers = |cpu: usize| (topology.llc(cpu), topology.capacity(cpu));
    let mut best = HashMap::new();
    for cpu in 0..topology.nr_cpus() {
        let most = best.entry(peers(cpu)).or_default();
        *most = topology.ranking(cpu).max(*most);
    }
    let shares = |cpu: usize| topology.llc(cpu).is_some();
    let is = |cpu: usize| shares(cpu) && topology.ranking(cpu) < best[&peers(cpu)];
    (0..topology.nr_cpus()).map(is).collect()
}

/// Writes every CPU that may come online, as an idle one.
fn fill_cpus(
    image: &mut [u8],
    cpus: &Array<Cpu>,
    topology: &Topology,
    overload: &overload::Reserved,
    outranked: &[bool],
) {
    for (number, &outranked) in outranked.iter().enumerate() {
        let mut state = idle_cpu();
        state.capacity = topology.capacity(number);
        state.node = topology.node(number) as u32;
        state.llc = topology.llc(number).map_or(NONE, |llc| llc as u32);
        state.overload_home = overload.home(number);
        state.ranking = topology.ranking(number);
        state.outranked = outranked.into();
        cpus.put(image, number, &state);
    }
    for number in topology.nr_cpus()..cpus.len() {
        cpus.put(image, number, &idle_cpu());
    }
}

/// Writes every set of CPUs that has a scan budget.
fn fill_llcs(image: &mut [u8], llcs: &Array<Llc>, topology: &Topology) {
    for number in 0..llcs.len() {
        let span = topology.shared_span(number);
        let llc = Llc {
            set: span.number() as u32,
            nr_idle_scan: span.weight(),
            span: span_above(topology, &span),
            idle_cores: topology.has_smt().into(),
            note_at_ns: 0,
            line: [0; 5],
        };
        llcs.put(image, number, &llc);
    }
}

/// Writes every place for a process, with its part of the occupancies and seats.
fn fill_slots(
    image: &mut [u8],
    slots: &Array<Slot>,
    topology: &Topology,
    occupancies: u64,
    seats: u64,
) {
    let of_cpus = topology.nr_cpus() * size_of::<Occupancy>();
    let of_llcs = topology.nr_llcs() * size_of::<Seat>();
    for number in 0..slots.len() {
        let slot = Slot {
            process: Process {
                occupancy: occupancies + (number * of_cpus) as u64,
                seats: seats + (number * of_llcs) as u64,
                ..Process::zeroed()
            },
            tgid: 0,
            pad: [0; 3],
        };
        slots.put(image, number, &slot);
    }
}

impl Plan {
    /// Lays out `machine`, whose kernel's view is `topology`, on a kernel where `possible` CPUs
    /// may come online, for the arena of a BPF program. `modes` are those of the settings here.
    ///
    /// # Errors
    /// [`SettingsError::Memory`] when a table would take more than it may.
    pub fn new(
        machine: &Machine,
        topology: &Topology,
        possible: usize,
        modes: Modes,
        settings: &Settings,
    ) -> Result<Plan, SettingsError> {
        let tuning = settings.tuning();
        check_processes(topology, modes, &tuning)?;
        check_groups(&tuning, topology, possible)?;
        let asked = (modes, &tuning, settings.bands());
        let plan = Plan::at(ARENA_BASE, machine, topology, possible, asked);
        Ok(Plan { partial: !settings.partial().is_empty(), ..plan })
    }

    /// Lays `machine` out for a program that runs natively, over a simulated kernel, and finds the
    /// image at `base`, a multiple of 64.
    ///
    /// # Errors
    /// As [`Plan::new`] refuses settings, and for LLCs that cannot be split.
    pub fn simulated(
        base: u64,
        machine: &Machine,
        topology: &Topology,
        settings: &Settings,
    ) -> Result<Plan, SettingsError> {
        let tuning = settings.tuning();
        let split;
        let (machine, topology) = match tuning.split_llc {
            1 => (machine, topology),
            parts => {
                let machine = machine.split_llcs(parts as usize);
                let machine = machine.map_err(SettingsError::Split)?;
                let topology = Topology::new(&machine);
                split = (machine, topology);
                (&split.0, &*split.1)
            }
        };
        let (modes, _) = settings.modes_for(topology);
        settings.with_users(|_| Err(RuleError::NoUsers))?;
        check_processes(topology, modes, &tuning)?;
        check_groups(&tuning, topology, topology.nr_cpus())?;
        let asked = (modes, &tuning, settings.bands());
        Ok(Plan::at(base, machine, topology, topology.nr_cpus(), asked))
    }

    fn at(
        base: u64,
        machine: &Machine,
        topology: &Topology,
        possible: usize,
        (modes, tuning, bands): (Modes, &Tuning, &[Band]),
    ) -> Plan {
        let nr_cpus = topology.nr_cpus();
        let possible = possible.max(nr_cpus);
        // With the asymmetric domains: what has a scan budget and queues to level.
        let nr_llcs = topology.nr_shared();
        let mut image = Image::new(base);
        let header = topology.image(&mut image);
        let cpus = Array::<Cpu>::reserve(&mut image, possible);
        let llcs = Array::<Llc>::reserve(&mut image, nr_llcs);
        let (epochs, llc_loads) = topology.image_cache(&mut image, possible);
        let nr_slots = slots(modes, tuning);
        let slots = Array::<Slot>::reserve(&mut image, nr_slots);
        let occupancies = image.reserve(nr_slots * nr_cpus * size_of::<Occupancy>());
        let seats = image.reserve(nr_slots * topology.nr_llcs() * size_of::<Seat>());
        let waiting = image.reserve(possible.div_ceil(64) * 8);
        let idle_shift = idle_shift(topology);
        let idle = Array::<Idle>::reserve(&mut image, possible.div_ceil(1 << idle_shift));
        let misfits = image.reserve(possible.div_ceil(64) * 8);
        let sched_idle = image.reserve(possible.div_ceil(64) * 8);
        let nr_memories = memories(nr_cpus);
        let memories = Array::<Memory>::reserve(&mut image, nr_memories);
        let (counted, waiting_tasks) = if tuning.waits { (possible, nr_memories) } else { (0, 0) };
        let waits = Array::<Waits>::reserve(&mut image, counted);
        let task_waits = Array::<Wait>::reserve(&mut image, waiting_tasks);
        let rules = Array::<interface::Band>::reserve(&mut image, bands.len());
        let overload = overload::Reserved::new(&mut image, topology, possible, modes, bands);
        let size = group::Size::new(tuning, topology, possible);
        let groups = group::Reserved::new(&mut image, tuning, size);
        let limits = image.reserve(groups.len().div_ceil(64) * 8);
        let steers = matches!(modes.steer, Mode::Posted | Mode::Perch);
        let parts = topology.has_smt();
        let outranked = outranked(topology);
        let ranks = outranked.contains(&true);
        let mut image = image.bytes().to_vec();

        fill_cpus(&mut image, &cpus, topology, &overload, &outranked);
        fill_llcs(&mut image, &llcs, topology);
        fill_slots(&mut image, &slots, topology, occupancies, seats);
        for (number, band) in bands.iter().enumerate() {
            rules.put(&mut image, number, &band.image());
        }
        overload.fill(&mut image);
        groups.fill(&mut image);

        let config = Config {
            policy: *Policy::new(ERA, modes).raw(),
            topology: header,
            cpus: cpus.at(),
            llcs: llcs.at(),
            waiting,
            idle: idle.at(),
            misfits,
            sched_idle,
            epochs,
            llc_loads,
            slice_ns: tuning.slice_us.ns(),
            slice_min_ns: tuning.slice_min_us.ns(),
            lag_ns: tuning.lag_us.ns(),
            preempt_ns: tuning.preempt_us.ns(),
            balance_ns: tuning.balance_ms.ns(),
            behind_ns: tuning.behind_us.ns(),
            behind_most_ns: tuning.behind_us.ns() + deepest_exit_ns(machine),
            steal_remote_ns: tuning.steal_remote_us.ns(),
            memories: memories.at(),
            memory_mask: nr_memories as u32 - 1,
            nr_llcs: nr_llcs as u32,
            nr_possible: possible as u32,
            detail: tuning.detail.into(),
            capacities: (modes.capacity != Mode::Off).into(),
            cache: modes.cache as u8,
            utils: (modes.capacity != Mode::Off || modes.cache == Mode::Upstream).into(),
            slots: slots.at(),
            nr_slots: nr_slots as u32,
            follows: (modes.capacity != Mode::Off || modes.cache != Mode::Off || parts || ranks)
                .into(),
            bands: rules.at(),
            overload: overload.header(),
            overloaded: overload.marks(),
            band_period_ns: tuning.band_period_ms.ns(),
            band_share_ns: tuning.band_percent.of_ns(tuning.band_period_ms),
            nr_bands: bands.len() as u32,
            band_cgroups: bands.iter().any(|band| band.cgroup.is_some()).into(),
            band_users: bands.iter().any(|band| band.user.is_some()).into(),
            groups: groups.at(),
            limits,
            nr_groups: groups.len() as u32,
            credits: (steers && groups.len() > 0).into(),
            parts: parts.into(),
            ranks: ranks.into(),
            idle_shift,
            task_waits: task_waits.at(),
            waits: waits.at(),
            group_waits: groups.waits(),
            counts_waits: tuning.waits.into(),
            group_parts: groups.parts() as u32,
        };
        let places = Places {
            cpus: cpus.offset(0),
            nr_cpus,
            waits: tuning.waits.then(|| waits.offset(0)),
            groups: groups.places(),
            overloaded: overload.mark_places(),
            overload: overload.counter_places(),
        };
        Plan { image, config, places, partial: false }
    }

    /// The bytes that lie at the base address, for a BPF program [`ARENA_BASE`], when the program
    /// starts.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// The content of the section `.rodata.config`.
    pub fn config(&self) -> &[u8] {
        bytes_of(&self.config)
    }

    /// The name of the program's `struct sched_ext_ops`.
    pub fn ops(&self) -> &'static str {
        match self.config.nr_bands {
            0 => "perch_ops",
            _ => "perch_band_ops",
        }
    }

    /// The flags of that structure.
    pub fn flags(&self) -> u64 {
        // A task that leaves for a CPU that suits it better, or whose group has used up its cpu.max,
        // comes to enqueue though it is alone.
        let config = &self.config;
        let moves = [config.utils.into(), config.parts, config.ranks];
        let last = moves.iter().any(|&on| on != 0) || config.nr_groups > 0;
        let flags = [(last, OPS_ENQ_LAST), (self.partial, OPS_SWITCH_PARTIAL)];
        let set = flags.into_iter().filter(|(set, _)| *set);
        set.fold(OPS_ALLOW_QUEUED_WAKEUP, |all, (_, flag)| all | flag)
    }

    /// The callbacks of that structure that a kernel with these abilities is not told of.
    pub fn left_out(&self, kernel: Abilities) -> Vec<&'static str> {
        let mut members = Vec::new();
        if kernel.takes_back {
            members.push("cpu_release");
        } else {
            // On 6.18 hotplug was seen to hang with them (docs/live/maintainer.md).
            members.extend(["cpu_online", "cpu_offline"]);
        }
        let groups = self.config.nr_groups > 0;
        if !groups {
            members.extend(GROUP_MEMBERS);
            if self.config.counts_waits == 0 {
                members.push(RUNNABLE);
            }
        } else {
            let told = [(kernel.limits, LIMITS), (kernel.idle_groups, IDLE)];
            members.extend(told.iter().filter(|(told, _)| !told).map(|(_, name)| name));
        }
        // Without a table of processes or of groups the program need not know to which of them
        // a task belongs.
        if self.config.nr_slots == 0 && !groups {
            members.push("exit_task");
            if self.config.nr_bands == 0 {
                members.push("init_task");
            }
        }
        members
    }

    /// The number of entries of a map whose size depends on the configuration.
    pub fn max_entries(&self, map: &str) -> Option<u32> {
        match map {
            "processes" | "free_slots" => Some(self.config.nr_slots.max(1)),
            "free_groups" => Some(self.config.nr_groups.max(1)),
            _ => None,
        }
    }

    /// The places in the image where the program counts.
    pub fn places(&self) -> &Places {
        &self.places
    }
}

/// Returns a CPU that is idle, of which nothing was counted.
pub fn idle_cpu() -> Cpu {
    Cpu {
        clock: 0,
        curr_vtime: 0,
        exec_start: 0,
        busy_ns: 0,
        served_ns: 0,
        idle_since_ns: 0,
        curr_weight: 0,
        util: 0,
        queued: 0,
        pull_from: NONE,
        capacity: 0,
        node: 0,
        busy_seen_ns: 0,
        unused_claims: 0,
        stuck: 0,
        move_to: NONE,
        flat: 0,
        allowed_at: 0,
        llc: NONE,
        process: 0,
        refused: 0,
        seeks: 0,
        band_coming: 0,
        band_look_at: 0,
        band_prio: 0,
        band_first: 0,
        band_movable: 0,
        band_spent: 0,
        band_changes: 0,
        overloaded: 0,
        overload_mark: 0,
        overload_home: 0,
        band_since_ns: 0,
        band_used_ns: 0,
        band_arrivals: 0,
        band_returns: 0,
        group: 0,
        impatient: 0,
        move_event: 0,
        behind: 0,
        jumped: 0,
        turn_start: 0,
        held: 0,
        limited: 0,
        swept: 0,
        sched_idle: 0,
        granted_ns: 0,
        weights: 0,
        weighed: 0,
        lightest: 0,
        load: 0,
        ranking: 0,
        outranked: 0,
        events: [0; MAX_EVENTS],
        reasons: [0; MAX_REASONS],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(address: u64) -> usize {
        (address - ARENA_BASE) as usize
    }

    #[test]
    fn every_cpu_and_cache_is_laid_out() {
        let machine = perch_machine::resolve("kunpeng920").unwrap();
        let topology = Topology::new(&machine);
        let modes = Modes { cluster: Mode::Perch, ..Modes::default() };
        let plan = Plan::new(&machine, &topology, 130, modes, &Settings::default()).unwrap();
        let at = plan.places().cpus;
        let words = |cpu: usize, field: usize| {
            let at = at + cpu * size_of::<Cpu>() + field;
            u32::from_ne_bytes(plan.image()[at..at + 4].try_into().unwrap())
        };
        for (number, cpu) in machine.cpus.iter().enumerate() {
            assert_eq!(words(number, std::mem::offset_of!(Cpu, node)), cpu.node);
            assert_eq!(words(number, std::mem::offset_of!(Cpu, capacity)), 1024);
            assert_eq!(words(number, std::mem::offset_of!(Cpu, pull_from)), NONE);
        }
        assert_eq!(plan.config.nr_llcs as usize, topology.nr_shared());
        assert!(offset(plan.config.waiting) + 16 <= plan.image().len());
        assert_eq!((plan.config.nr_slots, plan.config.cache), (0, 0));
        assert_eq!(plan.config().len(), size_of::<Config>());
        let mut settings = Settings::default();
        settings.add_partial("cgroup=/web".parse().unwrap());
        let some = Plan::new(&machine, &topology, 130, modes, &settings).unwrap();
        assert_eq!(some.flags(), plan.flags() | OPS_SWITCH_PARTIAL);
    }

    #[test]
    fn a_cpu_knows_whether_another_of_its_cache_ranks_higher() {
        let text = "name = 'ranked'\n[topology]\nllcs_per_node = 2\ncores_per_llc = 3\n\
                    [[ranking]]\ncpus = '1,3-5'\nvalue = 200\n\
                    [[ranking]]\ncpus = '0'\nvalue = 180\n\
                    [[capacity]]\ncpus = '2'\nvalue = 512\n";
        let machine = Machine::from_toml_str(text, "ranked").unwrap();
        let topology = Topology::new(&machine);
        let modes = Modes::default();
        let plan = Plan::new(&machine, &topology, 8, modes, &Settings::default()).unwrap();
        let outranked = |cpu: usize| {
            let at = plan.places().cpus + cpu * size_of::<Cpu>();
            plan.image()[at + std::mem::offset_of!(Cpu, outranked)]
        };
        // CPU 2 has another capacity, and CPUs 3 to 5 of the other cache are equals.
        let all: Vec<u8> = (0..8).map(outranked).collect();
        assert_eq!(all, [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((plan.config.ranks, plan.config.follows), (1, 1));
        assert_eq!(plan.flags(), OPS_ALLOW_QUEUED_WAKEUP | OPS_ENQ_LAST);
    }

    #[test]
    fn every_process_has_places_of_its_own() {
        let machine = perch_machine::resolve("epyc7543").unwrap();
        let topology = Topology::new(&machine);
        let modes = Modes { cache: Mode::Perch, ..Modes::default() };
        let mut settings = Settings::default();
        settings.set("processes=3").unwrap();
        let plan = Plan::new(&machine, &topology, 128, modes, &settings).unwrap();
        assert_eq!((plan.config.nr_slots, plan.config.cache), (3, Mode::Perch as u8));
        let word = |at: u64| {
            let at = offset(at);
            u64::from_ne_bytes(plan.image()[at..at + 8].try_into().unwrap())
        };
        let mut ends = Vec::new();
        for slot in 0..3 {
            let at = plan.config.slots + slot * size_of::<Slot>() as u64;
            let (occupancy, seats) = (word(at), word(at + 8));
            ends.push((occupancy, occupancy + 128 * size_of::<Occupancy>() as u64));
            ends.push((seats, seats + 16 * size_of::<Seat>() as u64));
        }
        ends.sort_unstable();
        assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "{ends:?}");
        assert!(offset(ends[5].1) <= plan.image().len());
        // An LLC's CPUs are balanced by the domain above: a node of four of them.
        let at = offset(plan.config.llcs) + std::mem::offset_of!(Llc, span);
        let span = u32::from_ne_bytes(plan.image()[at..at + 4].try_into().unwrap());
        assert_eq!(span, 32);
        let llc = |cpu: usize| {
            let at = plan.places().cpus + cpu * size_of::<Cpu>() + std::mem::offset_of!(Cpu, llc);
            u32::from_ne_bytes(plan.image()[at..at + 4].try_into().unwrap()) as usize
        };
        assert!((0..128).all(|cpu| Some(llc(cpu)) == topology.llc(cpu)));
    }

    #[test]
    fn a_table_of_processes_beyond_a_gibibyte_is_refused() {
        let machine = Machine::regular("wide", 4, 1, 8, 8, 4, 1).unwrap();
        let topology = Topology::new(&machine);
        let modes = Modes { cache: Mode::Perch, ..Modes::default() };
        let tuning = Tuning { processes: 65_536, ..Tuning::default() };
        let error = check_processes(&topology, modes, &tuning).unwrap_err();
        assert_eq!(
            error.to_string(),
            "processes: 65536 of them take 1060 MiB on this machine of 1024 CPUs: expected at \
             most 1024 MiB"
        );
        assert!(check_processes(&topology, Modes::default(), &tuning).is_ok());
        assert!(check_processes(&topology, modes, &Tuning::default()).is_ok());
    }
}
