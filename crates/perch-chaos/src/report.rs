// SPDX-License-Identifier: GPL-2.0-or-later
//! What a round has shown.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// A round that is over.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Report {
    /// What was to happen.
    pub plan: Plan,
    /// The guest's time from the beginning to the end, s.
    pub seconds: f64,
    /// The number of things that each storm did.
    pub done: BTreeMap<String, u64>,
    /// The number of times that perch was started; it loads again by itself when a CPU goes or comes.
    pub starts: u64,
    /// The longest time for which a canary could not run though it wanted to, ms.
    pub longest_ms: f64,
    /// What must not happen and did.
    pub faults: Vec<String>,
    /// The end of the kernel's log, when there are faults.
    pub log: String,
}

impl Display for Report {
    /// What happened, on one line, and a line for each fault.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let done = self.done.iter();
        let done = done.map(|(storm, times)| format!("{storm} {times}"));
        let done: Vec<String> = done.collect();
        write!(
            f,
            "{:.1} s, {}, started {} times, longest wait {:.0} ms",
            self.seconds,
            done.join(", "),
            self.starts,
            self.longest_ms
        )?;
        for fault in &self.faults {
            write!(f, "\n  {fault}")?;
        }
        Ok(())
    }
}

impl Report {
    /// The report as a line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("all keys are text")
    }
}
