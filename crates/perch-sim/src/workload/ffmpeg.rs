// SPDX-License-Identifier: GPL-2.0-only
//! Transcoders side by side, each on cores of its own: FFmpeg with an H.264 decoder, a filter and
//! x264, as it was before version 7, where the main thread drives everything.
//!
//! For each frame the main thread reads a packet and gives it to the decoder's next thread, filters
//! an older frame together with the filter's threads, gives that to the lookahead and to the
//! encoder's next thread, and writes the packet of one that is done. It waits for the thread whose
//! turn it is, and so for the frame that went there last. Decoding and encoding threads work on a
//! frame row by row, and may do a row when the thread with the frame before is far enough ahead:
//! each finished row wakes who waits for it. These wake-ups, and not those of whole frames, are
//! most of what the scheduler sees.
//!
//! The threads that codecs and filters start are FIFO with the highest priority; the main thread
//! is fair, as are the kernel threads beside it, one on each CPU.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::CpuMask;

use super::spec::{Keys, MAX_TASKS, Workload};
use super::{Basis, Class, Measure, Op, Space, TaskSpec, UNCLAMPED};
use crate::engine::Dist;

/// Most threads of one kind in an instance: programs are written out over the least common multiple
/// of two of these.
const MAX_THREADS: u32 = 32;
/// Rows that a frame may have: 4320 lines are 270 rows of macroblocks.
const MAX_ROWS: u64 = 1000;
/// Frames that the lookahead may be behind with, before the main thread waits for it. x264 looks
/// 40 ahead by default, which a short simulation would take its time to fill.
const LOOKAHEAD: u32 = 8;
/// Rows by which a decoding thread stays behind the frame that it refers to: a guess, motion
/// reaches that far down.
const DECODER_LAG: u64 = 2;
/// Percent by which a piece of work takes longer or shorter than the mean: a guess. Rows differ
/// with what they show.
const SPREAD: u64 = 50;
/// Cache lines that one thread wrote and the next needs at once: the progress it waited for, and
/// what it reads first. The rest is fetched while it works.
const LINES: u32 = 4;
/// What a kernel thread does when it wakes up, nanoseconds.
const KWORKER_NS: u64 = 10_000;

/// What one instance consists of.
struct Shape {
    decoders: u32,
    filters: u32,
    encoders: u32,
    rows: u64,
    footprint: u32,
    fifo: Class,
    /// Work of one frame in user mode, nanoseconds: main thread, decoder, filter, lookahead,
    /// encoder.
    work: [u64; 5],
    /// Work of one frame in the kernel beside that of scheduling, nanoseconds.
    kernel: u64,
}

/// Where an instance's channels begin.
#[derive(Clone, Copy)]
struct Channels {
    decoder: Pool,
    filter: Pool,
    lookahead: Pool,
    encoder: Pool,
    end: u32,
}

/// The channels of threads of one kind: three for each.
#[derive(Clone, Copy)]
struct Pool {
    first: u32,
    threads: u32,
}

impl Pool {
    /// What a thread is to do next.
    fn job(self, thread: u32) -> u32 {
        self.first + 3 * thread
    }

    /// That it is ready for that.
    fn ready(self, thread: u32) -> u32 {
        self.job(thread) + 1
    }

    /// Rows that the thread before has finished.
    fn rows(self, thread: u32) -> u32 {
        self.job(thread) + 2
    }
}

impl Channels {
    fn new(shape: &Shape, first: u32) -> Channels {
        let mut end = first;
        let mut pool = |threads: u32| {
            let first = end;
            end += 3 * threads;
            Pool { first, threads }
        };
        let (decoder, filter) = (pool(shape.decoders), pool(shape.filters));
        let (lookahead, encoder) = (pool(1), pool(shape.encoders));
        Channels {
            decoder,
            filter,
            lookahead,
            encoder,
            end,
        }
    }
}

fn send(channel: u32) -> Op {
    Op::Send {
        channel,
        lines: LINES,
        sync: false,
    }
}

fn receive(channel: u32) -> Op {
    Op::Receive { channel }
}

fn run(ns: u64) -> Op {
    Op::Run(Dist::around(ns, SPREAD))
}

impl Shape {
    /// The part of a frame's kernel work that goes with `part` of its work, with the system calls
    /// of whoever does it.
    fn call(&self, part: u64) -> Option<Op> {
        let all: u64 = self.work.iter().sum();
        let ns = (u128::from(self.kernel) * u128::from(part) / u128::from(all.max(1))) as u64;
        (ns > 0).then(|| Op::Kernel(Dist::around(ns, SPREAD)))
    }

