// SPDX-License-Identifier: GPL-2.0-or-later
//! The costs of a machine: times by distance, cache sizes, idle states.
//!
//! Every value belongs to the machine, never to an experiment's arm. docs/calibration.md lists the
//! source of each.

use crate::model::Distance;

/// A value for each [`Distance`], nearest first; units are those of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByDistance(pub [u32; 7]);

impl ByDistance {
    /// Returns the value for `distance`.
    pub fn at(&self, distance: Distance) -> u32 {
        self.0[distance as usize]
    }
}

/// One idle state of a CPU, in the terms of cpuidle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// The state's name in `/sys/devices/system/cpu/cpu0/cpuidle/state*/name`.
    pub name: String,
    /// Nanoseconds from the wake-up to the first instruction.
    pub exit_ns: u32,
    /// Nanoseconds of idleness from which the state pays for itself.
    pub residency_ns: u32,
}

/// The costs of accesses to the kernel's contended cache lines, beside `transfer_ns` and
/// `llc_hit_ns`. Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContendedLine {
    /// The time of a load or a plain store of a line that the CPU's L1 has.
    pub hit_ns: u32,
    /// The time of an atomic read-modify-write of a line that the CPU owns.
    pub atomic_ns: u32,
    /// The time that a line stays with a CPU that has fetched it before the next CPU in the queue
    /// can have it, beyond the transfer.
    pub hold_ns: u32,
}

impl Default for ContendedLine {
    /// Returns an L1 hit of 5 cycles and a locked instruction of 20, at some 4 GHz (Intel's and
    /// AMD's cores since 2013 differ little: Agner Fog, "Instruction tables"), and no hold beyond
    /// the transfer.
    fn default() -> ContendedLine {
        ContendedLine { hit_ns: 1, atomic_ns: 5, hold_ns: 0 }
    }
}

/// A core's work while it waits for memory. Only guests with modelled time use it whole (`perch
/// lab run --timed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    /// Instructions of a core alone in 100 cycles, while nothing misses the private caches.
    pub instructions_per_100_cycles: u32,
    /// Misses that are under way at the same time, at least 1.
    pub misses_at_once: u32,
    /// Instructions that the core looks ahead past one that waits.
    pub reorder_instructions: u32,
    /// Stores that wait for their lines while the core goes on; 0: each store waits.
    pub store_buffer: u32,
}

impl Default for Core {
    /// Returns an out-of-order core of the years around 2018, of no vendor in particular: ROBs have
    /// 96 to 256 entries and store buffers 32 to 64. One instruction a cycle is what kernels make of
    /// such cores: the instructions that were counted on guests, divided by the times of public
    /// benchmarks (docs/hardware.md). Three misses at once are fewer than the ten and more for which
    /// such cores have room, because a kernel's load often needs the value of the one before.
    fn default() -> Core {
        Core {
            instructions_per_100_cycles: 100,
            misses_at_once: 3,
            reorder_instructions: 128,
            store_buffer: 32,
        }
    }
}

