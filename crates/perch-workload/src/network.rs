// SPDX-License-Identifier: GPL-2.0-or-later
//! Request and reply over loopback: tbench and netperf's TCP_RR and UDP_RR.
//!
//! A pair is a client and a server in lockstep: the client sends, goes on until it asks for the
//! reply, and sleeps; the server wakes up, works and replies. A late reply delays the next request.
//! Loopback delivers in the sender's own context, so the sender's CPU is the waker's and the
//! wake-up is a sync one (`sock_def_readable`).
//!
//! A shell forks the clients. Each client connects, which wakes the listening daemon, and the
//! daemon forks the server of the pair. So the kernel's own fork balancing decides where a pair
//! starts, and the wake-ups decide where it stays.

use perch_engine::Dist;

use crate::keys::Keys;
use crate::workload::{MAX_TASKS, Workload, one_process_each};
use crate::{Class, Demand, Measure, Op, Site, SpecError, TaskSpec, UNCLAMPED};

/// Costs of one direction of an exchange. docs/calibration.md tells where the values come from.
pub(crate) struct Exchange {
    /// A side's work from its wake-up until it wakes the other side: the receive path, the work of
    /// the request, the send path.
    pub before: Dist,
    /// A side's work after it has woken the other side, until it sleeps: the end of the send, the
    /// beginning of the receive.
    pub after: Dist,
    /// Cache lines that the sender wrote and the receiver needs: payload, socket, run queue.
    pub lines: u32,
    /// Cache lines of its own that each side uses in every exchange.
    pub footprint: u32,
}

/// A client's work from its connection to its first request: buffers, names, options. It takes
/// longer than the daemon takes to fork the server.
const SETUP_NS: u64 = 300_000;

/// The moment at which a client sends its first request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Each client begins as soon as it is connected: a loop in a shell starts instances of
    /// netperf.
    AtOnce,
    /// All clients begin together, when the last one is connected: tbench prepares its clients
    /// first.
    Together,
}

impl Start {
    /// Time between two forks of the shell, and a client's work until it connects, microseconds.
    ///
    /// Rough figures: a shell's fork and exec, dynamic linking and the control connection take a
    /// millisecond or two; tbench forks without exec, and each client then connects, reads its
    /// load file and clears its directory, so that all of them start up at the same time.
    fn costs_us(self) -> (u64, u64) {
        match self {
            Start::AtOnce => (1000, 1500),
            Start::Together => (200, 5000),
        }
    }
}

/// Builds pairs of clients and servers, with the shell and the daemon that start them.
fn pairs(
    keys: &mut Keys<'_>,
    exchange: Exchange,
    start: Start,
    measure: impl Fn(u64) -> Measure,
) -> Result<Workload, SpecError> {
    let n = keys.number("n", 1, 1, MAX_TASKS / 2)?;
    let counts = Demand::new(2 * n + 2, 20 * n, 2 * n + 3);
    keys.afford(&[("n", &n)], counts)?;
    let allowed = keys.cpus()?;
    let (gap, startup) = start.costs_us();
    let gap = keys.number("gap_us", gap, 1, 1_000_000)? * 1000;
    let startup = keys.number("startup_us", startup, 1, 1_000_000)? * 1000;
    let Exchange {
        before,
        after,
        lines,
        footprint,
    } = exchange;
    let task = |program: Vec<Op>, start| TaskSpec {
        program: program.into(),
        allowed: allowed.clone(),
        nice: 0,
        class: Class::Fair,
        uclamp: UNCLAMPED,
        footprint,
        space: None,
        group: None,
        start,
        site: Site::Host,
    };
    let send = |channel| Op::Send {
        channel,
        lines,
        sync: true,
    };
    let [connect, ready, go] = [0, 1, 2].map(|i| 2 * n as u32 + i);
    // Fork and, in the shell, exec: rough figures; they only space the starts.
    let (mut shell, mut daemon) = (Vec::new(), Vec::new());
    let mut tasks = Vec::with_capacity(2 * n as usize + 2);
    for pair in 0..n as u32 {
        let (request, reply) = (2 * pair, 2 * pair + 1);
        shell.extend([Op::Run(Dist::around(gap, 20)), Op::Fork(2 * pair)]);
        daemon.extend([
            Op::Receive { channel: connect },
            Op::Run(Dist::around(100_000, 20)),
            Op::Fork(2 * pair + 1),
        ]);
        let mut client = vec![Op::Run(Dist::around(startup, 20)), send(connect)];
        client.push(Op::Run(Dist::around(SETUP_NS, 20)));
        match start {
            Start::AtOnce => client.insert(0, Op::Exec),
            // tbench forks its clients and they stay what they are.
            Start::Together => client.extend([send(ready), Op::Receive { channel: go }]),
        }
        let first = client.len() as u32;
        // The client speaks first (netperf's control request, tbench's first operation), and by
        // then the server is there and waits for it.
        client.extend([
            Op::Run(before),
            send(request),
            Op::Run(after),
            Op::Receive { channel: reply },
            Op::Count,
            Op::Jump(first),
        ]);
        let server = vec![
            Op::Receive { channel: request },
            Op::Run(before),
            send(reply),
            Op::Run(after),
            Op::Jump(0),
        ];
        tasks.extend([task(client, None), task(server, None)]);
    }
    if start == Start::Together {
        shell.extend((0..n).map(|_| Op::Receive { channel: ready }));
        shell.extend((0..n).map(|_| send(go)));
    }
    shell.push(Op::Exit);
    daemon.push(Op::Exit);
    tasks.push(task(daemon, Some(Dist::Uniform(0, 500_000))));
    tasks.push(task(shell, Some(Dist::Uniform(1_000_000, 2_000_000))));
    Ok(Workload {
        spec: String::new(),
        spaces: one_process_each(&mut tasks),
        tasks,
        channels: 2 * n as usize + 3,
        mutexes: 0,
        counters: 0,
        groups: Vec::new(),
        measure: measure(n),
        guests: Vec::new(),
        network: None,
        masks: Vec::new(),
    })
}

