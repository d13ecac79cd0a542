// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads by name: this file reads `tbench:n=16,where=node0` and calls the builder of tbench.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{CpuMask, Era};

use crate::{
    Class, EraError, GroupSpec, GuestSpec, Measure, Network, Site, Space, SpecError, TaskSpec,
    UNCLAMPED, WorkloadError, ffmpeg, hackbench, network, recorded, rtapp, schbench, service,
    synthetic, sysbench, vm, volano,
};

/// A workload on a machine, ready to run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The name and the keys that the workload was built from.
    pub spec: String,
    /// The workload's tasks; operations name a task by its position here.
    pub tasks: Vec<TaskSpec>,
    /// The tasks' address spaces.
    pub spaces: Vec<Space>,
    /// Number of channels between the tasks.
    pub channels: usize,
    /// Number of mutexes that the tasks share.
    pub mutexes: usize,
    /// Number of counters that the tasks share.
    pub counters: usize,
    /// The task groups that the tasks are in, parents before their children.
    pub groups: Vec<GroupSpec>,
    /// The score that the workload is judged by.
    pub measure: Measure,
    /// The workload's virtual machines.
    pub guests: Vec<GuestSpec>,
    /// The network to the tasks on other computers; `None` if all tasks are here.
    pub network: Option<Network>,
    /// Sets of CPUs that tasks bind themselves to on the way, see [`crate::Op::Bind`].
    pub masks: Vec<Arc<CpuMask>>,
}

/// The most tasks that a workload may have: the numbers that name tasks have room for no more.
pub const MAX_TASKS: u64 = 1 << 24;

/// A workload that this version has.
struct Kind {
    name: &'static str,
    help: &'static str,
    /// The builder: it takes its keys and makes the tasks, and refuses what makes no sense.
    build: fn(&mut Keys<'_>) -> Result<Workload, SpecError>,
}

const KINDS: [Kind; 17] = [
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
               (4x4: four groups of four), shares (its, the hogs' have 1024 each), where, guest_hz, exit_ns, vhost_ns, receive_ns, and \
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
        name: "hackbench",
        help: "groups of senders that write to all receivers of theirs, timed; keys groups, fds, \
               loops, size, where",
        build: hackbench::sockets,
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
        name: recorded::NAME,
        help: "what `perch import` made of a recording, once, timed: recorded:FILE; keys lines (of \
               each wake-up), footprint, spread, sync, where",
        build: recorded::replay,
    },
    Kind {
        name: rtapp::NAME,
        help: "what rt-app's JSON file says: rtapp:FILE; keys footprint, lines, wait_ns and wake_ns (of \
               futex calls), mem_mbs, write_ns (of iorun), where",
        build: rtapp::file,
    },
];

/// Workloads that a user names with a file: `NAME:FILE,KEY=VALUE`.
const OF_FILES: [&str; 2] = [recorded::NAME, rtapp::NAME];

/// Help on the keys that every workload takes beside its own.
pub const COMMON_KEYS: &str = "uclamp_min and uclamp_max, 0 to 1024: what the utilisation of its tasks is clamped to; class, \
     fair, fifo:N or rr:N: what chrt starts them as";

/// Name and help of every workload; the help is a line about the workload and its keys.
pub fn names() -> Vec<(&'static str, &'static str)> {
    KINDS.iter().map(|k| (k.name, k.help)).collect()
}

/// Gives each task an address space of its own, so that each is a process of one thread, and
/// returns the address spaces.
pub(crate) fn one_process_each(tasks: &mut [TaskSpec]) -> Vec<Space> {
    for (space, task) in (0u32..).zip(tasks.iter_mut()) {
        task.space = Some(space);
    }
    vec![Space::default(); tasks.len()]
}

impl Workload {
    /// Refuses a workload that asks for what the era's kernel does not have: uclamp came with
    /// Linux 5.3.
    ///
    /// # Errors
    /// The error displays the keys, and says what the user can do.
    pub fn check(&self, era: Era) -> Result<(), EraError> {
        match era == Era::V3_4 && self.tasks.iter().any(|t| t.uclamp != UNCLAMPED) {
            true => Err(EraError::NoUclamp {
                spec: self.spec.clone(),
                era,
            }),
            false => Ok(()),
        }
    }

    /// Builds the workload that `spec` names on a machine. `spec` is `NAME` or
    /// `NAME:KEY=VALUE,…`; `perch workload list` shows the names and their keys.
    ///
    /// # Errors
    /// This function refuses an unknown name, an unknown or malformed key, a value out of range,
    /// and CPUs or nodes that the machine does not have; the error displays what was expected.
    pub fn parse(spec: &str, machine: &Machine) -> Result<Workload, WorkloadError> {
        Workload::build(spec, machine).map_err(|why| WorkloadError {
            spec: spec.to_string(),
            why: Box::new(why),
        })
    }

    fn build(spec: &str, machine: &Machine) -> Result<Workload, SpecError> {
        let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let Some(kind) = KINDS.iter().find(|k| k.name == name) else {
            return Err(SpecError::UnknownName {
                name: name.to_string(),
                known: KINDS.iter().map(|k| k.name).collect(),
            });
        };
        let (file, rest) = match OF_FILES.contains(&name) {
            true => rest.split_once(',').unwrap_or((rest, "")),
            false => ("", rest),
        };
        let mut keys = Keys::parse(rest, machine)?;
        keys.file = file.to_string();
        let mut workload = (kind.build)(&mut keys)?;
        let uclamp = keys.uclamp()?;
        let class = keys.text("class").map(|text| Class::parse(&text));
        let class = class.transpose()?;
        keys.all_used(kind.name)?;
        debug_assert!(
            (workload.tasks.iter().flat_map(|t| t.space))
                .all(|space| (space as usize) < workload.spaces.len())
        );
        let ours = workload.tasks.iter_mut().filter(|t| t.site == Site::Host);
        ours.for_each(|t| {
            t.uclamp = uclamp.unwrap_or(t.uclamp);
            t.class = class.unwrap_or(t.class);
        });
        let checks = workload.tasks.iter().map(|t| t.class.check());
        checks.collect::<Result<(), _>>()?;
        workload.spec = spec.to_string();
        Ok(workload)
    }
}

/// The keys of a spec. A builder takes out, one by one, the keys that it knows; a key that is left
/// at the end is an error.
pub(crate) struct Keys<'a> {
    left: BTreeMap<String, String>,
    known: Vec<&'static str>,
    pub machine: &'a Machine,
    /// The file that the spec names; empty for a workload without a file.
    pub file: String,
}

