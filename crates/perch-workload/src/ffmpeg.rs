// SPDX-License-Identifier: GPL-2.0-or-later
//! Transcoders side by side, each on cores of its own: FFmpeg 7 with an H.264 decoder, a filter and
//! x264.
//!
//! Since version 7 a frame goes through five threads of FFmpeg's own: the demuxer reads a packet,
//! the decoder gives the packet to the next of its codec's threads, the filter works on a frame
//! together with threads of its own, the encoder gives the frame to the lookahead and to the next
//! of x264's threads, and the muxer writes. Between each two of the five is a queue of a few
//! frames. The decoder and the encoder wait for the codec thread whose turn it is, and so for the
//! frame that this thread got last. The codecs' threads work on a frame row by row. A thread may do
//! a row when the thread with the frame before is far enough ahead; a thread that finishes a row
//! wakes the thread that waits for the row.
//!
//! All of these threads are FIFO with the highest priority. The main thread, which looks at the
//! progress now and then, is fair, and so are the kernel threads beside it, one on each CPU.

use std::sync::Arc;

use perch_engine::Dist;
use perch_machine::Machine;
use perch_policy::CpuMask;

use crate::keys::Keys;
use crate::workload::{MAX_TASKS, Workload};
use crate::{Basis, Class, Demand, Measure, Op, Space, SpecError, TaskSpec};

/// The most threads of one kind that an instance may have.
const MAX_THREADS: u32 = 32;
/// The most rows that a frame may have; 4320 lines are 270 rows of macroblocks.
const MAX_ROWS: u64 = 1000;
/// Frames by which the lookahead may be behind before the encoder waits for it. x264 looks 40
/// frames ahead by default; a short simulation would spend much of its time filling so many.
const LOOKAHEAD: u32 = 8;
/// Percent by which a piece of work takes longer or shorter than the mean, a guess: the work of a
/// row depends on the picture.
const SPREAD: u64 = 50;
/// Cache lines that one thread wrote and the next thread needs at once: the progress that it waited
/// for, and the data that it reads first. It fetches the rest while it works.
const LINES: u32 = 4;
/// Frames that a queue between two of FFmpeg's threads holds: `DEFAULT_FRAME_THREAD_QUEUE_SIZE`.
const QUEUE: u32 = 8;
/// Work of a kernel thread each time it wakes up, and of FFmpeg's main thread, nanoseconds.
const LOOK_NS: u64 = 10_000;
/// Time between two wake-ups of the main thread, which prints the progress (`-stats_period`),
/// nanoseconds.
const STATS_NS: u64 = 500_000_000;

/// The parts of one instance, and their work.
struct Shape {
    decoders: u32,
    filters: u32,
    encoders: u32,
    rows: u64,
    /// Rows by which a thread stays behind the thread with the frame before, because motion reaches
    /// so far.
    lag: u64,
    footprint: u32,
    fifo: Class,
    /// Work of one frame in user mode, nanoseconds, by stage: demuxer and muxer together, decoder,
    /// filter, lookahead, encoder.
    work: [u64; 5],
    /// Work of one frame in the kernel, scheduling not included, nanoseconds.
    kernel: u64,
}

/// The channels of an instance.
#[derive(Clone, Copy)]
struct Channels {
    decoder: Pool,
    filter: Pool,
    lookahead: Pool,
    encoder: Pool,
    /// The queues between FFmpeg's threads, in the order of a frame's way.
    queues: Pool,
    /// Number of the channel after the last one.
    end: u32,
}

/// The channels of threads of one kind, three for each thread. A queue uses `job` and `ready`.
#[derive(Clone, Copy)]
struct Pool {
    first: u32,
    threads: u32,
}

impl Pool {
    /// The channel that gives a thread its next frame.
    fn job(self, thread: u32) -> u32 {
        self.first + 3 * thread
    }

    /// The channel on which a thread says that it is ready for the next frame.
    fn ready(self, thread: u32) -> u32 {
        self.job(thread) + 1
    }

    /// The channel with the rows that the thread with the frame before has finished.
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
        let (lookahead, encoder, queues) = (pool(1), pool(shape.encoders), pool(4));
        Channels { decoder, filter, lookahead, encoder, queues, end }
    }
}

fn send(channel: u32) -> Op {
    Op::Send { channel, lines: LINES, sync: false }
}

fn receive(channel: u32) -> Op {
    Op::Receive { channel }
}

fn run(ns: u64) -> Op {
    Op::Run(Dist::around(ns, SPREAD))
}

