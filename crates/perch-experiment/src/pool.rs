// SPDX-License-Identifier: GPL-2.0-or-later
//! Workers that take tasks from lists.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard};

/// A function that any of the workers calls after each simulation, with the number of simulations
/// that are done and the number of all.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The number of results that may wait for an earlier one, for each worker.
const AHEAD: usize = 16;

/// Lists of tasks for [`run_lists`]. The results of a list come back in its order, and decide
/// whether the list goes on.
pub(crate) trait Lists: Send {
    /// What a worker needs to know of a task.
    type Task;
    /// The result of a task.
    type Found: Send;
    type Error: Send;

    /// Returns the number of tasks that each list begins with.
    fn lengths(&self) -> Vec<usize>;

    /// Returns task `index` of those that a list got last.
    fn task(&self, list: usize, index: usize) -> Self::Task;

    /// Takes the result of task `index` of those that a list got last.
    fn keep(&mut self, list: usize, index: usize, found: Self::Found) -> Result<(), Self::Error>;

    /// Returns the number of further tasks of a list whose results are all kept; 0 ends the list.
    fn further(&mut self, list: usize) -> usize;
}

/// The tasks that a list got last.
struct List<T, E> {
    total: usize,
    /// The next task that a worker takes.
    next: usize,
    /// The next result that is kept.
    due: usize,
    /// Results that wait for an earlier one.
    early: BTreeMap<usize, Result<T, E>>,
}

impl<T, E> List<T, E> {
    fn new(total: usize) -> List<T, E> {
        List { total, next: 0, due: 0, early: BTreeMap::new() }
    }

    /// Returns the number of tasks that were taken and whose results are not kept yet.
    fn outstanding(&self) -> usize {
        self.next - self.due
    }
}

/// The state that the workers share.
struct Shared<'a, L: Lists> {
    work: &'a mut L,
    lists: Vec<List<L::Found, L::Error>>,
    /// Workers take tasks of the lists before this one: it has failed, so those from it on can change
    /// nothing any more.
    open: usize,
    /// The number of tasks that are done, and of those that are known.
    done: usize,
    known: usize,
    /// The first failure of the first list that failed.
    failure: Option<(usize, L::Error)>,
}

impl<L: Lists> Shared<'_, L> {
    /// Returns the list whose task a worker takes next. A list none of whose tasks is taken already
    /// needs no room for early results.
    fn ready(&self, ahead: usize) -> Option<usize> {
        let lists = &self.lists[..self.open];
        let is_full = lists.iter().map(List::outstanding).sum::<usize>() >= ahead;
        lists
            .iter()
            .position(|list| list.next < list.total && (!is_full || list.outstanding() == 0))
    }

    /// Returns true where nothing is left to take, now and later.
    fn is_over(&self) -> bool {
        let mut lists = self.lists[..self.open].iter();
        lists.all(|list| list.due == list.total)
    }

    /// Keeps the results of a list that are due, and lets the list go on when all are kept.
    fn settle(&mut self, at: usize) {
        let failed =
            |failure: &Option<(usize, _)>| matches!(failure, Some((list, _)) if *list <= at);
        let list = &mut self.lists[at];
        while !failed(&self.failure) {
            let Some(result) = list.early.remove(&list.due) else {
                break;
            };
            let kept = result.and_then(|found| self.work.keep(at, list.due, found));
            list.due += 1;
            if let Err(error) = kept {
                self.open = self.open.min(at);
                self.failure = Some((at, error));
            }
        }
        if at < self.open && list.due == list.total {
            let further = self.work.further(at);
            self.known += further;
            self.lists[at] = List::new(further);
        }
    }
}

struct Pool<'a, L: Lists> {
    shared: Mutex<Shared<'a, L>>,
    moved: Condvar,
    ahead: usize,
}

/// Ends the pool if its worker panics, so that no other worker waits for the lost result.
struct Fuse<'a, 'b, L: Lists>(&'a Pool<'b, L>);

impl<L: Lists> Drop for Fuse<'_, '_, L> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Ok(mut shared) = self.0.shared.lock() {
                shared.open = 0;
            }
            self.0.moved.notify_all();
        }
    }
}

impl<'a, L: Lists> Pool<'a, L> {
    fn lock(&self) -> MutexGuard<'_, Shared<'a, L>> {
        let lock = self.shared.lock();
        lock.expect("no worker panics while it holds the lock")
    }

