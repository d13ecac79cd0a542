// SPDX-License-Identifier: GPL-2.0-or-later
//! The layout of the fields: which of them are on one line.
//!
//! Offsets of the stock layout are those of `struct root_domain` in 6.15 on x86-64, without lock
//! debugging, and those that the series' reports name: `rto_count` at 0x4 and `overloaded` at 0x28
//! of the first line, `rto_push_work` at 0x0, `rto_lock` at 0x18, `rto_loop_next` at 0x24, `rto_loop_start` at 0x28, `rto_mask` at 0x30 and the
//! first of cpupri's counts at 0x38 of the third. The bitmaps are objects of their own, and so are
//! counters other than the shared one. An unpadded counter has neighbours on its node's slab line
//! that the reports do not name. The model leaves them out, so that with as many nodes an unpadded
//! counter costs what a padded one does.

use std::ops::Range;

use perch_policy::Layout;

/// A field of the root domain, or what it points to (`struct root_domain`, 6.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The number of CPUs that are overloaded with real-time tasks; of several counters, the one of
    /// this index.
    RtoCount(u16),
    /// The fair class's flag that some CPU has more than one runnable task.
    Overloaded,
    /// The bits that `rto_mask` points to, one for each CPU. A store writes one CPU's bit; a load
    /// reads all.
    RtoMask,
    /// The pointer `rto_mask` itself, which a CPU reads before it accesses a bit.
    RtoMaskPointer,
    /// The number of times that CPUs have asked for tasks to be pushed.
    RtoLoopNext,
    /// The flag that the CPU takes that sends the first interrupt of a round.
    RtoLoopStart,
    /// The lock of a round's state, and that state.
    RtoLock,
    /// The flags of the work that the interrupt of a round does (`rto_push_work`).
    RtoPushWork,
    /// `cpupri.pri_to_cpu[i].count`: the number of CPUs at this level, 0 to 100.
    CpupriCount(u8),
    /// The bits that `cpupri.pri_to_cpu[i].mask` points to.
    CpupriMask(u8),
}

impl Field {
    /// Returns whether a locked instruction writes the field, which waits for its line.
    pub fn is_atomic(self) -> bool {
        !matches!(self, Field::Overloaded | Field::RtoMaskPointer)
    }
}

/// A kernel function that reads or writes a field, by the name in `perf c2c`: the function that
/// remains when the compiler has inlined the smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Symbol {
    /// `rt_overloaded()`, and the scan that follows it.
    PullRtTask,
    /// `rt_set_overload()`.
    EnqueuePushableTask,
    /// `rt_clear_overload()`.
    DequeuePushableTask,
    /// `add_nr_running()` for a real-time task that is enqueued.
    EnqueueTaskRt,
    /// `add_nr_running()` for the real-time tasks that stay when one is dequeued: all of them leave
    /// the number and come back.
    DequeueTaskRt,
    /// The check whether there is anything to pull.
    SchedBalanceNewidle,
    /// `add_nr_running()` for a fair task.
    EnqueueTaskFair,
    /// `add_nr_running()` for the stopper.
    EnqueueTaskStop,
    /// A pass over the widest domain, which writes the flag when it has changed.
    SchedBalanceRq,
    /// A change of a CPU's highest priority.
    CpupriSet,
    /// The search for CPUs of a lower priority.
    CpupriFind,
    /// The lock of a round, which its two users take by this function.
    RawSpinLock,
    /// The choice of the next CPU of a round.
    RtoNextCpu,
    /// The sending of a round's interrupt.
    IrqWorkQueueOn,
    /// The interrupt that tells a CPU to push.
    RtoPushIrqWork,
    /// The frame around that interrupt's work.
    IrqWorkSingle,
}

