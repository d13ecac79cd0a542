// SPDX-License-Identifier: GPL-2.0-or-later
//! A perch that schedules in a guest.

use std::cell::RefCell;

use perch_lab::guest::{Process, Signal, Status};
use perch_scheduler::stats::Report;

use crate::guest::{Lab, PATIENCE, comes};

/// A scheduler that is loaded. Dropping the value kills it.
pub struct Perch<'a> {
    lab: &'a Lab,
    process: RefCell<Process>,
}

impl<'a> Perch<'a> {
    /// The perch that runs as `process` in the lab.
    pub fn new(lab: &'a Lab, process: Process) -> Perch<'a> {
        let process = RefCell::new(process);
        Perch { lab, process }
    }

    /// Waits until perch has written these words to standard error or output.
    pub fn says(&self, words: &str) {
        let _awake = self.lab.awake();
        let said = self.process.borrow_mut().wait_for(words, PATIENCE);
        if let Err(error) = said {
            self.lab.fail(&error.to_string());
        }
    }

    /// Waits until perch has written these words so many times to standard error; fails when perch
    /// has ended before.
    pub fn says_often(&self, words: &str, times: usize) {
        let _awake = self.lab.awake();
        let enough = || self.said().matches(words).count() >= times;
        comes(|| !self.process.borrow_mut().is_running() || enough());
        if !enough() {
            let said = self.said();
            self.lab.fail(&format!("not the {times}th time `{words}`; perch said:\n{said}"));
        }
    }

    /// The text that perch has written to standard error.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(self.process.borrow_mut().stderr()).into_owned()
    }

    /// Demands that perch schedules and that the kernel's log tells of no trouble.
    pub fn is_well(&self) {
        self.lab.is_well();
        let scheduler = self.lab.scheduler();
        if scheduler != "perch" || !self.process.borrow_mut().is_running() {
            let said = self.said();
            self.lab.fail(&format!("the scheduler is `{scheduler}`; perch said:\n{said}"));
        }
    }

    /// The report of `perch stats`.
    pub fn report(&self) -> Report {
        let text = self.lab.text("perch stats --format json");
        let report: Report = serde_json::from_str(&text).unwrap();
        assert!(report.uptime_ns > 0 && report.busy_ns > 0, "{text}");
        report
    }

    /// Unloads perch by Ctrl-C, and demands a clean end after which the kernel runs its own
    /// scheduler.
    pub fn unload(self) -> String {
        self.is_well();
        let process = self.process.into_inner();
        process.signal(Signal::INT).unwrap();
        let output = self.lab.end("perch, after Ctrl-C,", process);
        if output.status != Status::Code(0) {
            self.lab.fail(&format!(
                "perch ended with {:?}:\n{}",
                output.status,
                output.error_text()
            ));
        }
        self.lab.is_on_its_own();
        self.lab.is_well();
        output.text()
    }

    /// Waits for an end that the test did not ask for, and returns the exit status and the words of
    /// perch.
    pub fn ended(self) -> (Status, String) {
        let output = self.lab.end("perch", self.process.into_inner());
        (output.status, output.error_text())
    }

    /// Kills perch, which gets no chance to clean up.
    pub fn kill(self) {
        let process = self.process.into_inner();
        process.signal(Signal::KILL).unwrap();
        let output = self.lab.end("perch, killed,", process);
        assert_eq!(output.status, Status::Signal(9));
    }
}
