// SPDX-License-Identifier: GPL-2.0-or-later
//! The tasks of a round: processes that work, each of which tells in shared memory how it gets on.

use std::ffi::CStr;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::calls::{self, now_ns};

/// What a task does, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Computes.
    Hog,
    /// Sleeps for some us, then computes for some.
    Sleeper { sleep_us: u64, run_us: u64 },
    /// Passes a byte on: reads it from one file and writes it to another.
    Pipe { from: i32, to: i32 },
    /// Takes memory, so many MiB, and leaves it again.
    Memory { mib: usize },
    /// Ends after so many us, with as many tasks that it has forked.
    Parent { children: u64, run_us: u64 },
}

/// How a task gets on.
#[repr(C, align(64))]
pub(crate) struct Pulse {
    beats: AtomicU64,
    last_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Pulse {
    /// A task tells that it runs, and that it waited so long.
    fn beat(&self, now_ns: u64, waited_ns: u64) {
        self.longest_ns.fetch_max(waited_ns, Ordering::Relaxed);
        self.last_ns.store(now_ns, Ordering::Relaxed);
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    fn begin(&self) {
        self.longest_ns.store(0, Ordering::Relaxed);
        self.last_ns.store(now_ns(), Ordering::Relaxed);
        self.beats.store(0, Ordering::Relaxed);
    }

    /// The number of times that it has told so.
    pub(crate) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// The longest time for which it could not run though it wanted to, ns: between two of its looks at
    /// the clock, or until now.
    pub(crate) fn longest_ns(&self) -> u64 {
        let since = now_ns().saturating_sub(self.last_ns.load(Ordering::Relaxed));
        self.longest_ns.load(Ordering::Relaxed).max(since)
    }
}

/// The shared memory.
pub(crate) struct Pulses {
    first: NonNull<Pulse>,
    used: AtomicUsize,
}

// SAFETY: the memory is of this process until its end, and holds only atomic numbers.
unsafe impl Send for Pulses {}
// SAFETY: as above.
unsafe impl Sync for Pulses {}

impl Pulses {
    /// The number of tasks that can tell.
    const MOST: usize = 4096;

    pub(crate) fn new() -> io::Result<Pulses> {
        // SAFETY: an anonymous mapping at a place that the kernel chooses.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Self::MOST * size_of::<Pulse>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Pulses {
            first: NonNull::new(at).expect("memory is nowhere").cast(),
            used: AtomicUsize::new(0),
        })
    }

    fn next(&self) -> &Pulse {
        // Tasks that never tell share the last place, as do those beyond.
        let index = self.used.fetch_add(1, Ordering::Relaxed);
        let index = index.min(Self::MOST - 1);
        // SAFETY: the mapping holds so many, zeroed, and stays until the process ends.
        unsafe { self.first.add(index).as_ref() }
    }

    /// Forks a task of this name. It is the ordinary task that this thread's children are, and ends with
    /// this thread.
    ///
    /// # Errors
    /// The kernel's, where there is no room for another task.
    pub(crate) fn fork(&self, name: &'static CStr, work: Work) -> io::Result<Task<'_>> {
        let pulse = match work {
            Work::Hog | Work::Sleeper { .. } | Work::Pipe { .. } => self.next(),
            // SAFETY: as in `next`.
            _ => unsafe { self.first.add(Self::MOST - 1).as_ref() },
        };
        pulse.begin();
        // SAFETY: the child calls only functions that are safe after a fork, and never returns.
        match unsafe { libc::fork() } {
            ..0 => Err(io::Error::last_os_error()),
            0 => be(name, work, pulse),
            pid => Ok(Task { pid, name, pulse }),
        }
    }
}

/// A task, alive or not.
pub(crate) struct Task<'a> {
    pub(crate) pid: i32,
    pub(crate) name: &'static CStr,
    pub(crate) pulse: &'a Pulse,
}

impl Task<'_> {
    /// Its name and number, for a report.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.name.to_string_lossy(), self.pid)
    }
}

/// The life of a task.
fn be(name: &CStr, work: Work, pulse: &Pulse) -> ! {
    // SAFETY: these calls take numbers and a string that ends with a zero. /dev/null is no longer
    // needed by that number once it stands for the three.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..3 {
            libc::dup2(null, standard);
        }
        libc::close(null);
    }
    // The child of a process that the kernel shall not kill is not so itself.
    victim();
    match work {
        Work::Hog => {
            let mut last = now_ns();
            loop {
                let now = now_ns();
                pulse.beat(now, now - last);
                last = now;
            }
        }
        Work::Sleeper { sleep_us, run_us } => loop {
            let before = now_ns();
            calls::sleep_us(sleep_us);
            let now = now_ns();
            pulse.beat(now, (now - before).saturating_sub(sleep_us * 1000));
            calls::spin_us(run_us);
        },
        Work::Pipe { from, to } => loop {
            let mut byte = [0u8; 1];
            // SAFETY: both files are open, and the byte is there for the calls.
            let passed = unsafe {
                libc::read(from, byte.as_mut_ptr().cast(), 1) == 1
                    && libc::write(to, byte.as_ptr().cast(), 1) == 1
            };
            if !passed {
                end();
            }
            pulse.beat(now_ns(), 0);
        },
        Work::Memory { mib } => loop {
            let size = mib << 20;
            // SAFETY: an anonymous mapping, written within its bounds and given back.
            unsafe {
                let at = libc::mmap(
                    std::ptr::null_mut(),
                    size,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                );
                if at == libc::MAP_FAILED {
                    end();
                }
                for page in (0..size).step_by(4096) {
                    at.cast::<u8>().add(page).write_volatile(1);
                }
                libc::munmap(at, size);
            }
            calls::sleep_us(1000);
        },
        Work::Parent { children, run_us } => {
            for _ in 0..children {
                // SAFETY: the process has one thread.
                if unsafe { libc::fork() } == 0 {
                    calls::spin_us(run_us);
                    end();
                }
            }
            calls::spin_us(run_us);
            // Every other parent leaves its children to the first process.
            if children % 2 == 0 {
                // SAFETY: no status is wanted.
                while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
            }
            end()
        }
    }
}

/// Lets the kernel kill this process as any other, by calls that are safe after a fork.
fn victim() {
    // SAFETY: the string ends with a zero, and the bytes are there for the call.
    unsafe {
        let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY);
        libc::write(file, c"0".as_ptr().cast(), 1);
        libc::close(file);
    }
}

/// Ends a forked process without what its parent registered to be done at an end.
fn end() -> ! {
    // SAFETY: the call does not return.
    unsafe { libc::_exit(0) }
}
