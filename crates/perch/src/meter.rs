// SPDX-License-Identifier: GPL-2.0-or-later
//! The progress of work that takes more than a moment: a bar on stderr, where that is a terminal.

#[cfg(test)]
mod tests;

use std::io;
#[cfg(feature = "record")]
use std::io::Read;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use perch_sim::{Asked, Switched, Watch, Woken};

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

/// The clock that a meter reads and the place where it draws.
trait Surroundings: Send + Sync {
    /// The time since the meter began.
    fn elapsed(&self) -> Duration;

    fn target(&self) -> ProgressDrawTarget;
}

/// The host's clock, and stderr.
struct Host(Instant);

impl Surroundings for Host {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// A bar draws nothing where stderr is not a terminal.
    fn target(&self) -> ProgressDrawTarget {
        ProgressDrawTarget::stderr()
    }
}

/// A bar with a rate and the time that is left; where the total is unknown, a line with the amount
/// done and the rate. It disappears when the value is dropped.
pub struct Meter {
    bar: ProgressBar,
    what: String,
    unit: Unit,
    quiet: bool,
    around: Box<dyn Surroundings>,
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
        Meter::amid(Box::new(Host(Instant::now())), what, unit, quiet)
    }

    fn amid(around: Box<dyn Surroundings>, what: &str, unit: Unit, quiet: bool) -> Meter {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_prefix(escaped(what).into_owned());
        Meter {
            bar,
            what: what.to_string(),
            unit,
            quiet,
            around,
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
        if !self.quiet && self.around.elapsed() > BAR_AFTER {
            self.shown.call_once(|| {
                self.bar.set_style(style(self.unit, total));
                self.bar.set_draw_target(self.around.target());
                self.bar.tick();
                self.bar.enable_steady_tick(Duration::from_millis(200));
            });
        }
    }

    /// As [`Meter::advance`], where `part` of the work is done, 0 to 1: the time that is left follows from
    /// that, as the last of `total` may cost more than all others.
    pub fn advance_by_cost(&self, done: u64, total: u64, part: f64) {
        if part > 0.0 {
            let left = (self.around.elapsed()).mul_f64((1.0 - part).max(0.0) / part);
            let left = HumanDuration(left);
            self.bar.set_message(format!(", {left:#} left"));
        }
        self.advance(done, total);
    }

    /// Runs `write`, which writes to the terminal, while no bar is there that it could write into.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
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
        say(self.words(what, jobs));
    }

    fn words(&self, what: &str, jobs: usize) -> String {
        let total = self.total.load(Ordering::Relaxed);
        let jobs = if jobs == 1 { "1 thread".to_string() } else { format!("{jobs} threads") };
        let seconds = self.around.elapsed().as_secs_f64();
        format!("{}: {total} {what} in {seconds:.1} s on {jobs}", self.what)
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

/// A watcher of a simulation that shows how far the simulation is, in simulated milliseconds.
pub struct MeteredWatch<W> {
    inner: W,
    meter: Meter,
    ms: u64,
    total_ms: u64,
}

impl<W> MeteredWatch<W> {
    /// A watcher of a simulation of `total_ns` nanoseconds.
    pub fn new(inner: W, meter: Meter, total_ns: u64) -> MeteredWatch<W> {
        MeteredWatch { inner, meter, ms: 0, total_ms: total_ns / 1_000_000 }
    }

    fn at(&mut self, at_ns: u64) {
        let ms = at_ns / 1_000_000;
        if ms > self.ms {
            self.ms = ms;
            self.meter.advance(ms, self.total_ms);
        }
    }
}

impl<W: Watch> Watch for MeteredWatch<W> {
    fn asked(&mut self, asked: &Asked) -> io::Result<()> {
        self.inner.asked(asked)
    }

    fn woken(&mut self, woken: &Woken) -> io::Result<()> {
        self.at(woken.at_ns);
        self.inner.woken(woken)
    }

    fn switched(&mut self, switched: &Switched) -> io::Result<()> {
        self.at(switched.at_ns);
        self.inner.switched(switched)
    }

    fn loaded(&mut self, at_ns: u64, llc: usize, runnable: u32) -> io::Result<()> {
        self.inner.loaded(at_ns, llc, runnable)
    }

    fn ended(&mut self, at_ns: u64) -> io::Result<()> {
        self.inner.ended(at_ns)
    }
}