/// The hardware's costs. Times are nanoseconds at the highest frequency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// The highest sustained frequency of the most capable CPU, MHz.
    pub frequency_mhz: u32,
    /// The size of one cache line, bytes.
    pub line_bytes: u32,
    /// The size of one core's L1 data cache, bytes.
    pub l1d_bytes: u64,
    /// The size of one L2 cache, bytes; 0 when the machine has none.
    pub l2_bytes: u64,
    /// True where one L2 serves a whole cluster (Jacobsville), rather than each core its own.
    pub l2_per_cluster: bool,
    /// The size of one last-level cache, bytes.
    pub llc_bytes: u64,
    /// The time to fetch one line that another CPU has modified, by the distance to that CPU. For
    /// `Distance::Cpu` it is the time of a hit in the own L2.
    pub transfer_ns: ByDistance,
    /// The time from sending a reschedule interrupt until its handler runs on a CPU that is not
    /// idle.
    pub ipi_ns: ByDistance,
    /// The time of one switch between two tasks on a CPU: scheduler, registers, address space.
    pub context_switch_ns: u32,
    /// The part of such a switch after which a CPU that runs out of tasks counts as idle, from the
    /// task's call of the scheduler on. Wakers look elsewhere until then.
    pub switch_out_ns: u32,
    /// The time of a switch from the idle task to a wakee that has just been enqueued: out of the
    /// idle loop, then as between two tasks. It is no task's time. `None`: `context_switch_ns`.
    pub switch_in_ns: Option<u32>,
    /// The time to fetch one line from the last-level cache.
    pub llc_hit_ns: u32,
    /// The time of the waker's part of a wake-up: locks and queue, without the scans.
    pub wake_ns: u32,
    /// The time to look at one more CPU, in a wake-up's scan or a pass of the balancer.
    pub examine_ns: u32,
    /// The time of a pass of the balancer, without the CPUs that it looks at.
    pub balance_ns: u32,
    /// The number of lines of each busy CPU's run queue that a pass of the balancer waits for: what
    /// the CPU has written since, and the pass reads (`nr_running`, the averages, `curr`).
    pub balance_lines: u32,
    /// The time that a tick takes from the CPU that it interrupts. With 0 a tick takes no time, and
    /// no work of the kernel on its own account takes any, as in tables that were fitted without
    /// these times.
    pub tick_ns: u32,
    /// The time to fetch one line from memory of the own node, and of a remote node.
    pub memory_ns: (u32, u32),
    /// The idle states, shallowest first; never empty.
    pub idle_states: Vec<IdleState>,
    /// The throughput of one SMT thread while a sibling runs, in 1024ths of the thread alone.
    pub smt_throughput_1024: u32,
    /// The percentage of all work that waits (for memory, for a pipeline that a system call
    /// emptied) and takes as long on a CPU of less capacity; 0 to 90. Capacities are measured with
    /// Dhrystone, which never waits.
    pub stall_pct: u32,
    /// The costs of the kernel's contended cache lines. With `None` such lines are not modelled,
    /// and cost nothing.
    pub contended_line: Option<ContendedLine>,
    /// A core's work while it waits for memory.
    pub core: Core,
}

/// The cache lines that a task touches every time it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Their number.
    pub lines: u32,
    /// The number of those that tasks of its kind have in common: code, queues. Every CPU that runs
    /// such tasks has them, so they do not follow the task from one to another.
    pub common: u32,
}

impl From<u32> for Footprint {
    /// Returns the footprint of a task that has all its lines to itself.
    fn from(lines: u32) -> Footprint {
        Footprint { lines, common: 0 }
    }
}

impl Hardware {
    /// Returns whether the times that make distances differ are those of a machine file that gives none:
    /// of a line's way between two CPUs, and of an interrupt's. Sizes, the frequency and idle states do not
    /// count, because `perch machine detect` finds them, nor does a single time that somebody sets.
    pub fn has_default_costs(&self) -> bool {
        let times = |of: &Hardware| (of.transfer_ns, of.ipi_ns);
        times(self) == times(&Hardware::default())
    }
}

impl Default for Hardware {
    /// Returns the costs of a machine file that gives none: round figures of a server of the years
    /// around 2020, of no vendor in particular. docs/machines.md lists each.
    fn default() -> Hardware {
        Hardware {
            frequency_mhz: 3000,
            line_bytes: 64,
            l1d_bytes: 32 << 10,
            l2_bytes: 1 << 20,
            l2_per_cluster: false,
            llc_bytes: 32 << 20,
            transfer_ns: ByDistance([4, 10, 30, 50, 100, 110, 180]),
            ipi_ns: ByDistance([300, 600, 700, 800, 1000, 1000, 1300]),
            context_switch_ns: 1000,
            switch_out_ns: 700,
            switch_in_ns: None,
            llc_hit_ns: 20,
            wake_ns: 500,
            examine_ns: 15,
            balance_ns: 2000,
            balance_lines: 3,
            tick_ns: 0,
            memory_ns: (90, 150),
            idle_states: vec![IdleState {
                name: "C1".to_string(),
                exit_ns: 1000,
                residency_ns: 1000,
            }],
            smt_throughput_1024: 640,
            stall_pct: 0,
            contended_line: None,
            core: Core::default(),
        }
    }
}
