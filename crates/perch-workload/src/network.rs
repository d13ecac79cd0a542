// SPDX-License-Identifier: GPL-2.0-or-later
//! Over loopback: request and reply, tbench and netperf's TCP_RR and UDP_RR, and a stream, TCP_STREAM.
//!
//! A pair is a client and a server in lockstep: the client sends, goes on until it asks for the
//! reply, and sleeps; the server wakes up, works and replies. A late reply delays the next request.
//! Loopback delivers in the sender's own context, so the sender's CPU is the waker's and the
//! wake-up is a sync one (`sock_def_readable`).
//!
//! A shell forks the clients. Each client connects, which wakes the listening daemon, and the
//! daemon forks the server of the pair. The client's first message waits for that server, whose
//! reply wakes the client. So the kernel's own fork balancing decides where a pair starts, and
//! the wake-ups decide where it stays.

use perch_engine::Dist;
use perch_machine::Footprint;

use crate::keys::Keys;
use crate::workload::{MAX_TASKS, Workload, one_process_each};
use crate::{Demand, Measure, Op, SpecError, TaskSpec};

/// Costs of one direction of an exchange. docs/calibration.md says where the values come from.
pub(crate) struct Exchange {
    /// A side's work from its wake-up until it wakes the other side: the receive path, the work of
    /// the request, the send path.
    pub before: Dist,
    /// A side's work after it has woken the other side, until it sleeps: the end of the send, the
    /// beginning of the receive.
    pub after: Dist,
    /// Cache lines that the sender wrote and the receiver needs: payload, socket, run queue.
    pub lines: u32,
    /// Cache lines that each side uses in every exchange.
    pub footprint: Footprint,
}

/// The work of a pair's start, in microseconds. It spaces the starts, and with them decides where
/// pairs begin.
///
/// The times were read off a trace of Debian's 6.1 in a guest that counts instructions, at 1.2
/// instructions per cycle and 2.6 GHz (docs/calibration.md).
struct Start {
    /// The shell's work from one fork to the next.
    gap: u64,
    /// A client's work from its fork to its exec; tbench forks its clients without one.
    exec: Option<u64>,
    /// A client's work until it connects.
    startup: u64,
    /// The daemon's work from its wake-up to its fork of the server.
    accept: u64,
    /// A client's work after it has connected, until it waits for the first reply.
    greeting: u64,
    /// A server's work from its fork to its first reply.
    server: u64,
    /// A client's work before its first request that counts.
    setup: u64,
    /// True if all clients send that request together, when the last one has been greeted; else
    /// each sends it at once.
    together: bool,
}

/// A loop in a shell starts instances of netperf.
const NETPERF: Start = Start {
    gap: 230,
    exec: Some(800),
    startup: 2300,
    accept: 340,
    greeting: 600,
    server: 1600,
    setup: 110,
    together: false,
};

/// tbench forks its clients, and lets them go when all are ready. The real one looks for that ten
/// times a second; here the last client's message wakes it.
const TBENCH: Start = Start {
    gap: 290,
    exec: None,
    startup: 900,
    accept: 340,
    greeting: 110,
    server: 320,
    setup: 190,
    together: true,
};

/// What a pair does over and over, after it has begun.
struct Loops<'a> {
    /// Cache lines of a message of the beginning.
    lines: u32,
    /// Cache lines that each side uses each time.
    footprint: Footprint,
    /// The programs of client and server, of the channels of requests and of replies.
    of: &'a dyn Fn(u32, u32) -> [Vec<Op>; 2],
}

/// Builds pairs of clients and servers in lockstep.
fn lockstep(
    keys: &mut Keys<'_>,
    exchange: Exchange,
    start: Start,
    measure: impl Fn(u64) -> Measure,
) -> Result<Workload, SpecError> {
    let Exchange { before, after, lines, footprint } = exchange;
    let send = |channel| Op::Send { channel, lines, sync: true };
    let of = |request, reply| {
        let ask = [
            Op::Run(before),
            send(request),
            Op::Run(after),
            Op::Receive { channel: reply },
            Op::Count,
        ];
        let answer =
            [Op::Receive { channel: request }, Op::Run(before), send(reply), Op::Run(after)];
        [ask.to_vec(), answer.to_vec()]
    };
    let loops = Loops { lines, footprint, of: &of };
    pairs(keys, &loops, start, measure)
}

