// SPDX-License-Identifier: GPL-2.0-or-later
//! Workers that take tasks from one list.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function that any of the workers calls after each simulation, with the number of simulations
/// that are done and the number of all.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Runs `task(i)` for every `i` in `order` on `jobs` threads, which take them in that order, and
/// returns the results by `i`. `order` is a permutation of `0..order.len()`.
///
/// A plain list serves better than a work-stealing pool: tasks take from milliseconds to seconds,
/// and the longest must start first or the last worker ends long after the others.
///
/// # Errors
/// Returns the error of that failed task which is first in `order`. The number of jobs does not
/// change this error, since a worker takes a task only after all before it were taken.
pub(crate) fn run<T: Send, E: Send>(
    order: &[usize],
    jobs: usize,
    progress: Progress,
    task: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<T, E>>>> =
        Mutex::new(order.iter().map(|_| None).collect());
    let worker = || {
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = task(index);
            if result.is_err() {
                // No worker is given another task.
                next.store(order.len(), Ordering::Relaxed);
            }
            results
                .lock()
                .expect("no worker panics while it holds the lock")[index] = Some(result);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, order.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.min(order.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    let mut results = results.into_inner().expect("the workers are gone");
    for &index in order {
        if let Some(Err(_)) = &results[index] {
            if let Some(Err(error)) = results[index].take() {
                return Err(error);
            }
        }
    }
    // Without an error a worker took every task.
    Ok(results.into_iter().flatten().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_by_index_whatever_the_order_and_the_jobs() {
        let order: Vec<usize> = (0..100).rev().collect();
        for jobs in [1, 2, 7, 200] {
            let squares = run(&order, jobs, &|_, _| {}, |i| Ok::<_, ()>(i * i)).unwrap();
            assert!(
                squares
                    .iter()
                    .enumerate()
                    .all(|(i, square)| *square == i * i)
            );
        }
    }

    #[test]
    fn the_first_failure_in_order_is_reported_whatever_the_jobs() {
        let order: Vec<usize> = (0..100).collect();
        for jobs in [1, 2, 7] {
            let fail = |i: usize| if i % 10 == 9 { Err(i) } else { Ok(i) };
            assert_eq!(run(&order, jobs, &|_, _| {}, fail), Err(9));
        }
    }

    #[test]
    fn progress_counts_every_task_once() {
        let seen = Mutex::new(Vec::new());
        let order: Vec<usize> = (0..20).collect();
        let note = |done, total| seen.lock().unwrap().push((done, total));
        run(&order, 3, &note, Ok::<_, ()>).unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (1..=20).map(|done| (done, 20)).collect::<Vec<_>>());
    }
}
