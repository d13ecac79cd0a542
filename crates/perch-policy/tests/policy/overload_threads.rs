// SPDX-License-Identifier: GPL-2.0-or-later
//! The counters of overloaded CPUs under real threads (P10). tests/loom.rs shows for small cases that
//! no interleaving breaks them; these tests take many threads and a large machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

use perch_policy::{Layout, Overload, OverloadLevel, Topology};

/// The counters of a machine of 480 CPUs in several nodes, each with several last-level caches, and
/// the number of CPUs.
fn counters(layout: Layout, exact: bool) -> (Overload, usize) {
    let topology = Topology::new(&perch_machine::resolve("rt480").unwrap());
    let overload = Overload::new(layout, exact, &topology).unwrap();
    (overload, topology.nr_cpus())
}

/// The next pseudo-random number (Knuth's MMIX generator).
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn when_all_is_quiet_the_counters_are_the_cpus_that_are_set() {
    const THREADS: usize = 4;
    for (layout, exact) in Layout::ALL.into_iter().flat_map(|l| [(l, false), (l, true)]) {
        let (overload, cpus) = counters(layout, exact);
        scope(|scope| {
            for thread in 0..THREADS {
                let overload = &overload;
                scope.spawn(move || {
                    let mut state = thread as u64;
                    for _ in 0..50_000 {
                        // Threads share counters, but not CPUs.
                        let cpu = next(&mut state) % (cpus / THREADS) * THREADS + thread;
                        let at = match overload.is_set(cpu) {
                            false => overload.set(cpu),
                            true => overload.clear(cpu),
                        };
                        assert_eq!(at, overload.home(cpu));
                    }
                });
            }
        });
        let mut expected = vec![0; overload.counters()];
        for cpu in (0..cpus).filter(|&cpu| overload.is_set(cpu)) {
            expected[overload.home(cpu)] += 1;
        }
        assert_eq!(overload.counts(), expected, "{layout}, {exact}");
        assert!(expected.iter().sum::<i32>() > 0, "nobody is set");
        for cpu in (0..cpus).filter(|&cpu| overload.is_set(cpu)) {
            overload.clear(cpu);
        }
        assert!(overload.counts().iter().all(|&count| count == 0));
    }
}

/// Overload moves from CPU to CPU: a thread raises the next counter before it lowers the last.
/// Every checked read by any CPU sees it; with two such threads too.
#[test]
fn a_checked_read_sees_what_moves() {
    for layout in Layout::ALL {
        for moving in [1, 2] {
            let (overload, cpus) = counters(layout, true);
            let over = AtomicBool::new(false);
            let at_first: Vec<usize> = (0..moving).map(|kind| kind * 2).collect();
            for &cpu in &at_first {
                overload.set(cpu);
            }
            scope(|scope| {
                let (overload, over) = (&overload, &over);
                for reader in 0..3 {
                    scope.spawn(move || {
                        let mut state = reader;
                        while !over.load(Ordering::Relaxed) {
                            let level = overload.read(next(&mut state) % cpus).level;
                            let seen = match moving {
                                1 => level != OverloadLevel::None,
                                _ => level == OverloadLevel::More,
                            };
                            assert!(seen, "{layout}: {level:?} though {moving} are set");
                        }
                    });
                }
                let movers: Vec<_> = (at_first.iter())
                    .map(|&first| {
                        scope.spawn(move || {
                            // One thread takes even pairs of CPUs and the other odd ones, so the
                            // two never meet.
                            let (mut state, mut cpu) = (first as u64, first);
                            for _ in 0..100_000 {
                                let to = next(&mut state) % (cpus / 4) * 4 + first % 4;
                                if to != cpu {
                                    overload.set(to);
                                    overload.clear(cpu);
                                    cpu = to;
                                }
                            }
                        })
                    })
                    .collect();
                let ends: Vec<_> = movers.into_iter().map(|mover| mover.join()).collect();
                over.store(true, Ordering::Relaxed);
                ends.into_iter().for_each(|end| end.unwrap());
            });
            assert_eq!(overload.counts().iter().sum::<i32>(), moving as i32);
        }
    }
}
