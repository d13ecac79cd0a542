// SPDX-License-Identifier: GPL-2.0-or-later
//! Services for clients on other computers: tbench over the network, httperf's sessions at a web
//! server, and a request/think loop in place of "Trade".

use perch_engine::Dist;
use perch_machine::Footprint;

use crate::keys::Keys;
use crate::network::{Exchange, tbench_exchange, tbench_measure};
use crate::workload::{MAX_TASKS, Workload, one_process_each};
use crate::{Demand, Measure, Network, Op, Site, SpecError, TaskSpec};

/// Reads the keys of the network, which all of these workloads have.
fn network(keys: &mut Keys<'_>) -> Result<Network, SpecError> {
    let usual = Network::default();
    let latency_us = usual.latency_ns / 1000;
    Ok(Network {
        latency_ns: keys.number("latency_us", latency_us, 1, 1_000_000)? * 1000,
        interrupt_ns: keys.number("interrupt_ns", usual.interrupt_ns, 0, 1_000_000_000)?,
        queues: keys.number("queues", usual.queues, 1, 1024)?,
    })
}

/// The builder of one service, with what the tasks of the service have in common.
struct Service<'a, 'k> {
    keys: &'a mut Keys<'k>,
    footprint: Footprint,
}

impl Service<'_, '_> {
    /// Builds the workload: clients outside, servers on the simulated machine.
    fn build(
        self,
        clients: Vec<Vec<Op>>,
        servers: Vec<Vec<Op>>,
        channels: u32,
        measure: Measure,
    ) -> Result<Workload, SpecError> {
        let allowed = self.keys.cpus()?;
        let network = network(self.keys)?;
        let task = |program: Vec<Op>, site, start| TaskSpec {
            site,
            ..TaskSpec::new(program, &allowed, self.footprint, Some(start))
        };
        // The servers wait for the clients, which begin one after the other.
        let servers = servers.into_iter();
        let mut tasks: Vec<TaskSpec> =
            servers.map(|program| task(program, Site::Host, Dist::Uniform(0, 1_000_000))).collect();
        let spaces = one_process_each(&mut tasks);
        let begin = Dist::Uniform(5_000_000, 10_000_000);
        let clients = clients.into_iter();
        tasks.extend(clients.map(|program| task(program, Site::Outside, begin)));
        Ok(Workload {
            channels: channels as usize,
            network: Some(network),
            ..Workload::of(tasks, spaces, measure)
        })
    }
}

fn send(channel: u32, lines: u32) -> Op {
    Op::Send { channel, lines, sync: true }
}

/// Builds tbench with its clients on another computer: n clients ask their servers, one request at
/// a time, without thinking. A server does the same work as a server of [`crate::network::tbench`],
/// which is fitted to measurements; a client does as much.
pub(crate) fn tbench(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let n = keys.count("n", 8, 1, MAX_TASKS / 2)? as u32;
    let Exchange { before, after, lines, footprint } = tbench_exchange(keys)?;
    let counts = Demand {
        tasks: 2 * u64::from(n),
        operations: 10 * u64::from(n),
        channels: 2 * u64::from(n),
        ..Demand::default()
    };
    keys.afford(&[("n", &n)], counts)?;
    let pairs = 0..n;
    let clients = pairs.clone().map(|pair| {
        vec![
            Op::Run(before),
            send(2 * pair, lines),
            Op::Receive { channel: 2 * pair + 1 },
            Op::Count,
            Op::Jump(0),
        ]
    });
    let servers = pairs.map(|pair| {
        vec![
            Op::Receive { channel: 2 * pair },
            Op::Run(before),
            send(2 * pair + 1, lines),
            Op::Run(after),
            Op::Jump(0),
        ]
    });
    let (clients, servers) = (clients.collect(), servers.collect());
    Service { keys, footprint }.build(clients, servers, 2 * n, tbench_measure())
}

