// SPDX-License-Identifier: GPL-2.0-or-later
//! The recorder: it loads its programs into the kernel, and writes the records that they hand out
//! into a file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, RingBufferBuilder};
use perch_policy::Topology;

use crate::decision::QueueRecorder;
use crate::format::{Footer, Undecided, Writer};
use crate::raw;
use crate::sink::Sink;
use crate::subject::version_of;

/// The programs of bpf/recorder.bpf.c, which build.rs compiles, and those for older verifiers.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.bpf.o"));
static OLD_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder_old.bpf.o"));

/// The kernel's function that says whether a CPU is idle, which the choice of a CPU asks. Where it is
/// part of other functions, the recorder looks at the CPUs once more when the choice is made.
const ASKED: &str = "available_idle_cpu";

/// The reason why nothing can be recorded, or nothing any more.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The kernel refused a step.
    #[error("{what}: {source:#}")]
    Kernel {
        /// The step that the recorder tried.
        what: String,
        /// The error that libbpf returned.
        source: libbpf_rs::Error,
    },
    /// The machine has more CPUs than a record has room for.
    #[error("{0} CPUs: the recorder takes up to {most}", most = raw::MAX_CPUS)]
    Cpus(usize),
    /// The compiled programs lack a map, or a program that reads the clocks.
    #[error("no {0}")]
    Missing(String),
    /// The compiled programs lack one of the programs to attach.
    #[error("{0} cannot be attached")]
    NoProgram(&'static str),
    /// The kernel has no function of this name that can be watched: it has another scheduler, or the
    /// compiler made the function part of another one.
    #[error(
        "this kernel has no function {0}: decisions about queues are recorded from kernels with EEVDF \
         and delayed dequeue (6.12 or newer)"
    )]
    NoFunction(&'static str),
    /// The names of the kernel's functions cannot be read.
    #[error("{0}: {1}")]
    Functions(&'static str, std::io::Error),
    /// The file cannot be written any more; the blocks written before are good.
    #[error("cannot write the recording: {0}; what was written before is good")]
    Write(#[from] std::io::Error),
}

/// The rates of ticks with which kernels are built.
const RATES: [u64; 4] = [100, 250, 300, 1000];

/// The recorder's programs at work in the kernel.
pub struct Recorder {
    object: Object,
    links: Vec<Link>,
    hz: u64,
    cpus: usize,
    /// The kernel has the function by which the recorder hears what the kernel asks.
    hears: bool,
    queues: Option<QueueRecorder>,
}

/// Returns the functions of the running kernel, one per line behind address and kind.
pub(crate) fn functions() -> Result<String, RecordError> {
    let path = "/proc/kallsyms";
    std::fs::read_to_string(path).map_err(|error| RecordError::Functions(path, error))
}

/// Returns true where these functions have one of this name.
pub(crate) fn has_function(functions: &str, name: &str) -> bool {
    let mut lines = functions.lines();
    lines.any(|line| line.split_ascii_whitespace().nth(2) == Some(name))
}

pub(crate) fn unable(what: &str) -> impl Fn(libbpf_rs::Error) -> RecordError {
    let what = what.to_string();
    move |source| RecordError::Kernel { what: what.clone(), source }
}

impl Recorder {
    /// Loads the programs, with a ring buffer of so many bytes (a power of two, at least a page);
    /// `possible` is one more than the highest number that a CPU may have, and `release` the running
    /// kernel's. The programs record nothing yet.
    ///
    /// # Errors
    /// Returns a [`RecordError`], with the kernel's words where the kernel refuses.
    pub fn load(
        topology: &Topology,
        possible: usize,
        ring: u32,
        release: &str,
    ) -> Result<Recorder, RecordError> {
        let unequal = (0..topology.nr_cpus()).any(|cpu| topology.asym(cpu).is_some());
        let words = possible.div_ceil(64);
        if possible > raw::MAX_CPUS {
            return Err(RecordError::Cpus(possible));
        }
        let groups = group_places(topology);
        let failed = unable("the recorder's programs");
        let mut open = ObjectBuilder::default()
            .name("perch_record")
            .and_then(|builder| builder.open_memory(object_for(release)))
            .map_err(&failed)?;
        // Without the names of the kernel's functions the recorder looks twice.
        let hears = functions().is_ok_and(|all| has_function(&all, ASKED));
        for mut program in open.progs_mut() {
            if program.name() == "kernel_asks" {
                program.set_autoload(hears);
            }
        }
        for mut map in open.maps_mut() {
            match map.name().to_str() {
                Some("places") => {
                    map.set_max_entries(possible as u32).map_err(&failed)?;
                    let size = raw::most(possible, groups.len()) as u32;
                    map.set_value_size(size).map_err(&failed)?;
                }
                Some("llcs") => {
                    map.set_max_entries(possible as u32).map_err(&failed)?;
                    map.set_value_size(8 * words as u32).map_err(&failed)?;
                }
                Some("groups") => {
                    map.set_max_entries(groups.len().max(1) as u32).map_err(&failed)?;
                }
                Some("counts") => map.set_max_entries(possible as u32).map_err(&failed)?,
                Some("ring") => map.set_max_entries(ring).map_err(&failed)?,
                Some(name) if name.ends_with(".rodata") => {
                    if let Some(data) = map.initial_value_mut() {
                        data[..4].copy_from_slice(&(possible as u32).to_ne_bytes());
                        data[4..8].copy_from_slice(&u32::from(unequal).to_ne_bytes());
                        data[8..12].copy_from_slice(&(groups.len() as u32).to_ne_bytes());
                        data[12..16].copy_from_slice(&u32::from(hears).to_ne_bytes());
                    }
                }
                _ => {}
            }
        }
        let object = open.load().map_err(&failed)?;
        let places = map_of(&object, "groups")?;
        for (i, group) in groups.iter().enumerate() {
            let place = [group.cpu.to_ne_bytes(), group.level.to_ne_bytes()].concat();
            places.update(&(i as u32).to_ne_bytes(), &place, MapFlags::ANY).map_err(&failed)?;
        }
        let llcs = map_of(&object, "llcs")?;
        for cpu in 0..possible {
            let mut set = vec![0u64; words];
            set[cpu / 64] |= 1 << (cpu % 64);
            let llc = (cpu < topology.nr_cpus()).then(|| topology.llc(cpu));
            if let Some(llc) = llc.flatten() {
                let cpus = topology.shared_span(llc);
                cpus.iter().for_each(|other| set[other / 64] |= 1 << (other % 64));
            }
            let value: Vec<u8> = set.iter().flat_map(|word| word.to_ne_bytes()).collect();
            llcs.update(&(cpu as u32).to_ne_bytes(), &value, MapFlags::ANY).map_err(&failed)?;
        }
        let mut recorder =
            Recorder { object, links: Vec::new(), hz: 0, cpus: possible, hears, queues: None };
        recorder.hz = recorder.measure_hz()?;
        Ok(recorder)
    }

    /// Loads the programs that record decisions about queues too, with a ring buffer of so many
    /// bytes of their own.
    ///
    /// # Errors
    /// Returns a [`RecordError`], above all where the kernel has no EEVDF.
    pub fn add_decisions(&mut self, ring: u32) -> Result<(), RecordError> {
        self.queues = Some(QueueRecorder::load(self.cpus, ring)?);
        Ok(())
    }

    /// Returns the kernel's ticks a second.
    pub fn hz(&self) -> u32 {
        self.hz as u32
    }

    fn data(&self, name: &str, key: u32) -> Result<Vec<u64>, RecordError> {
        let map = map_of(&self.object, name)?;
        let value = map.lookup(&key.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(unable(name))?.unwrap_or_default();
        let words = value.chunks_exact(8);
        Ok(words.map(|w| u64::from_ne_bytes(w.try_into().expect("eight bytes"))).collect())
    }

    /// The kernel tells nobody how long a jiffy is, so this function counts the jiffies of a fifth
    /// of a second.
    fn measure_hz(&self) -> Result<u64, RecordError> {
        let look = || -> Result<(u64, u64), RecordError> {
            let mut programs = self.object.progs_mut();
            let program = programs.find(|p| p.name() == "look_at_clocks");
            let program = program.ok_or_else(|| RecordError::Missing("clocks".to_string()))?;
            program.test_run(ProgramInput::default()).map_err(unable("the kernel's clocks"))?;
            let data = self.data(".data.clocks", 0)?;
            Ok((data[0], data[1]))
        };
        let (ns, jiffies) = look()?;
        std::thread::sleep(Duration::from_millis(200));
        let (ns, jiffies) = {
            let (later_ns, later) = look()?;
            (later_ns - ns, later - jiffies)
        };
        let rate = jiffies as f64 * 1e9 / ns as f64;
        let near = |hz: &u64| (rate / *hz as f64).ln().abs();
        let nearest = RATES.into_iter().min_by(|a, b| near(a).total_cmp(&near(b)));
        Ok(nearest.expect("there are four"))
    }

    /// Starts the recording.
    ///
    /// # Errors
    /// Returns a [`RecordError`], with the kernel's words where the kernel refuses.
    pub fn attach(&mut self) -> Result<(), RecordError> {
        // The programs that see which class is asked are at work before and after the one that
        // counts wake-ups, so no wake-up is taken for one of another class because one program was
        // there and the other was not. The one that hears what the kernel asks is at work around all
        // of these.
        let hears = self.hears.then_some("kernel_asks");
        let others = ["fair_begins", "fair_ends", "rt_begins", "rt_ends", "wakes"];
        for name in hears.into_iter().chain(others) {
            let program = self.object.progs_mut().find(|p| p.name() == name);
            let program = program.ok_or(RecordError::NoProgram(name))?;
            let attached = program.attach();
            let what = format!("{name} cannot be attached");
            self.links.push(attached.map_err(unable(&what))?);
        }
        self.queues.as_mut().map_or(Ok(()), QueueRecorder::attach)
    }

    /// Sums the counts of all CPUs; see bpf/recorder.bpf.c, `struct counts`.
    fn counts(&self) -> Result<Footer, RecordError> {
        let mut sum = [0u64; 10];
        for cpu in 0..self.cpus as u32 {
            let counts = self.data("counts", cpu)?;
            sum.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
        let [recorded, dropped, tried, timed, timed_ns, wakings @ ..] = sum;
        let [itself, queued, pinned, held, asked] = wakings;
        let all = u128::from(recorded + dropped);
        Ok(Footer {
            wake_ups: 0,
            dropped,
            cost_ns: (u128::from(timed_ns) * all / u128::from(timed.max(1))) as u64,
            undecided: Undecided {
                itself,
                queued,
                pinned,
                held,
                others: asked.saturating_sub(tried),
            },
            decisions: self.queues.as_ref().map(QueueRecorder::counts).transpose()?,
        })
    }

    /// Stops recording; the records in the ring buffer stay there.
    pub fn detach(&mut self) {
        while self.links.pop().is_some() {}
        self.queues.iter_mut().for_each(QueueRecorder::detach);
    }

    /// Moves records into a file until `done` returns true, which this function asks 100 times a
    /// second; then detaches the programs, and empties the ring buffer. Once a second this function
    /// brings the file up to date.
    ///
    /// # Errors
    /// Returns [`RecordError::Write`] at once, when the file cannot be written.
    pub fn run<W: Write>(
        &mut self,
        topology: &Arc<Topology>,
        writer: Writer<W>,
        mut done: impl FnMut() -> bool,
    ) -> Result<Footer, RecordError> {
        let sink = Rc::new(RefCell::new(Sink::new(topology, writer, self.hz)));
        let mut builder = RingBufferBuilder::new();
        let cpus = self.cpus;
        let (queues, mut queue_links) = self.queues.as_mut().map(QueueRecorder::parts).unzip();
        let (ring, queue_ring) = (
            map_of(&self.object, "ring")?,
            queues.map(|queues| map_of(queues, "ring")).transpose()?,
        );
        let into = sink.clone();
        builder
            .add(&ring, move |bytes| into.borrow_mut().take(bytes, cpus))
            .map_err(unable("the ring buffer"))?;
        if let Some(ring) = &queue_ring {
            let into = sink.clone();
            builder
                .add(ring, move |bytes| into.borrow_mut().decide(bytes))
                .map_err(unable("the ring buffer of decisions"))?;
        }
        let buffer = builder.build().map_err(unable("the ring buffer"))?;
        let mut written = Instant::now();
        loop {
            let last = done();
            if last {
                while self.links.pop().is_some() {}
                while queue_links.as_mut().and_then(|links| links.pop()).is_some() {}
            }
            // The programs wake no reader up: the reader's own wake-ups would be in the recording.
            let consumed = buffer.consume();
            if let Some(error) = sink.borrow_mut().take_error() {
                return Err(error.into());
            }
            consumed.map_err(unable("the ring buffer"))?;
            if last {
                break;
            }
            // A recorder that is killed loses the last second, and not all wake-ups since the last
            // full block.
            if written.elapsed() >= Duration::from_secs(1) {
                sink.borrow_mut().flush()?;
                written = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(buffer);
        let sink = Rc::into_inner(sink).expect("the ring buffer is gone");
        let footer = self.counts()?;
        Ok(sink.into_inner().finish(footer)?)
    }
}

/// A group of a domain, by the CPU and the level of the domain whose own group it is.
pub(crate) struct GroupPlace {
    /// The number of the group's set.
    pub set: usize,
    pub cpu: u32,
    pub level: u32,
}

/// Returns the places of all groups of several CPUs, one for each set, by the sets' numbers. A group
/// of one CPU has that CPU's capacity, which the kernel sets together with the group's.
pub(crate) fn group_places(topology: &Topology) -> Vec<GroupPlace> {
    let mut places = BTreeMap::new();
    for cpu in 0..topology.nr_cpus() {
        for (level, domain) in topology.domains(cpu).enumerate() {
            let mut groups = (0..domain.groups()).map(|i| domain.group(i));
            let own = groups.find(|group| group.contains(cpu));
            if let Some(own) = own.filter(|own| own.weight() > 1) {
                places.entry(own.number()).or_insert(GroupPlace {
                    set: own.number(),
                    cpu: cpu as u32,
                    level: level as u32,
                });
            }
        }
    }
    places.into_values().collect()
}

/// Returns the programs for a kernel. A verifier that does not know `may_goto` (up to 6.8) tells this in
/// its log only, so the release decides.
fn object_for(release: &str) -> &'static [u8] {
    match version_of(release) {
        Some(version) if version < (6, 9) => OLD_OBJECT,
        _ => OBJECT,
    }
}

/// Returns a map of some programs.
fn map_of<'a>(object: &'a Object, name: &str) -> Result<libbpf_rs::Map<'a>, RecordError> {
    let map = object.maps().find(|map| map.name() == name);
    map.ok_or_else(|| RecordError::Missing(format!("map {name}")))
}