fn transactions(n: u64) -> Measure {
    Measure::rate("transactions", "trans/s/inst", 1.0, n as f64)
}

/// Reads the keys that stand for fitted values, so that anybody can repeat a fit.
fn fitted(
    keys: &mut Keys<'_>,
    [before, after, lines, footprint]: [u64; 4],
) -> Result<[u64; 4], SpecError> {
    Ok([
        keys.number("before_ns", before, 1, 1_000_000_000)?,
        keys.number("after_ns", after, 0, 1_000_000_000)?,
        keys.number("lines", lines, 0, 1_000_000)?,
        keys.number("footprint", footprint, 0, 1_000_000)?,
    ])
}

fn netperf(keys: &mut Keys<'_>, values: [u64; 4]) -> Result<Workload, SpecError> {
    let [before, after, lines, footprint] = fitted(keys, values)?;
    let exchange = Exchange {
        before: Dist::around(before, 5),
        after: Dist::around(after, 5),
        lines: lines as u32,
        footprint: footprint as u32,
    };
    pairs(keys, exchange, Start::AtOnce, transactions)
}

/// Builds netperf's TCP_RR.
pub(crate) fn tcp_rr(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    netperf(keys, [2425, 1300, 34, 770])
}

/// Builds netperf's UDP_RR.
pub(crate) fn udp_rr(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    netperf(keys, [1732, 1300, 24, 673])
}

/// Bytes that tbench counts for an operation: the mean of dbench 4.0's load file.
const TBENCH_BYTES: f64 = 5428.4;

/// The score of tbench.
pub(crate) fn tbench_measure() -> Measure {
    Measure::rate("throughput", "MB/s", TBENCH_BYTES / 1e6, 1.0)
}

/// Costs of one direction of tbench.
pub(crate) fn tbench_exchange(keys: &mut Keys<'_>) -> Result<Exchange, SpecError> {
    let [before, after, lines, footprint] = fitted(keys, [4073, 1300, 38, 892])?;
    // Three messages in a hundred carry 64 KiB and take several times as long.
    let far = before * 4;
    let near = (before * 30 - far) / 29;
    Ok(Exchange {
        before: Dist::Mixed {
            near,
            far,
            one_in: 30,
        },
        after: Dist::around(after, 5),
        lines: lines as u32,
        footprint: footprint as u32,
    })
}

/// Builds tbench.
pub(crate) fn tbench(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let exchange = tbench_exchange(keys)?;
    pairs(keys, exchange, Start::Together, |_| tbench_measure())
}
