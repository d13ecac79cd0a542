// SPDX-License-Identifier: GPL-2.0-or-later
//! Workers that take tasks from lists.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A function that is called after each simulation, and ten times a second meanwhile, with the number
/// of simulations that are done and the number of all.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// The number of results that may wait for an earlier one, for each worker.
const AHEAD: usize = 16;
/// The time between two calls of a caller who may want the work to stop.
const MEANWHILE: Duration = Duration::from_millis(100);

/// Lists of tasks for [`run_lists`]. The results of a list come back in its order, and decide
/// whether the list goes on.
pub(crate) trait Lists {
    /// What a worker needs to know of a task.
    type Task: Send;
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
    fn further(&mut self, _list: usize) -> usize {
        0
    }

    /// Is called after each task, and ten times a second meanwhile, with the number of tasks that are
    /// done and of those that are known. An error stops the work.
    fn advance(&mut self, done: usize, known: usize) -> Result<(), Self::Error>;

    /// Returns the number of results that may wait for an earlier one. It is bounded where results are
    /// large.
    fn ahead(&self, jobs: usize) -> usize {
        AHEAD * jobs
    }
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

/// The lists of a run, and how far they are.
struct Lane<'a, L: Lists> {
    work: &'a mut L,
    lists: Vec<List<L::Found, L::Error>>,
    /// Workers take tasks of the lists before this one: it has failed, so those from it on can change
    /// nothing any more.
    open: usize,
    /// The number of results that may wait.
    ahead: usize,
    /// The number of tasks that are known.
    known: usize,
    /// The first failure of the first list that failed.
    failure: Option<(usize, L::Error)>,
}