    /// The thread that reads, drives and writes, written out until all turns come together again.
    fn main(&self, channels: &Channels) -> Vec<Op> {
        let part = self.work[0] / 2;
        let slice = self.work[2] / u64::from(self.filters + 1);
        let mut program = Vec::new();
        let give = |program: &mut Vec<Op>, pool: Pool, thread: u32| {
            program.extend([receive(pool.ready(thread)), send(pool.job(thread))]);
        };
        for frame in 0..lcm(self.decoders, self.encoders) {
            program.extend(self.call(part));
            program.push(run(part));
            give(&mut program, channels.decoder, frame % self.decoders);
            let slices = 0..self.filters;
            program.extend(
                slices
                    .clone()
                    .map(|thread| send(channels.filter.job(thread))),
            );
            program.extend(self.call(slice));
            program.push(run(slice));
            // Who was woken last is likely to be done last: it alone wakes the main thread.
            program.extend(
                slices
                    .rev()
                    .map(|thread| receive(channels.filter.ready(thread))),
            );
            give(&mut program, channels.lookahead, 0);
            give(&mut program, channels.encoder, frame % self.encoders);
            program.extend(self.call(part));
            program.extend([run(part), Op::Count]);
        }
        program.push(Op::Jump(0));
        program
    }

    /// A thread that does a frame row by row, `lag` rows behind the one that does the frame before.
    fn codec(&self, pool: Pool, thread: u32, work: u64, lag: u64) -> Vec<Op> {
        let next = (thread + 1) % pool.threads;
        let alone = pool.threads == 1;
        let behind = (lag + 1).min(self.rows);
        let mut program = vec![send(pool.ready(thread))];
        // Before the first frame there is nothing to wait for.
        if next == 0 && !alone {
            program.push(send(pool.rows(next)));
            program.push(repeat(1, self.rows));
        }
        let begin = program.len() as u32;
        program.push(receive(pool.job(thread)));
        program.extend(self.call(work));
        let row = run(work / self.rows);
        let wait = (!alone).then(|| receive(pool.rows(thread)));
        let tell = (!alone).then(|| send(pool.rows(next)));
        if let Some(wait) = wait {
            let to = program.len() as u32;
            program.extend([wait, repeat(to, behind)]);
        }
        // The first row needs those just waited for, the last ones no more than all of them.
        for (waits, times) in [(None, 1), (wait, self.rows - behind), (None, behind - 1)] {
            if times > 0 {
                let to = program.len() as u32;
                program.extend(waits);
                program.push(row);
                program.extend(tell);
                program.push(repeat(to, times));
            }
        }
        program.extend([send(pool.ready(thread)), Op::Jump(begin)]);
        program
    }

    /// A thread that does what it is given, and says so.
    fn worker(&self, pool: Pool, thread: u32, work: u64, before: u32) -> Vec<Op> {
        let mut program = vec![send(pool.ready(thread)); before as usize];
        program.push(receive(pool.job(thread)));
        program.extend(self.call(work));
        program.extend([run(work), send(pool.ready(thread)), Op::Jump(before)]);
        program
    }

    /// The threads of an instance, the main one last: whoever is waited for is there first.
    fn instance(&self, channels: &Channels, allowed: &Arc<CpuMask>, space: u32) -> Vec<TaskSpec> {
        let [_, decode, filter, look, encode] = self.work;
        let mut programs = Vec::new();
        for thread in 0..self.decoders {
            programs.push(self.codec(channels.decoder, thread, decode, DECODER_LAG));
        }
        for thread in 0..self.filters {
            let slice = filter / u64::from(self.filters + 1);
            programs.push(self.worker(channels.filter, thread, slice, 0));
        }
        programs.push(self.worker(channels.lookahead, 0, look, LOOKAHEAD));
        // x264 limits vectors so that all of its threads find rows to work on.
        let lag = (self.rows / u64::from(self.encoders)).max(1);
        for thread in 0..self.encoders {
            programs.push(self.codec(channels.encoder, thread, encode, lag));
        }
        let threads = programs.into_iter().map(|program| (program, self.fifo));
        let main = (self.main(channels), Class::Fair);
        (threads.chain([main]))
            .map(|(program, class)| TaskSpec {
                program: program.into(),
                allowed: allowed.clone(),
                nice: 0,
                class,
                uclamp: UNCLAMPED,
                footprint: self.footprint,
                space: Some(space),
                start: Some(Dist::Uniform(0, 2_000_000)),
            })
            .collect()
    }
}

fn repeat(to: u32, times: u64) -> Op {
    Op::Repeat { to, times }
}

