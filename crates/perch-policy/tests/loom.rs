// SPDX-License-Identifier: GPL-2.0-or-later
//! The counters' C code (policy/include/perch/overload.h) under a model checker: loom runs each
//! case in every order that acquiring loads and releasing updates allow, and lets a load see every
//! value that C's memory model lets it see.
//!
//! Here a CPU is overloaded at every moment, but not always the same one. A read that says "none"
//! then is wrong: the posted one does so, mode perch never.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use perch_policy::Layout;
use perch_policy::mirror::Overload;

unsafe extern "C" {
    fn perch_checked_set(overload: *const Overload, mark: *mut u32, home: u32);
    fn perch_checked_clear(overload: *const Overload, mark: *mut u32, home: u32);
    fn perch_checked_read(overload: *const Overload, home: u32) -> u32;
}

/// The atomic load that policy/hosts/checked.c calls.
#[unsafe(no_mangle)]
extern "C" fn perch_checked_load(counter: *const c_void) -> u64 {
    // SAFETY: the table that `Counters::with` passes leads to nothing else.
    unsafe { &*counter.cast::<AtomicU64>() }.load(Ordering::Acquire)
}

/// As above.
#[unsafe(no_mangle)]
extern "C" fn perch_checked_add(counter: *const c_void, n: u64) {
    // SAFETY: as above.
    unsafe { &*counter.cast::<AtomicU64>() }.fetch_add(n, Ordering::AcqRel);
}

/// Counters, one for each CPU of these cases.
struct Counters {
    words: Vec<AtomicU64>,
    exact: bool,
}

/// `enum perch_overload_level`.
const NONE: u32 = 0;
const ONE: u32 = 1;

impl Counters {
    fn new(nr: usize, exact: bool) -> Arc<Counters> {
        let words = (0..nr).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Counters { words, exact })
    }

    fn with<R>(&self, f: impl FnOnce(&Overload) -> R) -> R {
        let address = |word: &AtomicU64| std::ptr::from_ref(word).cast();
        let table: Vec<*const c_void> = self.words.iter().map(address).collect();
        f(&Overload {
            counters: table.as_ptr() as u64,
            nr: table.len() as u32,
            layout: Layout::NodePadded as u32,
            exact: self.exact.into(),
            pad: 0,
        })
    }

    /// The CPU whose counter this is becomes overloaded; its mark.
    fn set(&self, cpu: u32) -> u32 {
        let mut mark = 0;
        // SAFETY: the table lives through the call, and the CPU has a counter in it.
        self.with(|raw| unsafe { perch_checked_set(raw, &mut mark, cpu) });
        mark
    }

    /// It no longer is.
    fn clear(&self, cpu: u32, mut mark: u32) {
        // SAFETY: as above.
        self.with(|raw| unsafe { perch_checked_clear(raw, &mut mark, cpu) });
    }

    fn read(&self, cpu: u32) -> u32 {
        // SAFETY: as above.
        self.with(|raw| unsafe { perch_checked_read(raw, cpu) })
    }
}

/// True if `case` holds in all interleavings.
fn always(case: impl Fn() + Send + Sync + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| loom::model(case))).is_ok()
}

/// Overload goes from counter to counter along `way`, each raised before the one before it is
/// lowered, while other CPUs read from each counter outwards.
fn hops(nr: usize, exact: bool, way: &'static [u32]) -> bool {
    (0..nr as u32).all(|reader| {
        always(move || {
            let counters = Counters::new(nr, exact);
            let mut mark = counters.set(way[0]);
            let others = counters.clone();
            let hops = thread::spawn(move || {
                for hop in way.windows(2) {
                    let next = others.set(hop[1]);
                    others.clear(hop[0], mark);
                    mark = next;
                }
            });
            assert_ne!(counters.read(reader), NONE, "somebody was overloaded all the time");
            hops.join().expect("no panic");
            assert_eq!(counters.read(reader), ONE, "at rest it is one");
        })
    })
}

#[test]
fn a_posted_read_misses_overload_that_moves() {
    assert!(!hops(2, false, &[1, 0]));
}

#[test]
fn a_checked_read_does_not() {
    assert!(hops(2, true, &[1, 0]));
    assert!(hops(3, true, &[2, 0]));
}

#[test]
fn not_even_when_it_comes_back() {
    // The counters show the same numbers again: what tells is how often they were raised.
    assert!(hops(2, true, &[0, 1, 0]));
    assert!(hops(2, true, &[1, 0, 1, 0]));
}

#[test]
fn nor_when_two_cpus_hand_it_over() {
    // The CPU that lowers its counter has seen the other's counter raised, as a pushing CPU has.
    let case = |exact| {
        always(move || {
            let counters = Counters::new(2, exact);
            let mark = counters.set(1);
            let pushed = Arc::new(AtomicU64::new(0));
            let (theirs, flag) = (counters.clone(), pushed.clone());
            let gets = thread::spawn(move || {
                theirs.set(0);
                flag.store(1, Ordering::Release);
            });
            let (theirs, flag) = (counters.clone(), pushed);
            let gives = thread::spawn(move || {
                if flag.load(Ordering::Acquire) == 1 {
                    theirs.clear(1, mark);
                }
            });
            assert_ne!(counters.read(0), NONE, "somebody was overloaded all the time");
            gets.join().expect("no panic");
            gives.join().expect("no panic");
        })
    };
    assert!(!case(false));
    assert!(case(true));
}

/// An overloaded CPU takes the answer "one" for "no other CPU is overloaded": that is true at some
/// moment.
#[test]
fn a_checked_one_is_one() {
    let case = |exact| {
        always(move || {
            // The reader, CPU 0, is overloaded, and so is always one other CPU.
            let counters = Counters::new(3, exact);
            counters.set(0);
            let mark = counters.set(2);
            let others = counters.clone();
            let hop = thread::spawn(move || {
                others.set(1);
                others.clear(2, mark);
            });
            assert_ne!(counters.read(0), ONE, "there were two all the time");
            hop.join().expect("no panic");
        })
    };
    assert!(!case(false));
    assert!(case(true));
}

/// The other way round: an answer of "none" or "one" at rest is never "more", so that no reader
/// looks at every CPU for nothing.
#[test]
fn at_rest_a_read_is_exact() {
    assert!(always(|| {
        let counters = Counters::new(2, true);
        let others = counters.clone();
        let busy = thread::spawn(move || {
            let mark = others.set(1);
            others.clear(1, mark);
        });
        busy.join().expect("no panic");
        assert_eq!(counters.read(0), NONE);
        counters.set(1);
        assert_eq!((counters.read(0), counters.read(1)), (ONE, ONE));
    }));
}
