// SPDX-License-Identifier: GPL-2.0-only
//! Where results, words and failures go.

use std::io::{ErrorKind, Write};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perch_experiment::ExperimentError;
use perch_machine::MachineError;

/// Why the command ends early.
#[derive(Debug)]
pub struct Failure {
    /// 1: what was asked failed. 2: it makes no sense.
    pub code: u8,
    /// For the user.
    pub message: String,
}

impl Failure {
    /// What was asked makes no sense.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure {
            code: 2,
            message: message.into(),
        }
    }

    /// What was asked failed.
    pub fn run(message: impl Into<String>) -> Failure {
        Failure {
            code: 1,
            message: message.into(),
        }
    }
}

impl From<MachineError> for Failure {
    fn from(error: MachineError) -> Failure {
        Failure::input(error.to_string())
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Failure {
        let code = if error.is_input() { 2 } else { 1 };
        Failure {
            code,
            message: error.to_string(),
        }
    }
}

/// Writes `text` to stdout. A reader that has seen enough (`| head`) is no failure.
pub fn emit(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// What takes less long is over before a bar is read.
const BAR_AFTER: Duration = Duration::from_secs(2);

/// A progress bar on stderr where that is a terminal and it takes long, and a closing line.
pub struct Meter {
    bar: ProgressBar,
    what: String,
    jobs: usize,
    quiet: bool,
    began: Instant,
    shown: Once,
    total: Mutex<usize>,
}

impl Meter {
    /// Begins to measure `what`.
    pub fn new(what: &str, jobs: usize, quiet: bool) -> Meter {
        let template = "{prefix} [{bar:40}] {pos}/{len}, {per_sec}, {eta} left";
        let style = ProgressStyle::with_template(template)
            .expect("the template is well formed")
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let bar = bar.with_style(style);
        bar.set_prefix(what.to_string());
        Meter {
            bar,
            what: what.to_string(),
            jobs,
            quiet,
            began: Instant::now(),
            shown: Once::new(),
            total: Mutex::new(0),
        }
    }

    /// So many of so many are done.
    pub fn advance(&self, done: usize, total: usize) {
        *self.total.lock().expect("nobody panics while holding it") = total;
        if !self.quiet && self.began.elapsed() > BAR_AFTER {
            self.shown.call_once(|| {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
                self.bar.enable_steady_tick(Duration::from_millis(200));
            });
        }
        self.bar.set_length(total as u64);
        self.bar.set_position(self.bar.position().max(done as u64));
    }

    /// Takes the bar away and says how long it took.
    pub fn finish(self) {
        self.bar.finish_and_clear();
        if self.quiet {
            return;
        }
        let total = *self.total.lock().expect("nobody panics while holding it");
        let jobs = if self.jobs == 1 {
            "1 thread".to_string()
        } else {
            format!("{} threads", self.jobs)
        };
        let seconds = self.began.elapsed().as_secs_f64();
        eprintln!(
            "perch: {}: {total} simulations in {seconds:.1} s on {jobs}",
            self.what
        );
    }
}
