// SPDX-License-Identifier: GPL-2.0-or-later
//! What a program and sched_ext cost: instructions, as counted in deterministic guests, and the cache
//! lines of the mask of idle CPUs and of what the program itself says that its CPUs share
//! (docs/scx.md has the counts).

use std::collections::{BTreeSet, HashMap};

use perch_sched::hardware::Costs as Hardware;

/// Instructions of the program's callbacks, with the kernel's functions that they call, but for the
/// moves of tasks between queues. A scheduler that was counted has its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub select_cpu: u32,
    /// `select_cpu` that puts the task on the idle CPU where it ran last.
    pub select_prev: u32,
    /// `select_cpu` that puts the task behind the one that runs.
    pub select_here: u32,
    pub enqueue: u32,
    pub dispatch: u32,
    pub running: u32,
    pub stopping: u32,
    pub tick: u32,
    /// `runnable` and `quiescent`.
    pub queued: u32,
    pub init_task: u32,
    pub exit_task: u32,
    pub enable: u32,
    pub update_idle: u32,
    pub timer: u32,
    /// Any other.
    pub rare: u32,
}

/// Instructions with which the kernel enters a program and leaves it.
const ENTRY: u32 = 27;

/// Instructions by which sched_ext's own part of a wake-up exceeds the fair class's, and its part of
/// the way to sleep: half each of what a pinned pipe takes more under perch, less the callbacks.
const WAKE: u32 = 195;
const SLEEP: u32 = 195;

/// Instructions by which a callback takes longer that moves a task to its CPU's own queue, where the
/// task is that CPU's already, and where it is another's; and the lines of the other CPU's queue and
/// of the task that are fetched then.
const MOVE: u32 = 575;
const FETCH: u32 = 2300;
const FETCHED_LINES: u32 = 8;

/// Bytes of a cache line.
const LINE: usize = 64;

/// A cache line that many CPUs use.
#[derive(Debug, Default)]
struct Line {
    /// The CPU that wrote it last.
    owner: usize,
    /// The CPUs that have it too since then.
    readers: BTreeSet<usize>,
    free_ns: u64,
}

impl Line {
    /// The time for which `cpu` waits for the line, which it reads or writes.
    fn wait_ns(&mut self, hardware: &Hardware, cpu: usize, writes: bool, now_ns: u64) -> u64 {
        let others = self.readers.iter().find(|&&reader| reader != cpu);
        let from = match (self.owner == cpu, others, writes) {
            (true, None, _) | (true, Some(_), false) => return 0,
            (false, _, false) if self.readers.contains(&cpu) => return 0,
            // The other copies go, the data is here already.
            (true, Some(&reader), true) => reader,
            (false, ..) => self.owner,
        };
        let end_ns = now_ns.max(self.free_ns) + hardware.transfer_ns(1, from, cpu);
        if writes {
            self.owner = cpu;
            self.readers.clear();
            self.free_ns = end_ns;
        } else {
            self.readers.insert(cpu);
        }
        end_ns - now_ns
    }
}

/// The costs on one machine.
pub(crate) struct Costs {
    hardware: Hardware,
    counted: Counted,
    /// The words of 512 CPUs each; the masks of CPUs and of cores move together.
    idle: Vec<Line>,
    /// Lines of the program's own memory that its CPUs share, by address.
    own: HashMap<usize, Line>,
}

impl Costs {
    pub fn new(hardware: Hardware, counted: Counted, nr_cpus: usize) -> Costs {
        Costs {
            hardware,
            counted,
            idle: Vec::from_iter((0..nr_cpus.div_ceil(512)).map(|_| Line::default())),
            own: HashMap::new(),
        }
    }

    fn ns(&self, instructions: u32) -> u64 {
        self.hardware.instructions_ns(instructions)
    }

    pub fn callback_ns(&self, callback: impl FnOnce(&Counted) -> u32) -> u64 {
        self.ns(callback(&self.counted) + ENTRY)
    }

    pub fn wake_ns(&self) -> u64 {
        self.ns(WAKE)
    }

    pub fn sleep_ns(&self) -> u64 {
        self.ns(SLEEP)
    }

    /// The time of a search for a task that waits on another CPU's queue.
    pub fn search_ns(&self) -> u64 {
        self.ns(FETCH - MOVE)
    }

    /// The time of a task's move to a CPU's own queue, from another queue of that CPU or from
    /// another CPU's.
    pub fn move_ns(&self, from: usize, to: usize) -> u64 {
        match from == to {
            true => self.ns(MOVE),
            // The search has taken the rest already.
            false => self.ns(MOVE) + self.hardware.transfer_ns(FETCHED_LINES, from, to),
        }
    }

    /// The time for which `cpu`, which writes the mask of idle CPUs where `of` is in it, waits for its
    /// line.
    pub fn idle_line_ns(&mut self, cpu: usize, of: usize, now_ns: u64) -> u64 {
        self.idle[of / 512].wait_ns(&self.hardware, cpu, true, now_ns)
    }

    /// The time for which `cpu`, which reads or writes the memory at `at`, waits for its line.
    pub fn line_ns(&mut self, at: usize, cpu: usize, writes: bool, now_ns: u64) -> u64 {
        let line =
            self.own.entry(at / LINE).or_insert_with(|| Line { owner: cpu, ..Line::default() });
        line.wait_ns(&self.hardware, cpu, writes, now_ns)
    }
}