impl Shape {
    /// The kernel's share of a frame's work that belongs to `part` of the user's work: the system
    /// calls of the thread that does this part.
    fn call(&self, part: u64) -> Option<Op> {
        let all: u64 = self.work.iter().sum();
        let ns = (u128::from(self.kernel) * u128::from(part) / u128::from(all.max(1))) as u64;
        (ns > 0).then(|| Op::Kernel(Dist::around(ns, SPREAD)))
    }

    /// Programs of FFmpeg's own threads: demuxer, decoder, filter, encoder, muxer.
    fn stages(&self, channels: &Channels) -> [Vec<Op>; 5] {
        let part = self.work[0] / 2;
        let slice = self.work[2] / u64::from(self.filters + 1);
        let give = |pool: Pool, thread: u32| [receive(pool.ready(thread)), send(pool.job(thread))];
        let own = |ns: u64| self.call(ns).into_iter().chain([run(ns)]);
        let turns = |pool: Pool| (0..pool.threads).map(move |thread| give(pool, thread));
        let slices = || 0..self.filters;
        let filter = slices().map(|thread| send(channels.filter.job(thread)));
        // The thread that was woken last is likely to be done last; so it alone wakes the filter.
        let filtered = slices().rev();
        let filtered = filtered.map(|thread| receive(channels.filter.ready(thread)));
        let look = give(channels.lookahead, 0);
        let rounds: [Vec<Vec<Op>>; 5] = [
            vec![own(part).collect()],
            turns(channels.decoder).map(|ops| ops.to_vec()).collect(),
            vec![filter.chain(own(slice)).chain(filtered).collect()],
            (turns(channels.encoder)).map(|ops| [look, ops].concat()).collect(),
            vec![own(part).chain([Op::Count]).collect()],
        ];
        let mut at = 0u32;
        rounds.map(|rounds| {
            let from = at.checked_sub(1);
            let to = (at < 4).then_some(at);
            at += 1;
            stage(channels.queues, from, to, rounds)
        })
    }

    /// Program of a thread that does a frame row by row, behind the thread that does the frame
    /// before.
    fn codec(&self, pool: Pool, thread: u32, work: u64) -> Vec<Op> {
        let next = (thread + 1) % pool.threads;
        let alone = pool.threads == 1;
        let behind = (self.lag + 1).min(self.rows);
        let mut program = vec![send(pool.ready(thread))];
        // The first frame waits for no frame before it: all rows of that count as finished.
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
        // The thread has just waited for the rows that the first row needs; the last rows need no
        // more than all rows of the frame before.
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

    /// Program of a thread that does the work it is given and then says that it is ready; at first
    /// it says so `before` times.
    fn worker(&self, pool: Pool, thread: u32, work: u64, before: u32) -> Vec<Op> {
        let mut program = vec![send(pool.ready(thread)); before as usize];
        program.push(receive(pool.job(thread)));
        program.extend(self.call(work));
        program.extend([run(work), send(pool.ready(thread)), Op::Jump(before)]);
        program
    }

    /// Tasks of an instance, the main thread last.
    fn instance(&self, channels: &Channels, allowed: &Arc<CpuMask>, space: u32) -> Vec<TaskSpec> {
        let [_, decode, filter, look, encode] = self.work;
        let mut programs = Vec::new();
        for thread in 0..self.decoders {
            programs.push(self.codec(channels.decoder, thread, decode));
        }
        for thread in 0..self.filters {
            let slice = filter / u64::from(self.filters + 1);
            programs.push(self.worker(channels.filter, thread, slice, 0));
        }
        programs.push(self.worker(channels.lookahead, 0, look, LOOKAHEAD));
        for thread in 0..self.encoders {
            programs.push(self.codec(channels.encoder, thread, encode));
        }
        programs.extend(self.stages(channels));
        let threads = programs.into_iter().map(|program| (program, self.fifo));
        let main = (now_and_then(STATS_NS, Op::Run), Class::Fair);
        (threads.chain([main]))
            .map(|(program, class)| TaskSpec {
                class,
                space: Some(space),
                ..TaskSpec::new(program, allowed, self.footprint, Some(Dist::Uniform(0, 2_000_000)))
            })
            .collect()
    }
}

fn repeat(to: u32, times: u64) -> Op {
    Op::Repeat { to, times }
}

/// Program of a thread between two queues, which does the next of `rounds` with each frame.
fn stage(queues: Pool, from: Option<u32>, to: Option<u32>, rounds: Vec<Vec<Op>>) -> Vec<Op> {
    let room = from.map(|from| send(queues.ready(from)));
    let mut program = vec![];
    for _ in 0..QUEUE {
        program.extend(room);
    }
    let begin = program.len() as u32;
    for round in rounds {
        program.extend(from.map(|from| receive(queues.job(from))));
        program.extend(round);
        program.extend(room);
        if let Some(to) = to {
            program.extend([receive(queues.ready(to)), send(queues.job(to))]);
        }
    }
    program.push(Op::Jump(begin));
    program
}

/// Program of a thread that wakes up every `every_ns` nanoseconds for a moment.
fn now_and_then(every_ns: u64, work: fn(Dist) -> Op) -> Vec<Op> {
    vec![
        Op::Sleep(Dist::around(every_ns, SPREAD)),
        work(Dist::around(LOOK_NS, SPREAD)),
        Op::Jump(0),
    ]
}

/// The CPUs of each instance: `each` CPUs that are whole cores, one instance after the other.
fn cpus_of_instances(
    machine: &Machine,
    instances: u64,
    each: u64,
) -> Result<Vec<Arc<CpuMask>>, SpecError> {
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
            if cpus.len() as u64 == each {
                Ok(Arc::new(CpuMask::of(n, cpus)))
            } else {
                Err(SpecError::SharedCore { each, instance })
            }
        })
        .collect()
}

