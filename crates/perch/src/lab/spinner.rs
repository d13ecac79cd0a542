// SPDX-License-Identifier: GPL-2.0-or-later
//! The work under way, on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perch_lab::Progress;

use crate::output::escaped;

/// A line on a terminal that tells of the work in progress.
#[derive(Clone)]
pub struct Spinner(ProgressBar);

impl Spinner {
    /// Hidden if `quiet`, or where stderr is not a terminal.
    pub fn new(quiet: bool) -> Spinner {
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
        let style = style.expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Spinner(bar)
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Spinner {
    fn step(&self, message: &str, fraction: Option<f64>) {
        let percent = fraction.map(|fraction| format!(", {:.0} %", 100.0 * fraction));
        let message = escaped(message);
        self.0.set_message(format!("{message}{}", percent.unwrap_or_default()));
    }
}
