// SPDX-License-Identifier: GPL-2.0-or-later
//! A simulated run as a Perfetto trace, which the writer makes while the run goes on.
//!
//! The trace tells the tasks that CPUs run by the kernel's own events (`sched_switch`,
//! `sched_waking`), so that Perfetto shows and queries them like a recording of a real machine, in
//! the tables `sched` and `thread_state`. Beside these the trace has tracks of its own: each
//! wake-up with the policy's reason, on the waker's CPU, and an arrow from there to where and when
//! the wakee first runs; how many CPUs are idle; and how many tasks are runnable in each last-level
//! cache.
//!
//! Memory does not grow with the run: a CPU's events are written by the hundred, and the writer
//! remembers one number per task. docs/traces.md says what a wake-up takes.

mod proto;
mod sched;
mod stream;

use std::io::{self, Write};

use perch_sim::{Left, Switched, Watch, Woken};

use proto::Message;
use sched::{Cpu, Thread, Waking};
use stream::{Flow, Instant, Stream, field};

/// The numbers of the tracks; small numbers take one byte.
const IDLE: u64 = 1;

/// A writer of a trace.
#[derive(Debug)]
pub struct PerfettoTrace<W: Write> {
    stream: Stream<W>,
    /// The names of the tasks, by number.
    names: Vec<String>,
    cpus: Vec<Cpu>,
    runs: Vec<Option<u32>>,
    llcs: usize,
    idle: u64,
    /// The number of the wake-up of each task that was woken and has not run since.
    pending: Vec<Option<u64>>,
    woken: u64,
}

impl<W: Write> PerfettoTrace<W> {
    /// Begins a trace of so many CPUs, with these names of tasks.
    ///
    /// # Errors
    /// Returns an error when writing fails.
    pub fn new(out: W, names: Vec<String>, cpus: usize, llcs: usize) -> io::Result<Self> {
        let mut tree = Message::default();
        for (task, name) in names.iter().enumerate() {
            let pid = pid(task as u32);
            tree.within(1, |process| {
                process.uint(1, pid).text(3, name);
            });
            tree.within(2, |thread| {
                thread.uint(1, pid).text(2, name).uint(3, pid);
            });
        }
        let mut trace = PerfettoTrace {
            stream: Stream::new(out, &tree)?,
            cpus: vec![Cpu::new(); cpus],
            runs: vec![None; cpus],
            llcs,
            idle: cpus as u64,
            pending: vec![None; names.len()],
            names,
            woken: 0,
        };
        let stream = &mut trace.stream;
        stream.describe(IDLE, "idle CPUs", true)?;
        for llc in 0..llcs {
            stream.describe(of_llc(llc), &format!("runnable in LLC {llc}"), true)?;
        }
        for cpu in 0..cpus {
            let name = format!("wake-ups, CPU {cpu}");
            stream.describe(of_cpu(llcs, cpu), &name, false)?;
        }
        stream.count(0, IDLE, trace.idle)?;
        Ok(trace)
    }

    fn write_waiting(&mut self, cpu: usize) -> io::Result<()> {
        let waiting = &mut self.cpus[cpu];
        if waiting.is_empty() {
            return Ok(());
        }
        self.stream.packet(|packet| {
            packet.within(field::FTRACE_EVENTS, |bundle| waiting.drain(cpu, bundle));
        })
    }
}

/// Returns the pid of a task. The first task's is not 0, which is the idle task's.
fn pid(task: u32) -> u64 {
    u64::from(task) + 1
}

fn thread(names: &[String], task: Option<u32>) -> Thread<'_> {
    Thread { pid: task.map_or(0, pid), name: task.map_or("swapper", |task| &names[task as usize]) }
}

fn of_llc(llc: usize) -> u64 {
    IDLE + 1 + llc as u64
}

fn of_cpu(llcs: usize, cpu: usize) -> u64 {
    of_llc(llcs) + cpu as u64
}

impl<W: Write> Watch for PerfettoTrace<W> {
    fn woken(&mut self, woken: &Woken) -> io::Result<()> {
        self.woken += 1;
        let number = self.woken;
        self.pending[woken.task as usize] = Some(number);
        let from = woken.this_cpu;
        self.cpus[from].waking(&Waking {
            at_ns: woken.at_ns,
            waker: woken.waker.map_or(0, pid),
            wakee: thread(&self.names, Some(woken.task)),
            target: woken.cpu,
            is_new: woken.is_new,
        });
        if self.cpus[from].is_full() {
            self.write_waiting(from)?;
        }
        let cpu = |cpu: usize| cpu as u64;
        self.stream.instant(&Instant {
            at_ns: woken.at_ns,
            track: of_cpu(self.llcs, from),
            name: woken.reason,
            arguments: &[
                ("task", pid(woken.task)),
                ("previous CPU", cpu(woken.prev_cpu)),
                ("chosen CPU", cpu(woken.cpu)),
                ("examined CPUs", woken.examined.into()),
            ],
            flows: &[Flow::From(number)],
        })
    }

    fn switched(&mut self, switched: &Switched) -> io::Result<()> {
        let &Switched { at_ns, cpu, from, to } = switched;
        // These are the kernel's codes of states: R, S and X.
        let state = match from {
            None | Some((_, Left::Runnable)) => 0,
            Some((_, Left::Asleep)) => 1,
            Some((_, Left::Dead)) => 16,
        };
        if self.cpus[cpu].is_ahead(at_ns) || self.cpus[cpu].is_full() {
            self.write_waiting(cpu)?;
        }
        self.cpus[cpu].switch(at_ns, state, thread(&self.names, to));
        self.runs[cpu] = to;
        let idle = self.idle + u64::from(to.is_none()) - u64::from(from.is_none());
        if idle != self.idle {
            self.idle = idle;
            self.stream.count(at_ns, IDLE, idle)?;
        }
        let Some(task) = to else {
            return Ok(());
        };
        match self.pending[task as usize].take() {
            Some(number) => self.stream.instant(&Instant {
                at_ns,
                track: of_cpu(self.llcs, cpu),
                name: "runs",
                arguments: &[("task", pid(task))],
                flows: &[Flow::To(number)],
            }),
            None => Ok(()),
        }
    }

    fn loaded(&mut self, at_ns: u64, llc: usize, runnable: u32) -> io::Result<()> {
        self.stream.count(at_ns, of_llc(llc), runnable.into())
    }

    /// Ends the slices of tasks that still run, so that every slice has its length.
    fn ended(&mut self, at_ns: u64) -> io::Result<()> {
        for cpu in 0..self.cpus.len() {
            if let Some(task) = self.runs[cpu] {
                self.switched(&Switched {
                    at_ns,
                    cpu,
                    from: Some((task, Left::Runnable)),
                    to: None,
                })?;
            }
            self.write_waiting(cpu)?;
        }
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests;