/// Builds instances of FFmpeg.
pub(crate) fn transcoders(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let machine = keys.machine;
    let n = machine.cpus.len() as u64;
    let each = keys.number("cpus_per_instance", 8.min(n), 1, n)?;
    let instances = keys.number("instances", n / each, 1, n)?;
    if instances * each > n {
        return Err(SpecError::FfmpegCpus { instances, each, cpus: n });
    }
    let sets = cpus_of_instances(machine, instances, each)?;
    // The numbers of threads that FFmpeg and x264 choose by themselves for so many CPUs.
    let several = each.min(16) as u32;
    let auto = if several > 1 { (several + 1).min(16) } else { 1 };
    let threads = |keys: &mut Keys<'_>, key, default: u32, least| {
        keys.number(key, default.min(MAX_THREADS), least, MAX_THREADS)
    };
    let decoders = threads(keys, "decoders", auto, 1)?;
    let filters = threads(keys, "filters", auto - 1, 0)?;
    let encoders = threads(keys, "encoders", (several * 3 / 2).max(1), 1)?;
    let mut micros = |key, default: u64, least| {
        let us = keys.number(key, default, least, 10_000_000)?;
        Ok::<u64, SpecError>(us * 1000)
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
        lag: keys.number("lag", 1, 1, MAX_ROWS)?,
        footprint: keys.number("footprint", 200, 0, 1_000_000)? as u32,
        fifo: Class::Fifo(keys.number("priority", 99, 1, 99)?),
        work,
        kernel,
    };
    let threads = u64::from(decoders + filters + encoders + 7);
    if instances * threads + n > MAX_TASKS {
        return Err(SpecError::FfmpegThreads { instances, threads });
    }
    let counts = Demand {
        tasks: instances * threads + n,
        // A thread has about 20, and channels for its job, its rows and its being ready.
        operations: 20 * (instances * threads + n),
        channels: 3 * instances * threads,
        ..Demand::default()
    };
    let asked: [(&str, &dyn std::fmt::Display); 2] =
        [("instances", &instances), ("cpus_per_instance", &each)];
    keys.afford(&asked, counts)?;
    let (mut tasks, mut channels) = (Vec::new(), 0);
    for (space, allowed) in (0u32..).zip(&sets) {
        let own = Channels::new(&shape, channels);
        channels = own.end;
        tasks.extend(shape.instance(&own, allowed, space));
    }
    if kworker_ms > 0 {
        let used = sets.iter().flat_map(|set| set.iter());
        tasks.extend(used.map(|cpu| kworker(n as usize, cpu, kworker_ms * 1_000_000)));
    }
    Ok(Workload {
        channels: channels as usize,
        ..Workload::of(
            tasks,
            vec![Space::default(); sets.len()],
            Measure { name: "fps", unit: "frames/s", basis: Basis::Frames },
        )
    })
}

/// A kernel thread that is bound to a CPU and wakes up now and then.
fn kworker(cpus: usize, cpu: usize, every_ns: u64) -> TaskSpec {
    let allowed = Arc::new(CpuMask::of(cpus, [cpu]));
    let program = now_and_then(every_ns, Op::Kernel);
    TaskSpec::new(program, &allowed, 16, Some(Dist::Uniform(0, every_ns)))
}