impl<L: Lists> Lane<'_, L> {
    /// Takes the next task, with its list and its number there. A list none of whose tasks is taken
    /// already needs no room for early results.
    fn take(&mut self) -> Option<(usize, usize, L::Task)> {
        let lists = &self.lists[..self.open];
        let is_full = lists.iter().map(List::outstanding).sum::<usize>() >= self.ahead;
        let has_one =
            |list: &List<_, _>| list.next < list.total && (!is_full || list.outstanding() == 0);
        let at = lists.iter().position(has_one)?;
        let index = self.lists[at].next;
        self.lists[at].next += 1;
        Some((at, index, self.work.task(at, index)))
    }

    /// Takes a result, keeps all of the list that are due, and lets the list go on when all are kept.
    fn give(&mut self, at: usize, index: usize, result: Result<L::Found, L::Error>) {
        // Earlier tasks of the list that failed first may fail too, and come before it.
        if at > self.open {
            return;
        }
        if result.is_err() {
            self.open = at;
        }
        let list = &mut self.lists[at];
        list.early.insert(index, result);
        while !matches!(self.failure, Some((failed, _)) if failed <= at) {
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

/// Runs the tasks of `work` on `jobs` threads, which take those of the first list first, each list's in
/// its order, and those of the next lists while the first has none to give. The results of each list
/// come back to this thread in its order. A result that is early waits for those before it; a bounded
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
    task: impl Fn(&L::Task) -> Result<L::Found, L::Error> + Sync,
) -> Result<(), L::Error> {
    let lists: Vec<_> = work.lengths().into_iter().map(List::new).collect();
    let (open, known) = (lists.len(), lists.iter().map(|list| list.total).sum());
    let ahead = work.ahead(jobs);
    let mut lane = Lane { work, lists, open, ahead, known, failure: None };
    let (hand, tasks) = channel::<(usize, usize, L::Task)>();
    let (tasks, task) = (&Mutex::new(tasks), &task);
    std::thread::scope(|scope| {
        // It goes with this closure, and the workers after it.
        let hand = hand;
        let (ended, ends) = channel();
        for _ in 0..jobs {
            let ended = ended.clone();
            scope.spawn(move || {
                let next = || tasks.lock().ok()?.recv().ok();
                while let Some((at, index, one)) = next() {
                    // A worker that panics would leave this thread waiting for its result.
                    let result = catch_unwind(AssertUnwindSafe(|| task(&one)));
                    if ended.send((at, index, result)).is_err() {
                        return;
                    }
                }
            });
        }
        let (mut done, mut running) = (0, 0);
        loop {
            // A second task for each, which it finds while this thread is at something else.
            while running < 2 * jobs
                && let Some(next) = lane.take()
            {
                hand.send(next).expect("workers wait for tasks");
                running += 1;
            }
            if running == 0 {
                return lane.failure.map_or(Ok(()), |(_, error)| Err(error));
            }
            match ends.recv_timeout(MEANWHILE) {
                Ok((at, index, result)) => {
                    (done, running) = (done + 1, running - 1);
                    lane.give(at, index, result.unwrap_or_else(|panic| resume_unwind(panic)));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("this thread can send, too"),
            }
            lane.work.advance(done, lane.known)?;
        }
    })
}

/// One list that never goes on.
struct Once<'a, T, E, K> {
    total: usize,
    progress: Progress<'a>,
    keep: K,
    of: PhantomData<fn(T) -> E>,
}

impl<T: Send, E: Send, K: FnMut(usize, T) -> Result<(), E>> Lists for Once<'_, T, E, K> {
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

    fn advance(&mut self, done: usize, known: usize) -> Result<(), E> {
        (self.progress)(done, known);
        Ok(())
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
    keep: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    let mut work = Once { total, progress, keep, of: PhantomData };
    run_lists(&mut work, jobs.min(total), |&index| task(index))
}

#[cfg(test)]
mod tests {
    // Lists that go on, their failures, and that nobody waits at the end of one: run/tests.rs.
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_are_kept_in_order_whatever_the_jobs() {
        for jobs in [1, 2, 7, 200] {
            let mut kept = Vec::new();
            let keep = |i, square| {
                kept.push((i, square));
                Ok(())
            };
            run(100, jobs, &mut |_, _| {}, |i| Ok::<_, ()>(i * i), keep).unwrap();
            assert_eq!(kept, (0..100).map(|i| (i, i * i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_failure_in_order_is_reported_whatever_the_jobs() {
        for jobs in [1, 2, 7] {
            let fail = |i: usize| if i % 10 == 9 { Err(i) } else { Ok(i) };
            assert_eq!(run(100, jobs, &mut |_, _| {}, fail, |_, _| Ok(())), Err(9));
            let refuse = |i: usize, _| if i == 5 { Err(i) } else { Ok(()) };
            assert_eq!(run(100, jobs, &mut |_, _| {}, fail, refuse), Err(5));
        }
    }

    #[test]
    fn progress_counts_every_task_once() {
        let mut seen = Vec::new();
        let mut note = |done, total| seen.push((done, total));
        run(20, 3, &mut note, Ok::<_, ()>, |_, _| Ok(())).unwrap();
        seen.dedup();
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
        run(10_000, jobs, &mut |_, _| {}, task, |_, _| Ok(())).unwrap();
        let most = most.into_inner();
        assert!(most >= AHEAD * jobs && most <= AHEAD * jobs + jobs, "{most}");
        assert_eq!(exist.into_inner(), 0);
    }

    /// The other worker waits for a task meanwhile.
    #[test]
    #[should_panic(expected = "a task")]
    fn a_panic_ends_the_pool() {
        let task = |i| if i == 9 { panic!("a task") } else { Ok::<_, ()>(()) };
        run(10, 2, &mut |_, _| {}, task, |_, ()| Ok(())).unwrap();
    }

    /// A worker goes on for as long as nothing stops it.
    #[test]
    fn error_of_advance_stops_the_workers() {
        struct Stopped(usize);
        impl Lists for Stopped {
            type Task = usize;
            type Found = ();
            type Error = &'static str;
            fn lengths(&self) -> Vec<usize> {
                vec![usize::MAX]
            }
            fn task(&self, _list: usize, index: usize) -> usize {
                index
            }
            fn keep(&mut self, _list: usize, _index: usize, (): ()) -> Result<(), &'static str> {
                Ok(())
            }
            fn advance(&mut self, done: usize, _known: usize) -> Result<(), &'static str> {
                self.0 = done;
                if done < 5 { Ok(()) } else { Err("enough") }
            }
        }
        let mut work = Stopped(0);
        assert_eq!(run_lists(&mut work, 2, |_| Ok(())), Err("enough"));
        assert_eq!(work.0, 5);
    }
}
