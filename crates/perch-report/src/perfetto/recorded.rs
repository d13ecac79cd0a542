// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording of real wake-ups as a Perfetto trace.
//!
//! A recording has wake-ups and no switches: it tells the waker, the wakee, the chosen CPU and the
//! state that the kernel saw. So the trace has no slices, and none are made up: each wake-up is an
//! instant on its waker's CPU, with an arrow to where the wakee was put, and from there to the next
//! wake-up that the wakee itself causes, which shows where it came to run.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::proto::Message;
use super::stream::{Argument, Flow, Instant, Stream};

/// The known facts about the choice of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// A model was asked for its choice.
    Asked {
        /// The CPU that the model chose.
        cpu: usize,
        /// The model's reason.
        reason: &'a str,
        /// The CPU that the model aimed at.
        target: usize,
        /// The cause for which the kernel chose otherwise, if it did.
        cause: Option<&'a str>,
        /// The CPU that another policy would have chosen, and its reason.
        other: Option<(usize, &'a str)>,
    },
    /// No model was asked, for this reason.
    NotAsked(&'a str),
}

/// A wake-up as it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The time, nanoseconds of the recorder's clock.
    pub at_ns: u64,
    /// The waker's thread; none where the CPU idled.
    pub waker: Option<u32>,
    /// The waker's CPU.
    pub this_cpu: usize,
    /// The woken thread.
    pub wakee: u32,
    /// The CPU on which the wakee ran last.
    pub prev_cpu: usize,
    /// The CPU that the kernel chose.
    pub chosen: usize,
    /// The facts about the choice.
    pub choice: Choice<'a>,
    /// Last-level caches all of whose CPUs were seen, and the number of idle CPUs of each.
    pub idle: &'a [(usize, u32)],
    /// The same caches, and the number of tasks that were runnable there, running ones included.
    pub runnable: &'a [(usize, u32)],
}

/// Writes a recording as a trace. The writer remembers a number for each thread, and nothing that
/// grows with time.
#[derive(Debug)]
pub struct RecordedTrace<W: Write> {
    stream: Stream<W>,
    llcs: usize,
    /// The last values of the counters; none where a counter has no value yet.
    idle: Vec<Option<u32>>,
    runnable: Vec<Option<u32>>,
    /// The number of the wake-up of each thread that was woken and has woken nobody since.
    pending: BTreeMap<u32, u64>,
    wake_ups: u64,
}

impl<W: Write> RecordedTrace<W> {
    /// Begins a trace of so many CPUs and last-level caches.
    ///
    /// # Errors
    /// Returns an error when writing fails.
    pub fn new(out: W, cpus: usize, llcs: usize) -> io::Result<Self> {
        let mut trace = RecordedTrace {
            stream: Stream::new(out, &Message::default())?,
            llcs,
            idle: vec![None; llcs],
            runnable: vec![None; llcs],
            pending: BTreeMap::new(),
            wake_ups: 0,
        };
        for llc in 0..llcs {
            let (idle, runnable) = (trace.idle_track(llc), trace.runnable_track(llc));
            let stream = &mut trace.stream;
            stream.describe(idle, &format!("idle CPUs in LLC {llc}"), true)?;
            stream.describe(runnable, &format!("runnable in LLC {llc}"), true)?;
        }
        for cpu in 0..cpus {
            let name = format!("wake-ups, CPU {cpu}");
            let track = trace.cpu_track(cpu);
            trace.stream.describe(track, &name, false)?;
        }
        Ok(trace)
    }

    fn idle_track(&self, llc: usize) -> u64 {
        1 + llc as u64
    }

    fn runnable_track(&self, llc: usize) -> u64 {
        1 + (self.llcs + llc) as u64
    }

    fn cpu_track(&self, cpu: usize) -> u64 {
        1 + (2 * self.llcs + cpu) as u64
    }

    /// Adds a wake-up.
    ///
    /// # Errors
    /// Returns an error when writing fails.
    pub fn wake_up(&mut self, of: &Recorded) -> io::Result<()> {
        self.wake_ups += 1;
        for &(llc, value) in of.idle {
            if self.idle[llc].replace(value) != Some(value) {
                let track = self.idle_track(llc);
                self.stream.count(of.at_ns, track, value.into())?;
            }
        }
        for &(llc, value) in of.runnable {
            if self.runnable[llc].replace(value) != Some(value) {
                let track = self.runnable_track(llc);
                self.stream.count(of.at_ns, track, value.into())?;
            }
        }
        let cpu = |cpu: usize| Argument::Number(cpu as u64);
        let mut arguments = vec![
            ("wakee", Argument::Number(of.wakee.into())),
            ("previous CPU", cpu(of.prev_cpu)),
            ("chosen CPU", cpu(of.chosen)),
        ];
        if let Some(waker) = of.waker {
            arguments.push(("waker", Argument::Number(waker.into())));
        }
        let name = match of.choice {
            Choice::NotAsked(why) => why,
            Choice::Asked { cpu: model, reason, target, cause, other } => {
                arguments.push(("aim", cpu(target)));
                if cause.is_some() {
                    arguments.push(("model's CPU", cpu(model)));
                    arguments.push(("model's reason", Argument::Text(reason)));
                }
                if let Some((policys, reason)) = other.filter(|(cpu, _)| *cpu != model) {
                    arguments.push(("policy's CPU", cpu(policys)));
                    arguments.push(("policy's reason", Argument::Text(reason)));
                }
                cause.unwrap_or(reason)
            }
        };
        let number = self.wake_ups;
        let came = of.waker.and_then(|waker| self.pending.remove(&waker));
        let flows = [Some(Flow::From(number)), came.map(Flow::To)];
        let flows: Vec<Flow> = flows.into_iter().flatten().collect();
        self.stream.instant(&Instant {
            at_ns: of.at_ns,
            track: self.cpu_track(of.this_cpu),
            name,
            arguments: &arguments,
            flows: &flows,
        })?;
        self.pending.insert(of.wakee, number);
        self.stream.instant(&Instant {
            at_ns: of.at_ns,
            track: self.cpu_track(of.chosen),
            name: "put here",
            arguments: &arguments[..1],
            flows: &[Flow::From(number)],
        })
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// Returns an error when writing fails.
    pub fn finish(mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
