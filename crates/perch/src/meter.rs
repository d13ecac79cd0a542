// SPDX-License-Identifier: GPL-2.0-or-later
//! The progress of work that takes more than a moment: a bar on stderr, where that is a terminal.

#[cfg(feature = "record")]
use std::io::{self, Read};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{escaped, say};

/// The time after which a bar appears; shorter work is over before a person has read a bar.
const BAR_AFTER: Duration = Duration::from_secs(2);

/// The things that a meter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Simulations, rows, milliseconds.
    Each,
    /// Simulations of different costs, which [`Meter::advance_by_cost`] tells.
    Weighed,
    /// Bytes.
    #[cfg_attr(not(feature = "record"), expect(dead_code, reason = "for recordings"))]
    Bytes,
}

/// A bar with a rate and the time that is left; where the total is unknown, a line with the amount
/// done and the rate. It disappears when the value is dropped.
pub struct Meter {
    bar: ProgressBar,
    what: String,
    unit: Unit,
    quiet: bool,
    began: Instant,
    shown: Once,
    total: AtomicU64,
}

fn style(unit: Unit, total: u64) -> ProgressStyle {
    let template = match (unit, total) {
        (Unit::Each | Unit::Weighed, 0) => "{prefix} {pos}, {per_sec}, {elapsed}",
        (Unit::Each, _) => "{prefix} [{bar:40}] {pos}/{len}, {per_sec}, {eta} left",
        (Unit::Weighed, _) => "{prefix} [{bar:40}] {pos}/{len}, {per_sec}{msg}",
        (Unit::Bytes, 0) => "{prefix} {bytes}, {bytes_per_sec}, {elapsed}",
        (Unit::Bytes, _) => {
            "{prefix} [{bar:40}] {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left"
        }
    };
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    style.progress_chars("=> ")
}

impl Meter {
    /// Begins to measure `what`; draws nothing if `quiet`.
    pub fn new(what: &str, unit: Unit, quiet: bool) -> Meter {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_prefix(escaped(what).into_owned());
        Meter {
            bar,
            what: what.to_string(),
            unit,
            quiet,
            began: Instant::now(),
            shown: Once::new(),
            total: AtomicU64::new(0),
        }
    }

    /// Tells that `done` of `total` are done; a total of 0 is unknown.
    pub fn advance(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        if total > 0 {
            self.bar.set_length(total);
        }
        self.bar.set_position(self.bar.position().max(done));
        if !self.quiet && self.began.elapsed() > BAR_AFTER {
            self.shown.call_once(|| {
                self.bar.set_style(style(self.unit, total));
                // It draws nothing where stderr is not a terminal.
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
                self.bar.tick();
                self.bar.enable_steady_tick(Duration::from_millis(200));
            });
        }
    }

    /// As [`Meter::advance`], where `part` of the work is done, 0 to 1: the time that is left follows from
    /// that, as the last of `total` may cost more than all others.
    pub fn advance_by_cost(&self, done: u64, total: u64, part: f64) {
        if part > 0.0 {
            let left = (self.began.elapsed()).mul_f64((1.0 - part).max(0.0) / part);
            let left = HumanDuration(left);
            self.bar.set_message(format!(", {left:#} left"));
        }
        self.advance(done, total);
    }

    /// Removes the bar, and says on stderr how many simulations ran, for how long and on how many
    /// threads.
    pub fn say_simulated(self, jobs: usize) {
        self.say("simulations", jobs);
    }

    /// As [`Meter::say_simulated`], of other work: `what` names several pieces of it.
    pub fn say(self, what: &str, jobs: usize) {
        self.bar.finish_and_clear();
        if self.quiet {
            return;
        }
        let total = self.total.load(Ordering::Relaxed);
        let jobs = if jobs == 1 { "1 thread".to_string() } else { format!("{jobs} threads") };
        let seconds = self.began.elapsed().as_secs_f64();
        say(format_args!("{}: {total} {what} in {seconds:.1} s on {jobs}", self.what));
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(feature = "record")]
/// A reader that shows how much of its input is read.
pub struct Metered<R> {
    inner: R,
    meter: Meter,
    done: u64,
    total: u64,
}

#[cfg(feature = "record")]
impl<R> Metered<R> {
    /// A reader of `total` bytes; 0 where the total is unknown.
    pub fn new(inner: R, meter: Meter, total: u64) -> Metered<R> {
        Metered { inner, meter, done: 0, total }
    }
}

#[cfg(feature = "record")]
impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.done += read as u64;
        self.meter.advance(self.done, self.total);
        if read == 0 {
            // The input is at its end, so the bar leaves the terminal to the output.
            self.meter.bar.finish_and_clear();
        }
        Ok(read)
    }
}