impl Symbol {
    /// Every symbol, in the order of their numbers.
    pub const ALL: [Symbol; 16] = [
        Symbol::PullRtTask,
        Symbol::EnqueuePushableTask,
        Symbol::DequeuePushableTask,
        Symbol::EnqueueTaskRt,
        Symbol::DequeueTaskRt,
        Symbol::SchedBalanceNewidle,
        Symbol::EnqueueTaskFair,
        Symbol::EnqueueTaskStop,
        Symbol::SchedBalanceRq,
        Symbol::CpupriSet,
        Symbol::CpupriFind,
        Symbol::RawSpinLock,
        Symbol::RtoNextCpu,
        Symbol::IrqWorkQueueOn,
        Symbol::RtoPushIrqWork,
        Symbol::IrqWorkSingle,
    ];

    /// Returns the kernel's name of the function.
    pub fn name(self) -> &'static str {
        match self {
            Symbol::PullRtTask => "pull_rt_task",
            Symbol::EnqueuePushableTask => "enqueue_pushable_task",
            Symbol::DequeuePushableTask => "dequeue_pushable_task",
            Symbol::EnqueueTaskRt => "enqueue_task_rt",
            Symbol::DequeueTaskRt => "dequeue_task_rt",
            Symbol::SchedBalanceNewidle => "sched_balance_newidle",
            Symbol::EnqueueTaskFair => "enqueue_task_fair",
            Symbol::EnqueueTaskStop => "enqueue_task_stop",
            Symbol::SchedBalanceRq => "sched_balance_rq",
            Symbol::CpupriSet => "cpupri_set",
            Symbol::CpupriFind => "cpupri_find_fitness",
            Symbol::RawSpinLock => "_raw_spin_lock",
            Symbol::RtoNextCpu => "rto_next_cpu",
            Symbol::IrqWorkQueueOn => "irq_work_queue_on",
            Symbol::RtoPushIrqWork => "rto_push_irq_work_func",
            Symbol::IrqWorkSingle => "irq_work_single",
        }
    }
}

/// The kind of an access to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The CPU reads the line.
    Load,
    /// The CPU writes the line, by an atomic read-modify-write or a plain store. It must own the
    /// line.
    Store,
}

/// The simulated kernel's layout of the fields that many CPUs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layouts {
    /// The layout of the counters of overloaded CPUs.
    pub counters: Layout,
    /// True if `overloaded` and the pointer to `rto_mask` are on lines that no CPU writes
    /// otherwise, as patch 2 of the series has it.
    pub rearranged: bool,
}

/// The line of a field, and the field's place on it.
struct Place {
    /// The line's number.
    line: usize,
    /// The offset of the field on the line, in bytes.
    offset: u32,
}

/// The number of levels of cpupri.
pub(super) const LEVELS: usize = 101;
/// The bytes of a line as these structures are laid out (`SMP_CACHE_BYTES` on x86-64).
const LINE: u32 = 64;
/// The number of lines of the root domain itself.
const ROOT_LINES: usize = 32;
/// The offset at which cpupri begins in the root domain, with 16 bytes for each level.
const CPUPRI: u32 = 0xb8;
/// The number of fields that exist once: those before cpupri's.
const SINGLE: usize = 8;

/// The places of all fields.
#[derive(Debug)]
pub(super) struct Map {
    layouts: Layouts,
    counters: usize,
    /// The number of lines of a bitmap, and of CPUs in one of them.
    mask_lines: usize,
    mask_bits: usize,
}

impl Map {
    pub fn new(layouts: Layouts, counters: usize, mask_lines: usize, mask_bits: usize) -> Map {
        Map { layouts, counters, mask_lines, mask_bits }
    }

    pub fn nr_lines(&self) -> usize {
        self.counter_line(self.counters)
    }

    pub fn nr_fields(&self) -> usize {
        SINGLE + 2 * LEVELS + self.counters
    }