/// Builds pairs of clients and servers, with the shell and the daemon that start them.
fn pairs(
    keys: &mut Keys<'_>,
    loops: &Loops,
    start: Start,
    measure: impl Fn(u64) -> Measure,
) -> Result<Workload, SpecError> {
    let n = keys.count("n", 1, 1, MAX_TASKS / 2)?;
    let counts = Demand::new(2 * n + 2, 30 * n, 2 * n + 3);
    keys.afford(&[("n", &n)], counts)?;
    let allowed = keys.cpus()?;
    let gap = keys.number("gap_us", start.gap, 1, 1_000_000)?;
    let startup = keys.number("startup_us", start.startup, 1, 1_000_000)?;
    let &Loops { lines, footprint, .. } = loops;
    let task = |program: Vec<Op>, start| TaskSpec::new(program, &allowed, footprint, start);
    let message = |channel, sync| Op::Send { channel, lines, sync };
    let send = |channel| message(channel, true);
    let [connect, ready, go] = [0, 1, 2].map(|i| 2 * n as u32 + i);
    let work = |us: u64| Op::Run(Dist::around(us * 1000, 20));
    let (mut shell, mut daemon) = (Vec::new(), Vec::new());
    let mut tasks = Vec::with_capacity(2 * n as usize + 2);
    for pair in 0..n as u32 {
        let (request, reply) = (2 * pair, 2 * pair + 1);
        shell.extend([work(gap), Op::Fork(2 * pair)]);
        daemon.extend([
            Op::Receive { channel: connect },
            work(start.accept),
            Op::Fork(2 * pair + 1),
        ]);
        let mut client = Vec::new();
        if let Some(exec) = start.exec {
            client.extend([work(exec), Op::Exec]);
        }
        client.extend([
            work(startup),
            send(connect),
            work(start.greeting),
            Op::Receive { channel: reply },
        ]);
        if start.together {
            client.extend([send(ready), Op::Receive { channel: go }]);
        }
        client.push(work(start.setup));
        let [ask, answer] = (loops.of)(request, reply);
        let first = client.len() as u32;
        client.extend(ask);
        client.push(Op::Jump(first));
        let mut server = vec![work(start.server), send(reply)];
        let first = server.len() as u32;
        server.extend(answer);
        server.push(Op::Jump(first));
        tasks.extend([task(client, None), task(server, None)]);
    }
    if start.together {
        shell.extend((0..n).map(|_| Op::Receive { channel: ready }));
        // A signal, which is no sync wake-up.
        shell.extend((0..n).map(|_| message(go, false)));
    }
    shell.push(Op::Exit);
    daemon.push(Op::Exit);
    tasks.push(task(daemon, Some(Dist::Uniform(0, 500_000))));
    tasks.push(task(shell, Some(Dist::Uniform(1_000_000, 2_000_000))));
    let spaces = one_process_each(&mut tasks);
    Ok(Workload { channels: 2 * n as usize + 3, ..Workload::of(tasks, spaces, measure(n)) })
}

fn transactions(n: u64) -> Measure {
    Measure::rate("transactions", "trans/s/inst", 1.0, n as f64)
}

/// Reads the keys that stand for fitted and counted values, so that anybody can repeat a fit. `own`
/// is how many lines of the footprint only the side itself uses; `before` spreads that time.
fn exchange(
    keys: &mut Keys<'_>,
    [before_ns, after_ns, lines, footprint, own]: [u64; 5],
    before: impl Fn(u64) -> Dist,
) -> Result<Exchange, SpecError> {
    let footprint = keys.number("footprint", footprint, 0, 1_000_000)?;
    let own = keys.number("own", own.min(footprint), 0, footprint)?;
    Ok(Exchange {
        before: before(keys.number("before_ns", before_ns, 1, 1_000_000_000)?),
        after: Dist::around(keys.number("after_ns", after_ns, 0, 1_000_000_000)?, 5),
        lines: keys.number("lines", lines, 0, 1_000_000)? as u32,
        footprint: Footprint { lines: footprint as u32, common: (footprint - own) as u32 },
    })
}

