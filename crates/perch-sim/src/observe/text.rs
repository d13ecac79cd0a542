// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of the scheduler's events that writes a line for each decision.

use std::io::{self, Write};

use perch_policy::CacheStep;
use perch_sched::observe::{Observed, Observer};

/// A trace in lines of text.
pub struct Text<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Text<'a> {
    /// A trace that goes to `out`.
    pub fn new(out: &'a mut dyn Write) -> Text<'a> {
        Text { out }
    }
}

impl Observer for Text<'_> {
    fn see(&mut self, now_ns: u64, what: &Observed<'_>) -> io::Result<()> {
        match *what {
            Observed::Decided(d) => {
                // A mechanism that is off leaves the trace of the stock kernel.
                let step = match d.verdict.cache {
                    CacheStep::None => String::new(),
                    step => format!(" cache={}", step.name()),
                };
                writeln!(
                    self.out,
                    "{now_ns} task={} waker={} prev={} cpu={} reason={} examined={}{step}",
                    d.task,
                    d.this_cpu,
                    d.prev_cpu,
                    d.verdict.cpu,
                    d.verdict.reason.name(),
                    d.verdict.examined
                )
            }
            Observed::Placed(p) => writeln!(
                self.out,
                "{now_ns} task={} waker={} prev={} cpu={} outside",
                p.task, p.this_cpu, p.prev_cpu, p.cpu
            ),
            Observed::RtMoved(m) => writeln!(
                self.out,
                "{now_ns} task={} waker={} prev={} cpu={} rt={}",
                m.task,
                m.this_cpu,
                m.from,
                m.to,
                m.step.name()
            ),
            _ => Ok(()),
        }
    }
}
