// SPDX-License-Identifier: GPL-2.0-or-later
//! schbench: messengers wake workers, and the score is how long it takes until a woken worker runs.
//!
//! A worker that has nothing to do puts itself on top of its messenger's list, posts the messenger
//! and waits. The messenger takes the whole list, reads the clock once, posts every worker on the
//! list, and waits. A worker's wake-up latency is the time from the messenger's reading of the
//! clock until the worker is back in user mode and reads the clock itself. Of many workers that are
//! woken together, the last one has waited for all others.
//!
//! The tool's requests have changed. In the current tool, a worker sleeps for a short time and then
//! makes some passes over a matrix while it holds a lock that belongs to the CPU. In the old tool,
//! the worker spins by the clock, and the messenger sleeps, so that it wakes all of its workers
//! together.

use std::sync::Arc;

use perch_engine::Dist;

use crate::keys::Keys;
use crate::workload::{MAX_TASKS, Workload};
use crate::{Basis, Demand, FutexCall, Measure, Op, Space, SpecError, TaskSpec};

/// Work of creating a thread, nanoseconds: a rough figure, which only spaces the starts.
const CREATE_NS: u64 = 30_000;
/// Cache lines of its own that a thread uses whenever it runs: those of its stack, of its
/// statistics, and of the kernel's `task_struct`. Counted in Linux 7.2 (docs/calibration.md).
const FOOTPRINT: u64 = 67;
/// Timer slack of a task that asks for no other (`prctl(2)`, PR_SET_TIMERSLACK), nanoseconds. The
/// kernel sets a timer to the end of the slack. The timer fires earlier only when another interrupt
/// comes by, and nothing else is going to interrupt a CPU that sleeps.
const SLACK_NS: u64 = 50_000;
/// Time between two looks of the main thread at the counts, nanoseconds.
const LOOK_NS: u64 = 1_000_000_000;
/// Cache lines of a KiB of the matrices.
const LINES_PER_KIB: u64 = 16;
/// Percent by which work takes longer or shorter than the mean. A pass always does the same work;
/// its 1 % keeps threads that start together from staying together. Calls vary more.
const PASS_SPREAD: u64 = 1;
const CALL_SPREAD: u64 = 20;

/// What the current and the old tool share: the threads, and the costs of their calls.
struct Threads {
    messengers: u64,
    workers: u64,
    allowed: Arc<perch_policy::CpuMask>,
    footprint: u32,
    shared_kib: u32,
    post: FutexCall,
    wait: FutexCall,
    /// A new worker's work before its first call.
    begin: Op,
    /// A worker's work from the kernel's way out of a call until it reads the clock.
    back: Op,
    /// A thread's work of falling asleep on a timer, and of coming back.
    nap: Op,
}

impl Threads {
    fn of(keys: &mut Keys<'_>, messengers: u64) -> Result<Threads, SpecError> {
        let messengers = keys.count("messengers", messengers, 1, MAX_TASKS / 2)?;
        let workers = keys.number_of(&["workers", "threads", "n"], 1, 1, MAX_TASKS / 2)?;
        let allowed = keys.cpus()?;
        let n = messengers.saturating_mul(workers + 1);
        if n >= MAX_TASKS {
            return Err(SpecError::SchbenchThreads { messengers, workers, threads: n });
        }
        let counts = Demand {
            tasks: n + 1,
            // A messenger creates its workers one by one, and they share a program.
            operations: 2 * n + 64 * messengers,
            ..Demand::default()
        };
        keys.afford(&[("messengers", &messengers), ("workers", &workers)], counts)?;
        // Work at full capacity, to be fitted to a machine; these are rough figures for a server
        // of 3 GHz: a futex call is a system call, a hash bucket's lock and a few lines.
        let post_ns = keys.number("post_ns", 400, 1, 1_000_000_000)?;
        let wait_ns = keys.number("wait_ns", 600, 1, 1_000_000_000)?;
        let back_ns = keys.number("back_ns", 300, 1, 1_000_000_000)?;
        let nap_ns = keys.number("nap_ns", 700, 1, 1_000_000_000)?;
        // A guess: a new thread sets its name and has page faults on its stack and data, while its
        // creator maps the next thread's. The threads that are created last find the CPUs of those
        // before them busy for this long.
        let begin = keys.number("begin_us", 200, 0, 1_000_000)?;
        let lines = keys.number("lines", 6, 0, 1_000_000)? as u32;
        let call = |ns| FutexCall { work: Dist::around(ns, CALL_SPREAD), lines };
        let run = |ns| Op::Run(Dist::around(ns, CALL_SPREAD));
        Ok(Threads {
            messengers,
            workers,
            allowed,
            footprint: keys.number("footprint", FOOTPRINT, 0, 1_000_000)? as u32,
            shared_kib: keys.number("shared_kib", 0, 0, u32::MAX)?,
            post: call(post_ns),
            wait: call(wait_ns),
            begin: run(begin * 1000),
            back: run(back_ns),
            nap: run(nap_ns),
        })
    }