impl<'a> Keys<'a> {
    fn parse(text: &str, machine: &'a Machine) -> Result<Keys<'a>, SpecError> {
        let mut left = BTreeMap::new();
        // The spec of a workload inside another one has commas of its own.
        let inside = match text.strip_prefix("inside=") {
            Some(inside) => Some(("", inside)),
            None => text.split_once(",inside="),
        };
        let text = match inside {
            Some((outside, inside)) => {
                left.insert(vm::INSIDE.to_string(), inside.to_string());
                outside
            }
            None => text,
        };
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| SpecError::NoKeyValue {
                part: part.to_string(),
            })?;
            if left.insert(key.to_string(), value.to_string()).is_some() {
                return Err(SpecError::KeyTwice {
                    key: key.to_string(),
                });
            }
        }
        Ok(Keys {
            left,
            known: Vec::new(),
            machine,
            file: String::new(),
        })
    }

    /// Takes out the text of a key; `None` if the spec does not give the key.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.known.push(key);
        self.left.remove(key)
    }

    /// Takes out a number from `low` to `high`; the default if the spec does not give the key.
    ///
    /// # Errors
    /// A text that is no such number.
    pub fn number<T>(
        &mut self,
        key: &'static str,
        default: T,
        low: T,
        high: T,
    ) -> Result<T, SpecError>
    where
        T: FromStr + PartialOrd + Into<i128>,
    {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        match text.parse::<T>() {
            Ok(value) if value >= low && value <= high => Ok(value),
            _ => Err(SpecError::Number {
                key,
                value: text,
                low: low.into(),
                high: high.into(),
            }),
        }
    }

    /// Takes out a number, as [`Keys::number`] does, of a key that has several names.
    ///
    /// # Errors
    /// A text that is no such number, or a spec that gives the key by two of its names.
    pub fn number_of(
        &mut self,
        names: &[&'static str],
        default: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, SpecError> {
        self.known.extend(names);
        let given: Vec<_> = names
            .iter()
            .filter(|&&n| self.left.contains_key(n))
            .collect();
        match given[..] {
            [] => Ok(default),
            [name] => self.number(name, default, low, high),
            _ => Err(SpecError::Synonyms {
                names: names.to_vec(),
            }),
        }
    }

    /// Takes out `where`, and returns the CPUs that it names: `all`, `node0`, `node0-1` or
    /// `cpu0-31`.
    ///
    /// # Errors
    /// A text that names none of the machine's CPUs or nodes.
    pub fn cpus(&mut self) -> Result<Arc<CpuMask>, SpecError> {
        let n = self.machine.cpus.len();
        let text = self.text("where").unwrap_or_else(|| "all".to_string());
        let expected = || SpecError::Where {
            value: text.clone(),
            last_node: self.machine.nodes() - 1,
            last_cpu: n - 1,
        };
        let range = |text: &str, end: usize| -> Option<std::ops::RangeInclusive<usize>> {
            let (low, high) = text.split_once('-').unwrap_or((text, text));
            let (low, high) = (low.parse().ok()?, high.parse().ok()?);
            (low <= high && high < end).then_some(low..=high)
        };
        let mask = if text == "all" {
            CpuMask::full(n)
        } else if let Some(rest) = text.strip_prefix("node") {
            let nodes = range(rest, self.machine.nodes()).ok_or_else(expected)?;
            let cpus = self.machine.cpus.iter().enumerate();
            let inside = cpus.filter(|(_, c)| nodes.contains(&(c.node as usize)));
            CpuMask::of(n, inside.map(|(cpu, _)| cpu))
        } else if let Some(rest) = text.strip_prefix("cpu") {
            CpuMask::of(n, range(rest, n).ok_or_else(expected)?)
        } else {
            return Err(expected());
        };
        if mask.weight() == 0 {
            return Err(SpecError::NoCpus { value: text });
        }
        Ok(Arc::new(mask))
    }

    /// Takes out the two keys that clamp the utilisation of every task, least and greatest, as
    /// `uclampset` does for the tasks that it starts; `None` if the spec gives neither.
    fn uclamp(&mut self) -> Result<Option<(u32, u32)>, SpecError> {
        let given = ["uclamp_min", "uclamp_max"]
            .iter()
            .any(|key| self.left.contains_key(*key));
        let min = self.number("uclamp_min", UNCLAMPED.0, 0, 1024)?;
        let max = self.number("uclamp_max", UNCLAMPED.1, 0, 1024)?;
        if min > max {
            return Err(SpecError::Clamps { min, max });
        }
        Ok(given.then_some((min, max)))
    }

    /// Refuses a key that the builder `name` has not taken out.
    fn all_used(&self, name: &'static str) -> Result<(), SpecError> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(key) => Err(SpecError::UnknownKey {
                name,
                key: key.clone(),
                known: self.known.clone(),
            }),
        }
    }
}
