// SPDX-License-Identifier: GPL-2.0-or-later
//! sysbench's threads test (sysbench 0.4 and 1.0, `--test=threads`): lock, yield, unlock.
//!
//! For an event, a thread takes the next number of a counter that all threads share. The number,
//! modulo the number of mutexes, chooses the mutex of the event. The thread locks the mutex, yields
//! the CPU while it holds the mutex, and unlocks the mutex again, a thousand times over. While
//! there are no more threads than CPUs and their events have different mutexes, no thread ever
//! waits. Threads that meet at a mutex wake each other again and again; threads that share a CPU
//! yield to each other every time. The score is the number of events in five seconds.

use perch_engine::Dist;

use crate::keys::Keys;
use crate::workload::{MAX_TASKS, Workload};
use crate::{Demand, Measure, Op, Space, SpecError, TaskSpec};

/// Work of starting a thread, nanoseconds: a rough figure, which only spaces the starts.
const CREATE_NS: u64 = 30_000;
/// Cache lines of its own that a thread uses: those of its stack, of its statistics, and of the
/// kernel's `task_struct`. Counted in Linux 7.2 (docs/calibration.md).
const FOOTPRINT: u64 = 35;

/// Percent by which a futex call takes longer or shorter than the mean, a guess: the call spins for
/// the lock of a hash bucket, and finds its cache lines near or far. Without any spread, a woken
/// thread would come back at the same point of its opponent's round every time. The mutex would
/// then be held every time or free every time, for a whole run.
const FUTEX_SPREAD: u64 = 50;

/// Builds the threads test.
pub(crate) fn threads(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let threads = keys.count("threads", 1, 1, MAX_TASKS - 1)?;
    let locks = keys.number("locks", 8, 1, 1 << 20)?;
    let counts = Demand {
        tasks: threads + 2,
        operations: 2 * threads,
        channels: locks + 2,
        ..Demand::default()
    };
    keys.afford(&[("threads", &threads), ("locks", &locks)], counts)?;
    let yields = keys.number("yields", 1000, 1, 1_000_000_000)?;
    let allowed = keys.cpus()?;
    // Work at full capacity, to be fitted to a machine; these are rough figures for an arm64 core
    // of 2 GHz. A yield with nobody else there is a system call of some hundred nanoseconds and a
    // pass through the scheduler; a futex call that sleeps or wakes takes a lock more.
    let yield_ns = keys.number("yield_ns", 700, 1, 1_000_000_000)?;
    let loop_ns = keys.number("loop_ns", 40, 0, 1_000_000_000)?;
    let event_ns = keys.number("event_ns", 500, 0, 1_000_000_000)?;
    let wait_ns = keys.number("wait_ns", 700, 0, 1_000_000_000)?;
    let wake_ns = keys.number("wake_ns", 400, 0, 1_000_000_000)?;
    let footprint = keys.number("footprint", FOOTPRINT, 0, 1_000_000)? as u32;
    // A machine that is not quite idle runs something else too: one task that wakes now and then.
    let background_ms = keys.number("background_ms", 0, 0, 1_000_000)?;
    let background_us = keys.number("background_us", 200, 1, 1_000_000)?;
    let lock = |first| Op::Lock { first, wait: Dist::around(wait_ns, FUTEX_SPREAD) };
    let unlock = |first| Op::Unlock { first, wake: Dist::around(wake_ns, FUTEX_SPREAD) };
    // The main thread holds this mutex while it starts the others (sysbench 0.4).
    let start = locks as u32;
    let mut main = vec![lock(start)];
    for thread in 0..threads as u32 {
        main.extend([Op::Run(Dist::around(CREATE_NS, 20)), Op::Fork(thread)]);
    }
    main.extend([unlock(start), Op::Exit]);
    let thread: std::sync::Arc<[Op]> = [
        lock(start),
        unlock(start),
        Op::Run(Dist::Const(event_ns)),
        Op::Draw { counter: 0, of: locks as u32 },
        lock(0),
        Op::Run(Dist::Const(yield_ns)),
        Op::Yield,
        unlock(0),
        Op::Run(Dist::Const(loop_ns)),
        Op::Repeat { to: 4, times: yields },
        Op::Count,
        Op::Jump(2),
    ]
    .into();
    let task = |program: std::sync::Arc<[Op]>, start| TaskSpec {
        space: Some(0),
        ..TaskSpec::new(program, &allowed, footprint, start)
    };
    let mut tasks: Vec<TaskSpec> = (0..threads).map(|_| task(thread.clone(), None)).collect();
    tasks.push(task(main.into(), Some(Dist::Uniform(0, 1_000_000))));
    if background_ms > 0 {
        let program = [
            Op::Sleep(Dist::Exponential(background_ms * 1_000_000)),
            Op::Run(Dist::around(background_us * 1000, 50)),
            Op::Jump(0),
        ];
        tasks.push(TaskSpec { space: Some(1), ..task(program.into(), Some(Dist::Const(0))) });
    }
    Ok(Workload {
        mutexes: locks as usize + 1,
        counters: 1,
        ..Workload::of(
            tasks,
            vec![Space::default(); 2],
            Measure::rate("events", "events/5s", 5.0, 1.0),
        )
    })
}
