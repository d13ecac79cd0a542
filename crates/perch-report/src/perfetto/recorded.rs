// SPDX-License-Identifier: GPL-2.0-or-later
//! What was recorded of real wake-ups as a Perfetto trace.
//!
//! A recording has wake-ups and no switches: who was woken by whom, where to, and what the kernel saw.
//! So there are no slices, and none are made up: each wake-up is an instant on its waker's CPU, with an
//! arrow to where the wakee was put, and from there to the next wake-up that the wakee itself causes,
//! which shows where it came to run.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::proto::Message;
use super::stream::{Argument, Flow, Instant, Stream};

/// What is known of how a CPU was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// A model was asked.
    Asked {
        /// What it chose.
        cpu: usize,
        /// Why.
        reason: &'a str,
        /// Where it aimed at.
        target: usize,
        /// Why the kernel chose otherwise, if it did.
        cause: Option<&'a str>,
        /// What another policy would have chosen, and why.
        other: Option<(usize, &'a str)>,
    },
    /// None was, and why.
    NotAsked(&'a str),
}

/// A wake-up as it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// Nanoseconds of the recorder's clock.
    pub at_ns: u64,
    /// The waker's thread; nothing where the CPU idled.
    pub waker: Option<u32>,
    /// Its CPU.
    pub this_cpu: usize,
    /// The woken thread.
    pub wakee: u32,
    /// Where it ran last.
    pub prev_cpu: usize,
    /// Where the kernel put it.
    pub chosen: usize,
    /// How that came.
    pub choice: Choice<'a>,
    /// Last-level caches all of whose CPUs were looked at, and how many of these idled.
    pub idle: &'a [(usize, u32)],
    /// Likewise how many tasks were runnable there, running ones included.
    pub runnable: &'a [(usize, u32)],
}

/// Writes what was recorded. It remembers a number for each thread, and nothing of time.
#[derive(Debug)]
pub struct RecordedTrace<W: Write> {
    stream: Stream<W>,
    llcs: usize,
    /// The last values of the counters; nothing where none was told.
    idle: Vec<Option<u32>>,
    runnable: Vec<Option<u32>>,
    /// Of each thread that was woken and has woken nobody since: the wake-up's number.
    pending: BTreeMap<u32, u64>,
    wake_ups: u64,
}

impl<W: Write> RecordedTrace<W> {
    /// A trace of so many CPUs and last-level caches.
    ///
    /// # Errors
    /// When writing fails.
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
    /// When writing fails.
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
            Choice::Asked {
                cpu: model,
                reason,
                target,
                cause,
                other,
            } => {
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

    /// Ends it.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