    /// A worker's operations between two requests: the worker asks for the next request, and notes
    /// how long its wake-up took.
    fn ask(&self, messenger: u32) -> Vec<Op> {
        vec![
            Op::Post { to: messenger, call: self.post },
            Op::WaitPosted(self.wait),
            self.back,
            Op::NoteLatency,
        ]
    }

    /// A sleep of this time and the timer's slack.
    fn sleep(&self, time: Dist) -> [Op; 2] {
        let late = match time {
            Dist::Uniform(low, high) => Dist::Uniform(low + SLACK_NS, high + SLACK_NS),
            time => Dist::Const(time.mean() + SLACK_NS),
        };
        [self.nap, Op::Sleep(late)]
    }

    /// Builds the process. A main thread starts the messengers. Each messenger starts its workers,
    /// and then does `rest` over and over. A worker does, over and over, what `worker` returns for
    /// the number of its messenger.
    fn workload(&self, rest: &[Op], worker: impl Fn(u32) -> Vec<Op>) -> Workload {
        let task = |program: Vec<Op>, start| TaskSpec {
            space: Some(0),
            ..TaskSpec::new(program, &self.allowed, self.footprint, start)
        };
        let create = |child| [Op::Run(Dist::around(CREATE_NS, CALL_SPREAD)), Op::Fork(child)];
        let (mut tasks, mut main) = (Vec::new(), Vec::new());
        for _ in 0..self.messengers {
            let first = tasks.len() as u32;
            let messenger = first + self.workers as u32;
            let mut work = vec![self.begin];
            work.extend(worker(messenger));
            work.push(Op::Jump(1));
            let work: Arc<[Op]> = work.into();
            tasks.extend(
                (0..self.workers)
                    .map(|_| TaskSpec { program: work.clone(), ..task(Vec::new(), None) }),
            );
            let mut program: Vec<Op> = (first..messenger).flat_map(create).collect();
            let again = program.len() as u32;
            program.extend_from_slice(rest);
            program.push(Op::Jump(again));
            tasks.push(task(program, None));
            main.extend(create(messenger));
        }
        let again = main.len() as u32;
        main.extend(self.sleep(Dist::Const(LOOK_NS)));
        main.push(Op::Jump(again));
        tasks.push(task(main, Some(Dist::Uniform(0, 1_000_000))));
        Workload::of(
            tasks,
            vec![Space { shared_kib: self.shared_kib, ..Space::default() }],
            Measure { name: "wake_p50.0", unit: "us", basis: Basis::Requests },
        )
    }
}

/// Builds schbench as it has been since April 2023.
pub(crate) fn current(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let threads = Threads::of(keys, 1)?;
    let sleep = keys.number("sleep_us", 100, 0, 1_000_000_000)? * 1000;
    let sleeps = keys.number("sleeps", 1, 0, 1000)?;
    let counts = Demand {
        tasks: threads.messengers * (threads.workers + 1) + 1,
        operations: 2 * threads.messengers * (threads.workers + sleeps),
        ..Demand::default()
    };
    keys.afford(&[("messengers", &threads.messengers), ("sleeps", &sleeps)], counts)?;
    let passes = keys.number("passes", 5, 1, 1_000_000)?;
    let pass = keys.number("pass_us", 709, 1, 1_000_000)? * 1000;
    let kib = keys.number("kib", 256, 0, 1 << 24)?;
    let locks = keys.number("locks", 1, 0, 1)? == 1;
    let worker = |messenger| {
        let mut program = threads.ask(messenger);
        for _ in 0..sleeps {
            program.extend(threads.sleep(Dist::Const(sleep)));
        }
        if locks {
            program.push(Op::LockCpu);
        }
        program.push(Op::Touch { lines: (kib * LINES_PER_KIB) as u32 });
        program.push(Op::Run(Dist::around(passes * pass, PASS_SPREAD)));
        if locks {
            program.push(Op::UnlockCpu);
        }
        program.push(Op::NoteRequest);
        program
    };
    let rest = [Op::WakeAll(threads.post), Op::WaitPosted(threads.wait)];
    Ok(threads.workload(&rest, worker))
}

/// Builds schbench as it was before: version 1.0.
pub(crate) fn old(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let threads = Threads::of(keys, 4)?;
    let think = keys.number("think_us", 30_000, 1, 1_000_000_000)? * 1000;
    let sleep = keys.number("sleep_us", 30_000, 0, 1_000_000_000)? * 1000;
    // In later versions of the old tool the messenger can think too (-C).
    let messenger = keys.number("messenger_us", 0, 0, 1_000_000_000)? * 1000;
    let worker = |messenger| {
        let mut program = vec![Op::Spin(Dist::Const(think)), Op::NoteRequest];
        program.extend(threads.ask(messenger));
        program
    };
    let mut rest = vec![Op::WakeAll(threads.post), Op::WaitPosted(threads.wait)];
    if messenger > 0 {
        rest.push(Op::Spin(Dist::Const(messenger)));
    }
    if sleep > 0 {
        // The messenger adds up to a quarter, drawn anew every time.
        rest.extend(threads.sleep(Dist::Uniform(sleep, sleep + sleep / 4)));
    }
    Ok(threads.workload(&rest, worker))
}
