// SPDX-License-Identifier: GPL-2.0-or-later
//! The running kernel and its clock, on which a trial is conducted.

use std::path::Path;
use std::time::{Duration, Instant};

use perch_scheduler::{Kernel, Signals};

use super::child::Loaded;
use super::conduct::Interruption;
use super::meter::Meter;
use super::schedule::{Schedule, Side};
use crate::output::Failure;

/// How often the running perch is looked at.
const GLANCE: Duration = Duration::from_millis(100);

/// The time that the kernel may take to finish the unloading of a scheduler.
const PATIENCE: Duration = Duration::from_secs(60);

/// This kernel.
pub struct Live {
    kernel: Kernel,
    schedule: Schedule,
    /// The arguments of `perch run`.
    arguments: Vec<String>,
    meter: Meter,
    signals: Signals,
    perch: Option<Loaded>,
    /// What perch said that it schedules, and by which modes; none before it was loaded.
    pub scheduling: Option<String>,
}

impl Live {
    /// The kernel, which schedules by itself now.
    pub fn new(schedule: Schedule, arguments: Vec<String>, meter: Meter, signals: Signals) -> Live {
        Live {
            kernel: Kernel::new(Path::new("/")),
            schedule,
            arguments,
            meter,
            signals,
            perch: None,
            scheduling: None,
        }
    }

    /// Leaves the kernel on its own scheduler.
    ///
    /// # Errors
    /// Where the kernel had let perch go before, or has some scheduler nevertheless.
    pub fn revert(&mut self) -> Result<(), Failure> {
        let Some(perch) = self.perch.take() else {
            return Ok(());
        };
        perch.unload()?;
        self.is_free()
    }

    /// Waits until no scheduler of sched_ext is loaded.
    fn is_free(&self) -> Result<(), Failure> {
        let asked = Instant::now();
        while let Some(name) = self.kernel.loaded() {
            if asked.elapsed() > PATIENCE {
                let words = format!("in stock's turn a sched_ext scheduler is loaded: {name}");
                return Err(Failure::run(words));
            }
            std::thread::sleep(GLANCE / 10);
        }
        Ok(())
    }

    /// Lets time pass, and demands that the side goes on scheduling.
    fn pass(&mut self, time: Duration) -> Result<(), Interruption> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.signals.wait(left.min(GLANCE)).is_some() {
                return Err(Interruption::Stopped);
            }
            if let Some(perch) = &mut self.perch {
                perch.goes_on()?;
            }
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Has the kernel schedule by a side, which may do so already.
    fn switch(&mut self, side: Side) -> Result<(), Interruption> {
        match (side, &mut self.perch) {
            (Side::Stock, _) => {
                self.revert()?;
                self.is_free()?;
            }
            (Side::Perch, Some(perch)) => perch.goes_on()?,
            (Side::Perch, None) => {
                let perch = Loaded::load(&self.arguments, &self.signals)?;
                self.scheduling = Some(perch.scheduling.clone());
                self.perch = Some(perch);
            }
        }
        Ok(())
    }

    /// A turn of a side: lets the part pass that is not measured, and returns each measure's value in
    /// the rest.
    pub fn play(&mut self, side: Side) -> Result<Vec<Option<f64>>, Interruption> {
        self.switch(side)?;
        self.pass(self.schedule.settle)?;
        self.meter.begin(&self.signals)?;
        self.pass(self.schedule.measured())?;
        let values = self.meter.end(&self.signals)?;
        match self.kernel.loaded().filter(|_| self.perch.is_none()) {
            Some(name) => {
                let words =
                    format!("in stock's turn somebody loaded a sched_ext scheduler: {name}");
                Err(Failure::run(words).into())
            }
            None => Ok(values),
        }
    }
}
