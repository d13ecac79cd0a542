// SPDX-License-Identifier: GPL-2.0-or-later
//! Threads that use the counters for a while, each on a CPU of its own and with that CPU's counter.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread::scope;
use std::time::{Duration, Instant};

use perch_policy::Overload;
use rustix::time::{ClockId, clock_gettime};

use super::places::pin;
use crate::Failure;

/// Operations between two readings of the clock; one reading takes as long as a few operations.
const BATCH: u64 = 1024;

/// The loads that threads put on the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Each thread raises and lowers its counter.
    Update,
    /// Each thread reads.
    Read,
    /// Every other thread raises and lowers, and those between read.
    Both,
    /// Each thread raises, lowers and reads.
    Switch,
}

impl Load {
    /// The number of loads.
    const COUNT: u32 = 4;

    /// Returns whether a thread belongs to the second kind, the readers beside writers.
    fn reads(self, thread: usize) -> bool {
        self == Load::Both && thread % 2 == 1
    }
}

/// The length of one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Span(Duration);

impl Span {
    /// The span with which a row takes `seconds`, when each load is measured `repetitions` times
    /// and once to warm up.
    pub fn of_row(seconds: f64, repetitions: usize) -> Span {
        let times = f64::from(Load::COUNT) * (repetitions + 1) as f64;
        Span(Duration::from_secs_f64(seconds / times))
    }
}

/// Sums over threads.
#[derive(Clone, Copy, Debug, Default)]
struct Ran {
    operations: u64,
    cpu_ns: u64,
    /// The time from the first operation to the last, summed over threads.
    wall_ns: u64,
}

/// The sums of the two kinds of thread: all threads, or writers beside readers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums([Ran; 2]);

impl Sums {
    /// Nanoseconds of CPU time for an operation by threads of this kind; `None` where there were no
    /// operations.
    pub fn ns_per_operation(&self, kind: usize) -> Option<f64> {
        let Ran {
            operations, cpu_ns, ..
        } = self.0[kind];
        (operations > 0).then(|| cpu_ns as f64 / operations as f64)
    }

    /// Adds another measurement's sums.
    pub fn add(&mut self, other: &Sums) {
        for (sum, other) in self.0.iter_mut().zip(other.0) {
            sum.operations += other.operations;
            sum.cpu_ns += other.cpu_ns;
            sum.wall_ns += other.wall_ns;
        }
    }

    /// The share of the measured time in which the threads had their CPUs; 1 where nothing was
    /// measured.
    pub fn undisturbed(&self) -> f64 {
        let cpu: u64 = self.0.iter().map(|ran| ran.cpu_ns).sum();
        let wall: u64 = self.0.iter().map(|ran| ran.wall_ns).sum();
        match wall {
            0 => 1.0,
            wall => cpu as f64 / wall as f64,
        }
    }
}

/// Runs the load for a while, in a thread on each of the CPUs. All counters are zero before and
/// after.
///
/// # Errors
/// When a CPU may not be used.
///
/// # Panics
/// When a counter is not zero at the end: the measurement would then be of something else.
pub fn once(overload: &Overload, cpus: &[usize], load: Load, span: Span) -> Result<Sums, Failure> {
    let ready = &Barrier::new(cpus.len());
    let mut sums = Sums::default();
    scope(|scope| {
        let threads: Vec<_> = (cpus.iter().enumerate())
            .map(|(thread, &cpu)| {
                scope.spawn(move || {
                    let pinned = pin(cpu);
                    // A thread that could not be pinned still takes part in the barrier, or the
                    // others would wait forever.
                    ready.wait();
                    pinned.map(|()| work(overload, cpu, load, load.reads(thread), span))
                })
            })
            .collect();
        for (thread, handle) in threads.into_iter().enumerate() {
            let ran = handle
                .join()
                .expect("a thread that works on counters does not panic")?;
            let mut one = Sums::default();
            one.0[usize::from(load.reads(thread))] = ran;
            sums.add(&one);
        }
        Ok::<_, Failure>(())
    })?;
    let counts = overload.counts();
    assert!(
        counts.iter().all(|&count| count == 0),
        "{counts:?} are left"
    );
    Ok(sums)
}

fn work(overload: &Overload, cpu: usize, load: Load, reads: bool, span: Span) -> Ran {
    let update = || {
        overload.set(cpu);
        overload.clear(cpu);
    };
    let read = || {
        black_box(overload.read(cpu));
    };
    match (load, reads) {
        (Load::Update, _) | (Load::Both, false) => repeat(span, update),
        (Load::Read, _) | (Load::Both, true) => repeat(span, read),
        (Load::Switch, _) => repeat(span, || {
            update();
            read();
        }),
    }
}

/// Repeats the operation for the span, and for one batch at the least. Each thread looks at the
/// clock itself: when a user starts this with a real-time priority, the threads leave no CPU to
/// another thread that could tell them to stop.
fn repeat(span: Span, operation: impl Fn()) -> Ran {
    let (began, cpu_began) = (Instant::now(), cpu_ns());
    let mut operations = 0;
    while operations == 0 || began.elapsed() < span.0 {
        for _ in 0..BATCH {
            operation();
        }
        operations += BATCH;
    }
    let cpu_ns = cpu_ns() - cpu_began;
    Ran {
        operations,
        cpu_ns,
        wall_ns: began.elapsed().as_nanos() as u64,
    }
}

/// CPU time of this thread, without the time that others had the CPU.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use perch_policy::{Layout, Topology};

    use super::super::places::allowed;
    use super::*;

    #[test]
    fn every_thread_has_its_part() {
        let machine = perch_machine::resolve("rt480").unwrap();
        let topology = Topology::new(&machine);
        let cpus = allowed().unwrap();
        let span = Span::of_row(0.05, 1);
        for layout in Layout::ALL {
            let overload = Overload::new(layout, layout.padded(), &topology).unwrap();
            for load in [Load::Update, Load::Read, Load::Switch] {
                let ran = once(&overload, &cpus, load, span).unwrap();
                assert!(ran.0[0].operations >= BATCH * cpus.len() as u64);
                assert!(ran.ns_per_operation(0).is_some_and(|ns| ns > 0.0));
                assert_eq!(ran.ns_per_operation(1), None);
                assert!((0.0..1.5).contains(&ran.undisturbed()), "{ran:?}");
            }
            if cpus.len() > 1 {
                let ran = once(&overload, &cpus[..2], Load::Both, span).unwrap();
                assert!((0..2).all(|kind| ran.ns_per_operation(kind).is_some()));
            }
        }
    }

    #[test]
    fn who_may_not_have_a_cpu_is_told() {
        let machine = perch_machine::resolve("juno").unwrap();
        let overload = Overload::new(Layout::Shared, false, &Topology::new(&machine)).unwrap();
        let cpus = [allowed().unwrap()[0], perch_machine::MAX_CPUS - 1];
        let error = once(&overload, &cpus, Load::Read, Span::of_row(0.01, 1)).unwrap_err();
        assert!(
            error.to_string().contains("cannot stay on CPU"),
            "{error:?}"
        );
    }
}