    /// Takes the next task, with its list and its number there; none when there is none left.
    fn take(&self) -> Option<(usize, usize, L::Task)> {
        let waits =
            |shared: &mut Shared<L>| shared.ready(self.ahead).is_none() && !shared.is_over();
        let lock = self.moved.wait_while(self.lock(), waits);
        let mut shared = lock.expect("no worker panics while it holds the lock");
        let at = shared.ready(self.ahead)?;
        let index = shared.lists[at].next;
        shared.lists[at].next += 1;
        Some((at, index, shared.work.task(at, index)))
    }

    /// Hands over a result, and keeps all that are due. Returns the number of tasks that are done,
    /// and of those that are known.
    fn give(&self, at: usize, index: usize, result: Result<L::Found, L::Error>) -> (usize, usize) {
        let mut shared = self.lock();
        if result.is_err() {
            shared.open = shared.open.min(at);
        }
        shared.done += 1;
        // Earlier tasks of the list that failed first may fail too, and come before it.
        if at <= shared.open {
            shared.lists[at].early.insert(index, result);
            shared.settle(at);
        }
        self.moved.notify_all();
        (shared.done, shared.known)
    }
}

/// Runs the tasks of `work` on `jobs` threads, which take those of the first list first, each list's in
/// its order, and those of the next lists while the first has none to give. The results of each list
/// come back in its order, one at a time. A result that is early waits for those before it; a bounded
/// number of them do, so memory does not depend on the number of tasks.
///
/// Plain lists serve better than a work-stealing pool: tasks take from milliseconds to seconds,
/// and the longest must start first or the last worker ends long after the others.
///
/// # Errors
/// Returns the first error in the order of the lists, in each in the order of its tasks, whether of
/// the task or of `work`. The number of jobs does not change this error: after a failure the lists
/// before it go on to their end, and those behind it stop.
pub(crate) fn run_lists<L: Lists>(
    work: &mut L,
    jobs: usize,
    progress: Progress,
    task: impl Fn(&L::Task) -> Result<L::Found, L::Error> + Sync,
) -> Result<(), L::Error> {
    let lengths = work.lengths();
    let pool = Pool {
        shared: Mutex::new(Shared {
            work,
            open: lengths.len(),
            done: 0,
            known: lengths.iter().sum(),
            lists: lengths.into_iter().map(List::new).collect(),
            failure: None,
        }),
        moved: Condvar::new(),
        ahead: AHEAD * jobs,
    };
    let worker = || {
        let _fuse = Fuse(&pool);
        while let Some((at, index, next)) = pool.take() {
            let (done, known) = pool.give(at, index, task(&next));
            progress(done, known);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(worker);
        }
        worker();
    });
    let shared = pool.shared.into_inner().expect("the workers are gone");
    shared.failure.map_or(Ok(()), |(_, error)| Err(error))
}

/// One list that never goes on.
struct Once<T, E, K> {
    total: usize,
    keep: K,
    of: PhantomData<fn(T) -> E>,
}

impl<T: Send, E: Send, K: FnMut(usize, T) -> Result<(), E> + Send> Lists for Once<T, E, K> {
    type Task = usize;
    type Found = T;
    type Error = E;

    fn lengths(&self) -> Vec<usize> {
        vec![self.total]
    }

    fn task(&self, _list: usize, index: usize) -> usize {
        index
    }

    fn keep(&mut self, _list: usize, index: usize, found: T) -> Result<(), E> {
        (self.keep)(index, found)
    }

    fn further(&mut self, _list: usize) -> usize {
        0
    }
}

/// Runs `task(i)` for every `i` in `0..total` as [`run_lists`] runs a single list, and hands the
/// results to `keep`.
///
/// # Errors
/// Returns the first error in the order of the tasks, whether of the task or of `keep`.
pub(crate) fn run<T: Send, E: Send>(
    total: usize,
    jobs: usize,
    progress: Progress,
    task: impl Fn(usize) -> Result<T, E> + Sync,
    keep: impl FnMut(usize, T) -> Result<(), E> + Send,
) -> Result<(), E> {
    let mut work = Once { total, keep, of: PhantomData };
    run_lists(&mut work, jobs.min(total), progress, |&index| task(index))
}

#[cfg(test)]
mod tests {
    // Lists that go on, their failures, and that nobody waits at the end of one: run/tests.rs.
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
        assert!(most >= AHEAD * jobs && most <= AHEAD * jobs + jobs, "{most}");
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
