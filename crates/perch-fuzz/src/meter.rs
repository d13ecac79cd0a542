// SPDX-License-Identifier: GPL-2.0-or-later
//! The memory that a thread holds, and the most that it may.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;

/// Bytes beyond which a thread that tries an input gets no memory, which ends the program: the
/// target's name is printed first, and the input is in a file by then.
const MOST_BYTES: isize = 1 << 30;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// The target whose input the thread tries; empty between inputs.
    static TARGET: Cell<&'static str> = const { Cell::new("") };
}

/// The system's allocator, which counts what each thread holds. Memory that another thread frees
/// counts as held on: a reader hands little to others.
#[derive(Debug)]
pub struct Meter;

impl Meter {
    /// Returns true where the thread may take so many bytes more, and counts them.
    fn take(bytes: isize) -> bool {
        let held = HELD.get().saturating_add(bytes);
        let target = TARGET.get();
        if !target.is_empty() {
            if held > MOST_BYTES {
                TARGET.set("");
                // This must not allocate: the standard error has no buffer.
                let _ = writeln!(
                    std::io::stderr(),
                    "perch-fuzz: {target}: an input takes more than {MOST_BYTES} bytes \
                     ({bytes} at once); it is in fuzz/{target}.input of cargo's folder"
                );
                return false;
            }
            PEAK.set(PEAK.get().max(held));
        }
        HELD.set(held);
        true
    }
}

// SAFETY: every call goes on to the system's allocator, with its own arguments; null, which tells
// that there is no memory, is the only other answer.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match Meter::take(layout.size() as isize) {
            // SAFETY: the caller's promises are those that the system's allocator asks for.
            true => unsafe { System.alloc(layout) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match Meter::take(layout.size() as isize) {
            // SAFETY: as above.
            true => unsafe { System.alloc_zeroed(layout) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Meter::take(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match Meter::take(size as isize - layout.size() as isize) {
            // SAFETY: as above.
            true => unsafe { System.realloc(pointer, layout, size) },
            false => std::ptr::null_mut(),
        }
    }
}

/// Returns what `run` returns, and the bytes that the thread held at most meanwhile, above what it
/// held before.
pub fn metered<T>(target: &'static str, run: impl FnOnce() -> T) -> (T, u64) {
    HELD.set(0);
    PEAK.set(0);
    TARGET.set(target);
    let found = run();
    TARGET.set("");
    (found, PEAK.get() as u64)
}

/// Returns true where the thread tries an input.
pub fn is_metered() -> bool {
    !TARGET.get().is_empty()
}
