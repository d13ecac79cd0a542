// SPDX-License-Identifier: GPL-2.0-or-later
//! A thread that ends the program when an input takes CPU time without end.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Most CPU time of an input, milliseconds. The slowest computer that runs the tests takes a small
/// part of it for inputs of this size, so it is the thread's own time and no time of the day.
pub const MOST_MS: u64 = 10_000;

/// The watch over one thread.
#[derive(Debug)]
pub struct Watchdog {
    /// `/proc/PID/task/TID/stat` of the thread.
    stat: String,
    /// The CPU time at which its input began, plus 1; 0 between inputs.
    began: Arc<AtomicU64>,
}

impl Watchdog {
    /// Watches the calling thread, whose inputs are written to `input` before they are tried.
    pub fn new(target: &'static str, input: &Path) -> Watchdog {
        let link = fs::read_link("/proc/thread-self").expect("proc has a folder for each thread");
        let stat = format!("/proc/{}/stat", link.display());
        let began = Arc::new(AtomicU64::new(0));
        let (seen, path, input) = (Arc::downgrade(&began), stat.clone(), input.to_path_buf());
        thread::spawn(move || {
            // The thread's end takes its count along.
            while let Some(began) = seen.upgrade() {
                let since = began.load(Relaxed);
                drop(began);
                if since > 0 && spent_ms(&path) > since - 1 + 2 * MOST_MS {
                    eprintln!(
                        "perch-fuzz: {target}: an input takes more than {} s of CPU time; it is in {}",
                        2 * MOST_MS / 1000,
                        input.display()
                    );
                    std::process::abort();
                }
                thread::sleep(Duration::from_millis(500));
            }
        });
        Watchdog { stat, began }
    }

    /// Returns the CPU time of the thread up to now, in milliseconds.
    pub fn spent_ms(&self) -> u64 {
        spent_ms(&self.stat)
    }

    /// Returns what `run` returns, and its CPU time in milliseconds.
    pub fn time<T>(&self, run: impl FnOnce() -> T) -> (T, u64) {
        let began = self.spent_ms();
        self.began.store(began + 1, Relaxed);
        let found = run();
        self.began.store(0, Relaxed);
        (found, self.spent_ms() - began)
    }
}

/// Returns a thread's CPU time in milliseconds, which the kernel tells in ticks of 10 ms; 0 when
/// the thread is gone.
fn spent_ms(stat: &str) -> u64 {
    let text = fs::read_to_string(stat).unwrap_or_default();
    // The name, in brackets, may hold anything.
    let behind = text.rsplit_once(')').map_or("", |(_, behind)| behind);
    let ticks = behind.split_whitespace().skip(11).take(2);
    10 * ticks.filter_map(|t| t.parse::<u64>().ok()).sum::<u64>()
}
