// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads by name: this file reads `tbench:n=16,where=node0` and calls the builder of tbench.

use perch_machine::Machine;

use crate::keys::Keys;
use crate::words::{RECORDED, RTAPP};
use crate::{
    Budget, Class, Demand, Site, Space, SpecError, Workload, WorkloadError, ffmpeg, hackbench,
    make, network, recorded, rtapp, schbench, service, synthetic, sysbench, vm, volano,
};

/// A workload that this version has.
struct Kind {
    name: &'static str,
    help: &'static str,
    /// The builder: it takes its keys and makes the tasks, and refuses what makes no sense.
    build: fn(&mut Keys<'_>) -> Result<Workload, SpecError>,
}

const KINDS: [Kind; 19] = [
    Kind {
        name: "tbench",
        help: "n client/server pairs over loopback TCP, file-server messages; keys n, where",
        build: network::tbench,
    },
    Kind {
        name: "tbench-net",
        help: "n tbench servers here, their clients on another computer; keys n, latency_us, \
               interrupt_ns, queues, where",
        build: service::tbench,
    },
    Kind {
        name: "httperf",
        help: "a web server here, httperf's sessions of bursts on another computer; keys at_once, \
               calls, burst, think_us, serve_us, latency_us, interrupt_ns, queues, where",
        build: service::httperf,
    },
    Kind {
        name: "trade",
        help: "users on another computer that think and ask an application server with a \
               database; keys users, think_us, serve_us, queries, query_us, latency_us, where",
        build: service::trade,
    },
    Kind {
        name: "volano",
        help: "VolanoMark: chat rooms over loopback, four threads a user; keys rooms, users, \
               socket_ns, parse_ns, notify_ns, where",
        build: volano::loopback,
    },
    Kind {
        name: "vm",
        help: "a virtual machine with another workload in it, hogs around it; keys vcpus, hogs \
               (4x4: four groups of four), shares (its, the hogs' have 1024 each), where, guest_hz, exit_ns, vhost_ns, receive_ns, spins (0: none for a lock), and \
               as the last one inside, a workload with its keys (pipe)",
        build: vm::vm,
    },
    Kind {
        name: "tcp_rr",
        help: "n netperf TCP_RR instances, one byte each way; keys n, where",
        build: network::tcp_rr,
    },
    Kind {
        name: "udp_rr",
        help: "n netperf UDP_RR instances, one byte each way; keys n, where",
        build: network::udp_rr,
    },
    Kind {
        name: "tcp_stream",
        help: "n netperf TCP_STREAM instances; keys n, size (bytes of a send), where",
        build: network::tcp_stream,
    },
    Kind {
        name: "hackbench",
        help: "groups of senders that write to all receivers of theirs, timed; keys groups, fds, \
               loops, size, threads (yes: of one process), pipe (yes: pipes for sockets), where",
        build: hackbench::hackbench,
    },
    Kind {
        name: "make",
        help: "make -jN of C files, timed; keys jobs (a number or N%; as many as CPUs), files, make_us, \
               compile_ms, assemble_ms, io_us, where",
        build: make::build,
    },
    Kind {
        name: "sysbench",
        help: "sysbench threads: lock, yield, unlock; keys threads, locks, yields, where",
        build: sysbench::threads,
    },
    Kind {
        name: "schbench",
        help: "workers that ask a messenger for requests of a sleep and matrix passes; keys \
               messengers, workers (each messenger's; also n), sleep_us, passes, kib, where",
        build: schbench::current,
    },
    Kind {
        name: "schbench-old",
        help: "schbench before 2023: messengers that wake all of their workers at once, which \
               think and wait; keys messengers, workers, think_us, sleep_us, where",
        build: schbench::old,
    },
    Kind {
        name: "ffmpeg",
        help: "transcoders on cores of their own, threads FIFO 99; keys instances, \
               cpus_per_instance, decoders, filters, encoders, rows, lag, main_us, decode_us, \
               filter_us, lookahead_us, encode_us, kernel_us, kworker_ms, priority",
        build: ffmpeg::transcoders,
    },
    Kind {
        name: "pipe",
        help: "pairs of tasks that pass one byte to and fro through pipes; keys pairs, where",
        build: synthetic::pipe,
    },
    Kind {
        name: "runsleep",
        help: "tasks that run and sleep; keys tasks (a number or N/cpu), run_us, sleep_us, nice, \
               where",
        build: synthetic::run_sleep,
    },
    Kind {
        name: RECORDED,
        help: "what `perch import` made of a recording, once, timed: recorded:FILE; keys lines (of \
               each wake-up), footprint, spread, sync, where",
        build: recorded::replay,
    },
    Kind {
        name: RTAPP,
        help: "what rt-app's JSON file says: rtapp:FILE; keys footprint, lines, wait_ns and wake_ns (of \
               futex calls), mem_mbs, write_ns (of iorun), where",
        build: rtapp::file,
    },
];

/// Workloads that a user names with a file: `NAME:FILE,KEY=VALUE`.
pub const OF_FILES: [&str; 2] = [RECORDED, RTAPP];

/// Help on the keys that every workload takes beside its own.
pub const COMMON_KEYS: &str = "uclamp_min and uclamp_max, 0 to 1024: what the utilisation of its tasks is clamped to; class, \
     fair, fifo:N or rr:N: what chrt starts them as; hogs (but for vm) and hogs_nice: as many tasks beside it, \
     on the same CPUs, that never sleep and that no score counts. Numbers of tasks, pairs and groups may be N%: of the CPUs that \
     where names";

/// Name and help of every workload; the help is a line about the workload and its keys.
pub fn names() -> Vec<(&'static str, &'static str)> {
    KINDS.iter().map(|k| (k.name, k.help)).collect()
}

impl Workload {
    /// Builds the workload that `spec` names on a machine. `spec` is `NAME` or
    /// `NAME:KEY=VALUE,…`; `perch workload list` shows the names and their keys.
    ///
    /// # Errors
    /// This function refuses an unknown name, an unknown or malformed key, a value out of range,
    /// CPUs or nodes that the machine does not have, and a workload that takes more memory than
    /// [`Budget::DEFAULT`]; the error displays what was expected.
    pub fn parse(spec: &str, machine: &Machine) -> Result<Workload, WorkloadError> {
        Workload::parse_within(spec, machine, Budget::DEFAULT)
    }