    /// Returns the number of a field.
    ///
    /// # Panics
    /// There is no such counter, or level.
    #[inline]
    pub fn field(&self, field: Field) -> usize {
        match field {
            Field::Overloaded => 1,
            Field::RtoMask => 2,
            Field::RtoMaskPointer => 3,
            Field::RtoLoopNext => 4,
            Field::RtoLoopStart => 5,
            Field::RtoLock => 6,
            Field::RtoPushWork => 7,
            Field::CpupriCount(level) => SINGLE + checked(level.into(), LEVELS),
            Field::CpupriMask(level) => SINGLE + LEVELS + checked(level.into(), LEVELS),
            Field::RtoCount(i) => SINGLE + 2 * LEVELS + checked(i.into(), self.counters),
        }
    }

    /// Returns the numbers of the lines that an access touches.
    #[inline]
    pub fn lines(&self, field: Field, access: Access, cpu: usize) -> Range<usize> {
        let first = self.place(field).line;
        match (field, access) {
            (Field::RtoMask | Field::CpupriMask(_), Access::Load) => first..first + self.mask_lines,
            (Field::RtoMask | Field::CpupriMask(_), Access::Store) => {
                let line = first + cpu / self.mask_bits;
                line..line + 1
            }
            _ => first..first + 1,
        }
    }

    /// Returns the last level of cpupri whose counter lies on a line, which has at least one.
    #[inline]
    pub fn last_level(line: usize) -> u8 {
        let end = (line as u32 + 1) * LINE - CPUPRI;
        ((end - 1) / 16) as u8
    }

    /// Returns the name of a field's line, and the field's offset on it.
    pub fn describe(&self, number: usize) -> (String, u32) {
        let levels = SINGLE + LEVELS;
        let field = match number {
            1 => Field::Overloaded,
            2 => Field::RtoMask,
            3 => Field::RtoMaskPointer,
            4 => Field::RtoLoopNext,
            5 => Field::RtoLoopStart,
            6 => Field::RtoLock,
            7 => Field::RtoPushWork,
            n if n < levels => Field::CpupriCount((n - SINGLE) as u8),
            n if n < levels + LEVELS => Field::CpupriMask((n - levels) as u8),
            n => Field::RtoCount((n - levels - LEVELS) as u16),
        };
        let place = self.place(field);
        let name = match field {
            Field::RtoMask => "rto_mask".to_string(),
            Field::CpupriMask(level) => format!("cpupri mask {level}"),
            Field::RtoCount(i) if self.layouts.counters != Layout::Shared => {
                format!("rto_counts[{i}]")
            }
            _ => format!("root_domain+{:#x}", place.line as u32 * LINE),
        };
        (name, place.offset)
    }

    #[inline]
    fn place(&self, field: Field) -> Place {
        let stock = !self.layouts.rearranged;
        match field {
            Field::RtoCount(i) => match self.layouts.counters {
                Layout::Shared => root(0x4),
                _ => whole(self.counter_line(i.into())),
            },
            Field::Overloaded if stock => root(0x28),
            Field::Overloaded => root(0x740),
            Field::RtoMaskPointer if stock => root(0xb0),
            Field::RtoMaskPointer => root(0x700),
            Field::RtoPushWork => root(0x80),
            Field::RtoLock => root(0x98),
            Field::RtoLoopNext => root(0xa4),
            Field::RtoLoopStart => root(0xa8),
            Field::CpupriCount(level) => root(CPUPRI + 16 * u32::from(level)),
            Field::RtoMask => whole(ROOT_LINES),
            Field::CpupriMask(level) => {
                whole(ROOT_LINES + (1 + usize::from(level)) * self.mask_lines)
            }
        }
    }

    fn counter_line(&self, i: usize) -> usize {
        ROOT_LINES + (1 + LEVELS) * self.mask_lines + i
    }
}

/// Returns the place of a byte of the root domain.
fn root(byte: u32) -> Place {
    Place { line: (byte / LINE) as usize, offset: byte % LINE }
}

/// Returns the place of an object on a line of its own.
fn whole(line: usize) -> Place {
    Place { line, offset: 0 }
}

fn checked(i: usize, n: usize) -> usize {
    assert!(i < n, "{i} of {n}: the root domain has no such field");
    i
}
