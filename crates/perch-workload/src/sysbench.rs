// SPDX-License-Identifier: GPL-2.0-or-later
//! sysbench's threads test (sysbench 0.4 and 1.0, `--test=threads`): lock, yield, unlock.
//!
//! An event takes the next number of a counter that all threads share. The number, modulo the
//! number of mutexes, says which mutex the event is about, and the event locks it, yields the CPU
//! while it holds it, and unlocks it again, a thousand times over. While threads are as many as
//! CPUs and their events about different mutexes nobody ever waits. Events that meet at a mutex
//! wake each other again and again; threads that share a CPU yield to each other every time. The
//! score is the number of events in five seconds.

use perch_engine::Dist;

use crate::spec::{Keys, MAX_TASKS, Workload};
use crate::{Class, Measure, Op, Site, Space, TaskSpec, UNCLAMPED};

/// Starting a thread: a rough figure, it only spaces the starts.
const CREATE_NS: u64 = 30_000;
/// Cache lines of its own that a thread uses: its stack, its statistics, its task in the kernel.
const FOOTPRINT: u64 = 40;

/// Percent by which a futex call takes longer or shorter than the mean: it spins for the lock of a
/// hash bucket and finds its lines here or there. A guess; without any spread a woken thread comes
/// back at the same point of its opponent's round every time, and whether that is while the mutex
/// is held or free decides about whole runs.
const FUTEX_SPREAD: u64 = 50;

/// The threads test.
pub(crate) fn threads(keys: &mut Keys<'_>) -> Result<Workload, String> {
    let threads = keys.number("threads", 1, 1, MAX_TASKS - 1)?;
    let locks = keys.number("locks", 8, 1, 1 << 20)?;
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
    // What else runs on a machine that is not quite idle: one task that wakes now and then.
    let background_ms = keys.number("background_ms", 0, 0, 1_000_000)?;
    let background_us = keys.number("background_us", 200, 1, 1_000_000)?;
    let lock = |first| Op::Lock {
        first,
        wait: Dist::around(wait_ns, FUTEX_SPREAD),
    };
    let unlock = |first| Op::Unlock {
        first,
        wake: Dist::around(wake_ns, FUTEX_SPREAD),
    };
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
        Op::Draw {
            counter: 0,
            of: locks as u32,
        },
        lock(0),
        Op::Run(Dist::Const(yield_ns)),
        Op::Yield,
        unlock(0),
        Op::Run(Dist::Const(loop_ns)),
        Op::Repeat {
            to: 4,
            times: yields,
        },
        Op::Count,
        Op::Jump(2),
    ]
    .into();
    let task = |program, start| TaskSpec {
        program,
        allowed: allowed.clone(),
        nice: 0,
        class: Class::Fair,
        uclamp: UNCLAMPED,
        footprint,
        space: Some(0),
        group: None,
        start,
        site: Site::Host,
    };
    let mut tasks: Vec<TaskSpec> = (0..threads).map(|_| task(thread.clone(), None)).collect();
    tasks.push(task(main.into(), Some(Dist::Uniform(0, 1_000_000))));
    if background_ms > 0 {
        let program = [
            Op::Sleep(Dist::Exponential(background_ms * 1_000_000)),
            Op::Run(Dist::around(background_us * 1000, 50)),
            Op::Jump(0),
        ];
        tasks.push(TaskSpec {
            space: Some(1),
            ..task(program.into(), Some(Dist::Const(0)))
        });
    }
    Ok(Workload {
        spec: String::new(),
        tasks,
        spaces: vec![Space::default(); 2],
        channels: 0,
        mutexes: locks as usize + 1,
        counters: 1,
        groups: Vec::new(),
        measure: Measure::rate("events", "events/5s", 5.0, 1.0),
        guests: Vec::new(),
        network: None,
        masks: Vec::new(),
    })
}