/// Builds httperf with `--wsess=sessions,calls,think --burst-length=burst` (httperf(1), from
/// memory). A session is a connection. The client sends the first call of a burst alone, and the
/// other calls together when the first reply has come. Between bursts the user thinks. Without
/// `--rate`, as in the source, sessions come one after the other; `at_once` keeps several going.
/// Sessions never run out here, because the score is a rate.
///
/// The web server consists of processes that serve a connection each (Apache's prefork).
pub(crate) fn httperf(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let at_once = keys.count("at_once", 1, 1, MAX_TASKS / 2)? as u32;
    let calls = keys.number("calls", 500, 1, 1_000_000)?;
    let burst = keys.number("burst", 100, 1, 10_000)?;
    if burst > calls || calls % burst != 0 {
        return Err(SpecError::Burst { burst, calls });
    }
    let counts = Demand {
        tasks: 2 * u64::from(at_once),
        operations: (4 * burst + 16) * u64::from(at_once),
        channels: 2 * u64::from(at_once),
        messages: burst * u64::from(at_once),
        ..Demand::default()
    };
    keys.afford(&[("at_once", &at_once), ("burst", &burst)], counts)?;
    let think_us = keys.number("think_us", 0, 0, 1_000_000_000)?;
    // Guesses: Apache 2.2's work for a small static file, and its work once the reply is on its
    // way (the log); its work for a new connection; the client's work.
    let serve = keys.number("serve_us", 60, 1, 1_000_000)? * 1000;
    let after = keys.number("after_us", 10, 0, 1_000_000)? * 1000;
    let accept = keys.number("accept_us", 100, 1, 1_000_000)? * 1000;
    let client = keys.number("client_us", 5, 1, 1_000_000)? * 1000;
    let (lines, footprint) = (40, 900.into());
    let sessions = 0..at_once;
    let clients = sessions.clone().map(|session| {
        let (request, reply) = (2 * session, 2 * session + 1);
        let (ask, get) = (send(request, lines), Op::Receive { channel: reply });
        // The client connects with a message of its own.
        let mut program = vec![Op::Run(Dist::around(client, 20)), ask, get];
        let first = program.len() as u32;
        program.extend([Op::Run(Dist::around(client, 20)), ask, get, Op::Count]);
        program.extend((1..burst).flat_map(|_| [Op::Run(Dist::around(client, 20)), ask]));
        program.extend((1..burst).flat_map(|_| [get, Op::Count]));
        if think_us > 0 {
            program.push(Op::Sleep(Dist::Const(think_us * 1000)));
        }
        program.extend([Op::Repeat { to: first, times: calls / burst }, Op::Jump(0)]);
        program
    });
    let servers = sessions.map(|session| {
        let (request, reply) = (2 * session, 2 * session + 1);
        let get = Op::Receive { channel: request };
        vec![
            get,
            Op::Run(Dist::around(accept, 20)),
            send(reply, 4),
            get,
            Op::Run(Dist::around(serve, 20)),
            send(reply, lines),
            Op::Run(Dist::around(after, 20)),
            Op::Repeat { to: 3, times: calls },
            Op::Jump(0),
        ]
    });
    let (clients, servers) = (clients.collect(), servers.collect());
    let measure = Measure::rate("replies", "replies/s", 1.0, 1.0);
    Service { keys, footprint }.build(clients, servers, 2 * at_once, measure)
}

/// Builds a request/think loop in place of "Trade": users on another computer ask an application
/// server, and wait. A thread of the server works, asks a database on the same machine, works on
/// and replies.
///
/// The source says nothing of Trade but the name. Its author said more in February 2012 ("sched:
/// Performance of Trade workload running inside VM"): Trade is an OLTP benchmark under a load
/// generator. The virtual machine alone answered 33,395 requests a minute with 21.4 % of 16 CPUs,
/// and its vCPUs ran for microseconds at a time. So a request takes 6.15 ms of CPU, and 4 users who
/// do not think keep 3.4 vCPUs busy. A request makes as many queries as it takes for bursts of some
/// 150 us, a guess.
pub(crate) fn trade(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let users = keys.count("users", 4, 1, MAX_TASKS / 4)? as u32;
    let counts = Demand {
        tasks: 3 * u64::from(users),
        operations: 17 * u64::from(users),
        channels: 4 * u64::from(users),
        ..Demand::default()
    };
    keys.afford(&[("users", &users)], counts)?;
    let think = keys.number("think_us", 0, 0, 1_000_000_000)? * 1000;
    let serve = keys.number("serve_us", 2700, 1, 1_000_000)? * 1000;
    let query = keys.number("query_us", 135, 1, 1_000_000)? * 1000;
    let queries = keys.number("queries", 20, 1, 1000)?;
    let (lines, footprint) = (60, 2000.into());
    let all = 0..users;
    let clients = all.clone().map(|user| {
        let mut program =
            vec![send(4 * user, lines), Op::Receive { channel: 4 * user + 1 }, Op::Count];
        if think > 0 {
            program.push(Op::Sleep(Dist::Exponential(think)));
        }
        program.push(Op::Jump(0));
        program
    });
    let part = Op::Run(Dist::around(serve / (queries + 1), 20));
    let servers = all.flat_map(|user| {
        let [request, reply, ask, answer] = [0, 1, 2, 3].map(|i| 4 * user + i);
        let application = vec![
            Op::Receive { channel: request },
            part,
            send(ask, lines),
            Op::Receive { channel: answer },
            Op::Repeat { to: 1, times: queries },
            part,
            send(reply, lines),
            Op::Jump(0),
        ];
        let database = vec![
            Op::Receive { channel: ask },
            Op::Run(Dist::around(query, 20)),
            send(answer, lines),
            Op::Jump(0),
        ];
        [application, database]
    });
    let (clients, servers) = (clients.collect(), servers.collect());
    let measure = Measure::rate("requests", "requests/s", 1.0, 1.0);
    Service { keys, footprint }.build(clients, servers, 4 * users, measure)
}