    /// Builds a workload as [`Workload::parse`] does, within another budget.
    ///
    /// # Errors
    /// Those of [`Workload::parse`].
    pub fn parse_within(
        spec: &str,
        machine: &Machine,
        budget: Budget,
    ) -> Result<Workload, WorkloadError> {
        Workload::build(spec, machine, budget)
            .map_err(|why| WorkloadError { spec: spec.to_string(), why: Box::new(why) })
    }

    fn build(spec: &str, machine: &Machine, budget: Budget) -> Result<Workload, SpecError> {
        let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let Some(kind) = KINDS.iter().find(|k| k.name == name) else {
            return Err(SpecError::UnknownName {
                name: name.to_string(),
                known: KINDS.iter().map(|k| k.name).collect(),
            });
        };
        let (file, rest) = if OF_FILES.contains(&name) {
            rest.split_once(',').unwrap_or((rest, ""))
        } else {
            ("", rest)
        };
        let mut keys = Keys::parse(rest, machine, budget)?;
        keys.file = file.to_string();
        let place = keys.place()?;
        let mut workload = (kind.build)(&mut keys)?;
        let hogs = synthetic::hogs(&mut keys, &place)?;
        let uclamp = keys.uclamp()?;
        let class = keys.text("class").map(|text| Class::parse(&text));
        let class = class.transpose()?;
        keys.all_used(kind.name)?;
        // A file's tasks, and a virtual machine's with those inside, are counted here alone.
        budget.check(name, Demand::of(&workload, machine.cpus.len()))?;
        debug_assert!(
            (workload.tasks.iter().filter_map(|t| t.space))
                .all(|space| (space as usize) < workload.spaces.len())
        );
        let ours = workload.tasks.iter_mut().filter(|t| t.site == Site::Host);
        ours.for_each(|t| {
            t.uclamp = uclamp.unwrap_or(t.uclamp);
            t.class = class.unwrap_or(t.class);
        });
        for mut hog in hogs {
            hog.space = Some(workload.spaces.len() as u32);
            workload.spaces.push(Space::default());
            workload.tasks.push(hog);
        }
        let checks = workload.tasks.iter().map(|t| t.class.check());
        checks.collect::<Result<(), _>>()?;
        workload.spec = spec.to_string();
        Ok(workload)
    }
}
