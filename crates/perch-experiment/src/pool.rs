// SPDX-License-Identifier: GPL-2.0-or-later
//! Workers that take tasks from one list.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

/// A function that any of the workers calls after each simulation, with the number of simulations
/// that are done and the number of all.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The number of results that may wait for an earlier one, for each worker.
const AHEAD: usize = 16;

/// The state that the workers share.
struct Shared<T, E, K> {
    /// The next task that a worker takes.
    next: usize,
    /// The next result that is kept.
    due: usize,
    /// The number of tasks that are done.
    done: usize,
    /// Results that wait for an earlier one.
    early: BTreeMap<usize, Result<T, E>>,
    keep: K,
    error: Option<E>,
}

struct Pool<T, E, K> {
    shared: Mutex<Shared<T, E, K>>,
    moved: Condvar,
    total: usize,
    ahead: usize,
}

/// Ends the pool if its worker panics, so that no other worker waits for the lost result.
struct Fuse<'a, T, E, K>(&'a Pool<T, E, K>);

impl<T, E, K> Drop for Fuse<'_, T, E, K> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Ok(mut shared) = self.0.shared.lock() {
                shared.next = self.0.total;
            }
            self.0.moved.notify_all();
        }
    }
}

impl<T, E, K: FnMut(usize, T) -> Result<(), E>> Pool<T, E, K> {
    fn lock(&self) -> MutexGuard<'_, Shared<T, E, K>> {
        let lock = self.shared.lock();
        lock.expect("no worker panics while it holds the lock")
    }

    /// Takes the next task; none when there is none left.
    fn take(&self) -> Option<usize> {
        let waits = |shared: &mut Shared<T, E, K>| {
            shared.next < self.total && shared.next >= shared.due + self.ahead
        };
        let lock = self.moved.wait_while(self.lock(), waits);
        let mut shared = lock.expect("no worker panics while it holds the lock");
        let index = shared.next;
        (index < self.total).then(|| {
            shared.next += 1;
            index
        })
    }

    /// Hands over a result, and keeps all that are due. Returns the number of tasks that are done.
    fn give(&self, index: usize, result: Result<T, E>) -> usize {
        let mut lock = self.lock();
        let shared = &mut *lock;
        if result.is_err() {
            // No worker is given another task.
            shared.next = self.total;
        }
        shared.early.insert(index, result);
        shared.done += 1;
        while shared.error.is_none() {
            let Some(result) = shared.early.remove(&shared.due) else {
                break;
            };
            let kept = result.and_then(|found| (shared.keep)(shared.due, found));
            shared.due += 1;
            if let Err(error) = kept {
                shared.next = self.total;
                shared.error = Some(error);
            }
        }
        self.moved.notify_all();
        shared.done
    }
}

/// Runs `task(i)` for every `i` in `0..total` on `jobs` threads, which take them in that order, and
/// hands the results to `keep` in that order too, one at a time. A result that is early waits for
/// those before it; a bounded number of them do, so memory does not depend on `total`.
///
/// A plain list serves better than a work-stealing pool: tasks take from milliseconds to seconds,
/// and the longest must start first or the last worker ends long after the others.
///
/// # Errors
/// Returns the first error in the order of the tasks, whether of the task or of `keep`. The number
/// of jobs does not change this error, since a worker takes a task only after all before it were
/// taken.
pub(crate) fn run<T: Send, E: Send>(
    total: usize,
    jobs: usize,
    progress: Progress,
    task: impl Fn(usize) -> Result<T, E> + Sync,
    keep: impl FnMut(usize, T) -> Result<(), E> + Send,
) -> Result<(), E> {
    let workers = jobs.min(total);
    let pool = Pool {
        shared: Mutex::new(Shared {
            next: 0,
            due: 0,
            done: 0,
            early: BTreeMap::new(),
            keep,
            error: None,
        }),
        moved: Condvar::new(),
        total,
        ahead: AHEAD * workers,
    };
    let worker = || {
        let _fuse = Fuse(&pool);
        while let Some(index) = pool.take() {
            let done = pool.give(index, task(index));
            progress(done, total);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(worker);
        }
        worker();
    });
    let shared = pool.shared.into_inner().expect("the workers are gone");
    shared.error.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[test]
    fn results_are_kept_in_order_whatever_the_jobs() {
        for jobs in [1, 2, 7, 200] {
            let mut kept = Vec::new();
            let keep = |i, square| {
                kept.push((i, square));
                Ok(())
            };
            run(100, jobs, &|_, _| {}, |i| Ok::<_, ()>(i * i), keep).unwrap();
            assert_eq!(kept, (0..100).map(|i| (i, i * i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_failure_in_order_is_reported_whatever_the_jobs() {
        for jobs in [1, 2, 7] {
            let fail = |i: usize| if i % 10 == 9 { Err(i) } else { Ok(i) };
            assert_eq!(run(100, jobs, &|_, _| {}, fail, |_, _| Ok(())), Err(9));
            let refuse = |i: usize, _| if i == 5 { Err(i) } else { Ok(()) };
            assert_eq!(run(100, jobs, &|_, _| {}, fail, refuse), Err(5));
        }
    }

    #[test]
    fn progress_counts_every_task_once() {
        let seen = Mutex::new(Vec::new());
        let note = |done, total| seen.lock().unwrap().push((done, total));
        run(20, 3, &note, Ok::<_, ()>, |_, _| Ok(())).unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (1..=20).map(|done| (done, 20)).collect::<Vec<_>>());
    }

    /// A result exists from its task's end until it is kept. The first task ends when as many
    /// others have ended as may be early; one more would never begin.
    #[test]
    fn early_results_are_few() {
        struct Counted<'a>(&'a AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let (exist, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (ended, jobs) = (AtomicUsize::new(0), 2);
        let task = |i: usize| {
            if i == 0 {
                while ended.load(Ordering::Acquire) < AHEAD * jobs - 1 {
                    std::thread::yield_now();
                }
            }
            let now = exist.fetch_add(1, Ordering::Relaxed) + 1;
            most.fetch_max(now, Ordering::Relaxed);
            ended.fetch_add(1, Ordering::Release);
            Ok::<_, ()>(Counted(&exist))
        };
        run(10_000, jobs, &|_, _| {}, task, |_, _| Ok(())).unwrap();
        let most = most.into_inner();
        assert!(
            most >= AHEAD * jobs && most <= AHEAD * jobs + jobs,
            "{most}"
        );
        assert_eq!(exist.into_inner(), 0);
    }

    #[test]
    #[should_panic(expected = "scoped thread panicked")]
    fn a_panic_ends_the_pool() {
        let here = std::thread::current().id();
        let other_began = AtomicBool::new(false);
        let task = |_| {
            if std::thread::current().id() != here {
                other_began.store(true, Ordering::Release);
                panic!("a task");
            }
            while !other_began.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            Ok::<_, ()>(())
        };
        run(1_000_000, 2, &|_, _| {}, task, |_, _| Ok(())).unwrap();
    }
}