fn lcm(a: u32, b: u32) -> u32 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// The CPUs of each instance: so many, whole cores, one after the other.
fn places(machine: &Machine, instances: u64, each: u64) -> Result<Vec<Arc<CpuMask>>, String> {
    let n = machine.cpus.len();
    let mut cores: Vec<(u32, Vec<usize>)> = Vec::new();
    for (cpu, at) in machine.cpus.iter().enumerate() {
        match cores.iter_mut().find(|(core, _)| *core == at.core) {
            Some((_, cpus)) => cpus.push(cpu),
            None => cores.push((at.core, vec![cpu])),
        }
    }
    let mut cores = cores.into_iter().map(|(_, cpus)| cpus);
    (0..instances)
        .map(|instance| {
            let mut cpus: Vec<usize> = Vec::new();
            while (cpus.len() as u64) < each {
                cpus.extend(cores.next().unwrap_or_default());
            }
            match cpus.len() as u64 == each {
                true => Ok(Arc::new(CpuMask::of(n, cpus))),
                false => Err(format!(
                    "cpus_per_instance={each}: instance {instance} would share a core with the \
                     next one; expected a number that makes whole cores"
                )),
            }
        })
        .collect()
}

/// Instances of FFmpeg.
pub(super) fn transcoders(keys: &mut Keys<'_>) -> Result<Workload, String> {
    let machine = keys.machine;
    let n = machine.cpus.len() as u64;
    let each = keys.number("cpus_per_instance", 8.min(n), 1, n)?;
    let instances = keys.number("instances", n / each, 1, n)?;
    if instances * each > n {
        return Err(format!(
            "instances={instances} of cpus_per_instance={each} need {} CPUs, and this machine has \
             {n}: expected no more than that",
            instances * each
        ));
    }
    let places = places(machine, instances, each)?;
    // What FFmpeg and x264 start by themselves where so many CPUs are theirs.
    let several = each.min(16) as u32;
    let auto = if several > 1 {
        (several + 1).min(16)
    } else {
        1
    };
    let threads = |keys: &mut Keys<'_>, key, default: u32, least| {
        keys.number(key, default.min(MAX_THREADS), least, MAX_THREADS)
    };
    let decoders = threads(keys, "decoders", auto, 1)?;
    let filters = threads(keys, "filters", auto - 1, 0)?;
    let encoders = threads(keys, "encoders", (several * 3 / 2).max(1), 1)?;
    let mut micros = |key, default: u64, least| {
        let us = keys.number(key, default, least, 10_000_000)?;
        Ok::<u64, String>(us * 1000)
    };
    let work = [
        micros("main_us", 400, 0)?,
        micros("decode_us", 4_000, 1)?,
        micros("filter_us", 2_000, 0)?,
        micros("lookahead_us", 3_000, 0)?,
        micros("encode_us", 30_000, 1)?,
    ];
    let kernel = micros("kernel_us", 5_000, 0)?;
    let kworker_ms = keys.number("kworker_ms", 100, 0, 1_000_000)?;
    let shape = Shape {
        decoders,
        filters,
        encoders,
        rows: keys.number("rows", 68, 1, MAX_ROWS)?,
        footprint: keys.number("footprint", 200, 0, 1_000_000)? as u32,
        fifo: Class::Fifo(keys.number("priority", 99, 1, 99)?),
        work,
        kernel,
    };
    let threads = u64::from(decoders + filters + encoders + 2);
    if instances * threads + n > MAX_TASKS {
        return Err(format!(
            "instances={instances} of {threads} threads: expected fewer than {MAX_TASKS} in all"
        ));
    }
    let (mut tasks, mut channels) = (Vec::new(), 0);
    for (space, allowed) in (0u32..).zip(&places) {
        let own = Channels::new(&shape, channels);
        channels = own.end;
        tasks.extend(shape.instance(&own, allowed, space));
    }
    if kworker_ms > 0 {
        let used = places.iter().flat_map(|place| place.iter());
        tasks.extend(used.map(|cpu| kworker(n as usize, cpu, kworker_ms * 1_000_000)));
    }
    Ok(Workload {
        spec: String::new(),
        tasks,
        spaces: vec![Space::default(); places.len()],
        channels: channels as usize,
        mutexes: 0,
        counters: 0,
        measure: Measure {
            name: "fps",
            unit: "frames/s",
            basis: Basis::Frames,
        },
    })
}

/// A kernel thread that is bound to its CPU and wakes up now and then.
fn kworker(cpus: usize, cpu: usize, every_ns: u64) -> TaskSpec {
    TaskSpec {
        program: [
            Op::Sleep(Dist::around(every_ns, SPREAD)),
            Op::Kernel(Dist::around(KWORKER_NS, SPREAD)),
            Op::Jump(0),
        ]
        .into(),
        allowed: Arc::new(CpuMask::of(cpus, [cpu])),
        nice: 0,
        class: Class::Fair,
        uclamp: UNCLAMPED,
        footprint: 16,
        space: None,
        start: Some(Dist::Uniform(0, every_ns)),
    }
}
