// SPDX-License-Identifier: GPL-2.0-or-later
//! The counters of overloaded CPUs under real threads (P10), and the output of `perch bench
//! overload`. perch-policy's tests/loom.rs shows for small cases that no interleaving breaks them;
//! these tests take many threads, a large machine and the memory of a real one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

use crate::support::perch;
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
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn when_all_is_quiet_the_counters_are_the_cpus_that_are_set() {
    const THREADS: usize = 4;
    for (layout, exact) in Layout::ALL
        .into_iter()
        .flat_map(|l| [(l, false), (l, true)])
    {
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

fn bench(arguments: &[&str]) -> String {
    let output = perch(&[&["bench", "overload", "--seconds", "0.02"], arguments].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_layout_is_measured_with_every_number_of_threads() {
    let text = bench(&["--format", "json"]);
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cpus = result["cpus"].as_u64().unwrap();
    let rows = result["rows"].as_array().unwrap();
    let mut ladder: Vec<u64> = (0..64).map(|n| 1 << n).take_while(|&n| n < cpus).collect();
    ladder.push(cpus);
    let expected: Vec<(u64, &str)> = (ladder.iter())
        .flat_map(|&threads| Layout::ALL.map(|layout| (threads, layout.name())))
        .collect();
    let found: Vec<(u64, &str)> = (rows.iter())
        .map(|row| {
            (
                row["threads"].as_u64().unwrap(),
                row["layout"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(found, expected);
    for row in rows {
        let mut loads = vec!["update", "read", "switch"];
        let both = ["update_beside_readers", "read_beside_writers"];
        match row["threads"].as_u64() {
            Some(1) => both.iter().for_each(|load| assert!(row[load].is_null())),
            _ => loads.extend(both),
        }
        for load in loads {
            // JSON has null for NaN, so each of these must be a number.
            let [min, median, max] =
                ["min", "median", "max"].map(|key| row[load][key].as_f64().unwrap());
            assert!(
                0.0 < min && min <= median && median <= max,
                "{load} of {row}"
            );
        }
        let most = match row["layout"].as_str() {
            Some("shared") => 1,
            Some("llc-padded") => result["llcs"].as_u64().unwrap(),
            _ => result["nodes"].as_u64().unwrap(),
        };
        assert_eq!(row["counters"].as_u64(), Some(most), "{row}");
    }
    let notes = result["notes"].to_string();
    let one_node = result["nodes"].as_u64() == Some(1);
    assert_eq!(notes.contains("about lines only"), one_node, "{notes}");
}

#[test]
fn threads_without_a_cpu_of_their_own_are_told_of() {
    let text = bench(&["--threads", "1,5000", "--format", "markdown"]);
    assert!(text.contains("no rows for 5000 threads"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| 1 | "));
    assert_eq!(rows.count(), 4, "{text}");
    let nodes = bench(&["--threads", "1", "--nodes", "1", "--format", "csv"]);
    assert_eq!(nodes.lines().count(), 1 + 4 * 3, "{nodes}");
}