fn netperf(keys: &mut Keys<'_>, values: [u64; 5]) -> Result<Workload, SpecError> {
    let exchange = exchange(keys, values, |ns| Dist::around(ns, 5))?;
    lockstep(keys, exchange, NETPERF, transactions)
}

/// Builds netperf's TCP_RR.
pub(crate) fn tcp_rr(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    netperf(keys, [2425, 1300, 34, 770, 146])
}

/// Builds netperf's UDP_RR.
pub(crate) fn udp_rr(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    netperf(keys, [1732, 1300, 24, 673, 137])
}

/// Bytes of a stream that lie between the two sides: the limit to which the kernel lets a sender's
/// buffer grow (`net.ipv4.tcp_wmem`), which it does on loopback, where nothing is lost.
const STREAM_BYTES: u64 = 4 << 20;
/// Bytes that a side copies in a nanosecond at full capacity: a rough figure, as hackbench's.
const COPIED_PER_NS: u64 = 8;

/// Builds netperf's TCP_STREAM: a client sends without end, and sleeps while the buffer is full. The
/// server sleeps only when it has read all, so it is woken once for a batch. It wakes the client when
/// a third of the buffer is free (`sk_stream_write_space()`), in a wake-up that is not sync.
pub(crate) fn tcp_stream(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    // netperf sends as much at once as the socket's buffer has at first, 16 KiB.
    let size = keys.number("size", 16_384, 1, STREAM_BYTES)?;
    // Work beside the copies: what tcp_rr was fitted to, of which a side has half of a round trip.
    let write_ns = keys.number("write_ns", 2425, 1, 1_000_000_000)?;
    let read_ns = keys.number("read_ns", 1300, 1, 1_000_000_000)?;
    // The data, and what a reply of tcp_rr takes beside it.
    let lines = keys.number("lines", 34 + size.div_ceil(64), 0, 1_000_000)? as u32;
    let footprint = keys.number("footprint", 770, 0, 1_000_000)? as u32;
    let work = |ns: u64| Op::Run(Dist::around(ns + size / COPIED_PER_NS, 5));
    let room = (STREAM_BYTES / size) as u32;
    let of = |stream, _| {
        let write = Op::Write { channel: stream, lines, room, low: room / 3 * 2, sync: false };
        let read = [Op::Receive { channel: stream }, work(read_ns), Op::Count];
        [vec![work(write_ns), write], read.to_vec()]
    };
    let loops = Loops { lines: 34, footprint: footprint.into(), of: &of };
    let mbit = size as f64 * 8.0 / 1e6;
    let measure = |_| Measure::rate("throughput", "Mbit/s", mbit, 1.0);
    pairs(keys, &loops, NETPERF, measure)
}

/// Bytes that tbench counts for an operation: the mean of dbench 4.0's load file.
const TBENCH_BYTES: f64 = 5428.4;

/// The score of tbench.
pub(crate) fn tbench_measure() -> Measure {
    Measure::rate("throughput", "MB/s", TBENCH_BYTES / 1e6, 1.0)
}

/// Costs of one direction of tbench.
pub(crate) fn tbench_exchange(keys: &mut Keys<'_>) -> Result<Exchange, SpecError> {
    exchange(keys, [4073, 1300, 38, 892, 327], |ns| {
        // Three messages in a hundred carry 64 KiB and take several times as long.
        let far = ns * 4;
        let near = (ns * 30 - far) / 29;
        Dist::Mixed { near, far, one_in: 30 }
    })
}

/// Builds tbench.
pub(crate) fn tbench(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let exchange = tbench_exchange(keys)?;
    lockstep(keys, exchange, TBENCH, |_| tbench_measure())
}
