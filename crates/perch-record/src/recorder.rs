// SPDX-License-Identifier: GPL-2.0-or-later
//! The recorder: it loads its programs into the kernel, and writes the records that they hand out
//! into a file.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, RingBufferBuilder};
use perch_policy::{CpuMask, Topology, Wake};

use crate::format::{Footer, Undecided, Writer};
use crate::moment::{
    Class, Cpu, CpuRow, Group, GroupRow, Row, Task, TaskRow, UNSEEN_CONTEXT, UNSEEN_ROWS, WakeUp,
};
use crate::raw::{self, RawCpu, RawNear, RawTask, RawWake, Record, Set};

/// The programs of bpf/recorder.bpf.c, which build.rs compiles.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.bpf.o"));

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
}

fn unable(what: &str) -> impl Fn(libbpf_rs::Error) -> RecordError {
    let what = what.to_string();
    move |source| RecordError::Kernel {
        what: what.clone(),
        source,
    }
}

impl Recorder {
    /// Loads the programs, with a ring buffer of so many bytes (a power of two, at least a page);
    /// `possible` is one more than the highest number that a CPU may have. The programs record
    /// nothing yet.
    ///
    /// # Errors
    /// Returns a [`RecordError`], with the kernel's words where the kernel refuses.
    pub fn load(topology: &Topology, possible: usize, ring: u32) -> Result<Recorder, RecordError> {
        let unequal = (0..topology.nr_cpus()).any(|cpu| topology.asym(cpu).is_some());
        let words = possible.div_ceil(64);
        if possible > raw::MAX_CPUS {
            return Err(RecordError::Cpus(possible));
        }
        let failed = unable("the recorder's programs");
        let mut open = ObjectBuilder::default()
            .name("perch_record")
            .and_then(|builder| builder.open_memory(OBJECT))
            .map_err(&failed)?;
        for mut map in open.maps_mut() {
            match map.name().to_str() {
                Some("places") => {
                    map.set_max_entries(possible as u32).map_err(&failed)?;
                    let size = raw::most(possible) as u32;
                    map.set_value_size(size).map_err(&failed)?;
                }
                Some("llcs") => {
                    map.set_max_entries(possible as u32).map_err(&failed)?;
                    map.set_value_size(8 * words as u32).map_err(&failed)?;
                }
                Some("counts") => map.set_max_entries(possible as u32).map_err(&failed)?,
                Some("ring") => map.set_max_entries(ring).map_err(&failed)?,
                Some(name) if name.ends_with(".rodata") => {
                    if let Some(data) = map.initial_value_mut() {
                        data[..4].copy_from_slice(&(possible as u32).to_ne_bytes());
                        data[4..8].copy_from_slice(&u32::from(unequal).to_ne_bytes());
                    }
                }
                _ => {}
            }
        }
        let object = open.load().map_err(&failed)?;
        let llcs = object.maps().find(|map| map.name() == "llcs");
        let llcs = llcs.ok_or_else(|| RecordError::Missing("map llcs".to_string()))?;
        for cpu in 0..possible {
            let mut set = vec![0u64; words];
            set[cpu / 64] |= 1 << (cpu % 64);
            let llc = (cpu < topology.nr_cpus()).then(|| topology.llc(cpu));
            if let Some(llc) = llc.flatten() {
                let cpus = topology.shared_span(llc);
                cpus.iter()
                    .for_each(|other| set[other / 64] |= 1 << (other % 64));
            }
            let value: Vec<u8> = set.iter().flat_map(|word| word.to_ne_bytes()).collect();
            llcs.update(&(cpu as u32).to_ne_bytes(), &value, MapFlags::ANY)
                .map_err(&failed)?;
        }
        let mut recorder = Recorder {
            object,
            links: Vec::new(),
            hz: 0,
            cpus: possible,
        };
        recorder.hz = recorder.measure_hz()?;
        Ok(recorder)
    }

    /// Returns the kernel's ticks a second.
    pub fn hz(&self) -> u32 {
        self.hz as u32
    }

    fn data(&self, name: &str, key: u32) -> Result<Vec<u64>, RecordError> {
        let found = self.object.maps().find(|map| map.name() == name);
        let map = found.ok_or_else(|| RecordError::Missing(format!("map {name}")))?;
        let value = map.lookup(&key.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(unable(name))?.unwrap_or_default();
        let words = value.chunks_exact(8);
        Ok(words
            .map(|w| u64::from_ne_bytes(w.try_into().expect("eight bytes")))
            .collect())
    }

    /// The kernel tells nobody how long a jiffy is, so this function counts the jiffies of a fifth
    /// of a second.
    fn measure_hz(&self) -> Result<u64, RecordError> {
        let look = || -> Result<(u64, u64), RecordError> {
            let mut programs = self.object.progs_mut();
            let program = programs.find(|p| p.name() == "look_at_clocks");
            let program = program.ok_or_else(|| RecordError::Missing("clocks".to_string()))?;
            program
                .test_run(ProgramInput::default())
                .map_err(unable("the kernel's clocks"))?;
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
        // there and the other was not.
        for name in ["fair_begins", "fair_ends", "rt_begins", "rt_ends", "wakes"] {
            let program = self.object.progs_mut().find(|p| p.name() == name);
            let program = program.ok_or(RecordError::NoProgram(name))?;
            let attached = program.attach();
            let what = format!("{name} cannot be attached");
            self.links.push(attached.map_err(unable(&what))?);
        }
        Ok(())
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
        })
    }

    /// Stops recording; the records in the ring buffer stay there.
    pub fn detach(&mut self) {
        while self.links.pop().is_some() {}
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
        let maps: Vec<_> = self.object.maps().collect();
        let ring = maps.iter().find(|map| map.name() == "ring");
        let ring = ring.ok_or_else(|| RecordError::Missing("ring".to_string()))?;
        let into = sink.clone();
        builder
            .add(ring, move |bytes| into.borrow_mut().take(bytes, cpus))
            .map_err(unable("the ring buffer"))?;
        let buffer = builder.build().map_err(unable("the ring buffer"))?;
        let mut written = Instant::now();
        loop {
            let last = done();
            if last {
                while self.links.pop().is_some() {}
            }
            // The programs wake no reader up: the reader's own wake-ups would be in the recording.
            let consumed = buffer.consume();
            if let Some(error) = sink.borrow_mut().error.take() {
                return Err(error.into());
            }
            consumed.map_err(unable("the ring buffer"))?;
            if last {
                break;
            }
            // A recorder that is killed loses the last second, and not all wake-ups since the last
            // full block.
            if written.elapsed() >= Duration::from_secs(1) {
                sink.borrow_mut().writer.flush()?;
                written = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(buffer);
        drop(maps);
        let sink = Rc::into_inner(sink).expect("the ring buffer is gone");
        let footer = self.counts()?;
        let (footer, mut out) = sink.into_inner().writer.finish(footer)?;
        out.flush()?;
        Ok(footer)
    }
}

/// Turns records into rows. A value of a CPU that a record lacks keeps its last known value, which
/// takes no room in the file, and the wake-up says so.
struct Sink<W: Write> {
    topology: Arc<Topology>,
    writer: Writer<W>,
    error: Option<std::io::Error>,
    hz: u64,
    cpus: Vec<Row<CpuRow>>,
    groups: Vec<Row<GroupRow>>,
    wake_up: WakeUp,
}

impl<W: Write> Sink<W> {
    fn new(topology: &Arc<Topology>, writer: Writer<W>, hz: u64) -> Sink<W> {
        Sink {
            topology: topology.clone(),
            writer,
            error: None,
            hz,
            cpus: vec![Row::default(); topology.nr_cpus()],
            groups: vec![Row::default(); topology.nr_shared()],
            wake_up: WakeUp::default(),
        }
    }

    /// Takes a record. Returns a number other than 0 to stop the reading of the ring buffer.
    fn take(&mut self, bytes: &[u8], possible: usize) -> i32 {
        let Some(record) = Record::parse(bytes, possible) else {
            return 0;
        };
        let wake = &record.wake;
        let sides = [wake.this_cpu, wake.prev_cpu].map(|cpu| cpu as usize);
        let n = self.cpus.len();
        if sides
            .into_iter()
            .chain([wake.chosen as usize])
            .any(|cpu| cpu >= n)
        {
            // The CPU came after the recorder looked at the machine.
            return 0;
        }
        self.look(&record, sides);
        match self.write(&record) {
            Ok(()) => 0,
            Err(error) => {
                self.error = Some(error);
                -1
            }
        }
    }

    /// Writes the CPUs' rows as they were when the choice began and, where they differ, when it was
    /// made.
    fn look(&mut self, record: &Record, sides: [usize; 2]) {
        let wake = &record.wake;
        let near = |row: &mut Row<CpuRow>, cpu: usize, near: &[RawNear; 2]| {
            if let Some(side) = sides.iter().position(|&side| side == cpu) {
                row[Cpu::Load] = near[side].load.into();
                row[Cpu::NrRunning] = near[side].nr_running.into();
                row[Cpu::NrDelayed] = near[side].nr_delayed.into();
            }
        };
        self.wake_up.later.clear();
        for (cpu, row) in self.cpus.iter_mut().enumerate() {
            if !record.has(Set::Seen, cpu) {
                continue;
            }
            row[Cpu::Idle] = record.has(Set::Idle, cpu).into();
            row[Cpu::SchedIdle] = record.has(Set::SchedIdleOnly, cpu).into();
            row[Cpu::Capacity] = record.capacity(cpu).into();
            let most = u64::from(self.topology.capacity(cpu));
            if let Some(seen) = record.row(cpu, false) {
                whole(row, &seen, wake, cpu, most);
            }
            near(row, cpu, &wake.near);
            if cpu == sides[0] {
                row[Cpu::CurrLoad] = wake.waker.load.into();
            }
            let mut later = *row;
            later[Cpu::Idle] = record.has(Set::IdleLater, cpu).into();
            later[Cpu::SchedIdle] = record.has(Set::SchedIdleOnlyLater, cpu).into();
            if let Some(seen) = record.row(cpu, true) {
                whole(&mut later, &seen, wake, cpu, most);
            }
            near(&mut later, cpu, &wake.later);
            if later != *row {
                self.wake_up.later.push((cpu as u32, later));
            }
        }
        for (cpu, shared) in sides.into_iter().zip(&wake.shared) {
            let places = [
                (self.topology.llc(cpu), shared.llc_idle_scan),
                (self.topology.asym(cpu), shared.asym_idle_scan),
            ];
            for (group, idle_scan) in places {
                if let Some(row) = group.and_then(|group| self.groups.get_mut(group)) {
                    row[Group::NrIdleScan] = idle_scan.into();
                    row[Group::IdleCores] = shared.idle_cores.into();
                }
            }
        }
    }

    fn write(&mut self, record: &Record) -> std::io::Result<()> {
        let (n, wake) = (self.cpus.len(), &record.wake);
        let w = &mut self.wake_up;
        w.at_ns = wake.at_ns;
        w.class = match wake.class {
            0 => Class::Fair,
            _ => Class::RealTime,
        };
        w.flags = flags(wake);
        w.unseen = 0;
        if wake.rows == 0 {
            w.unseen |= UNSEEN_ROWS;
        }
        if wake.context & raw::CONTEXT_KNOWN == 0 {
            w.unseen |= UNSEEN_CONTEXT;
        }
        (w.this_cpu, w.prev_cpu, w.chosen) = (wake.this_cpu, wake.prev_cpu, wake.chosen);
        (w.waker, w.wakee) = (wake.waker.pid, wake.wakee.pid);
        let waker = task_row(&wake.waker, wake, self.hz, n);
        let wakee = task_row(&wake.wakee, wake, self.hz, n);
        let mut affinity = None;
        if (wake.nr_allowed as usize) < n {
            let allowed = (0..n).filter(|&cpu| record.has(Set::Allowed, cpu));
            affinity = Some(CpuMask::of(n, allowed));
        }
        self.writer.add(
            &self.wake_up,
            [&waker, &wakee],
            affinity.as_ref(),
            &self.cpus,
            &self.groups,
        )
    }
}

/// Returns `WF_EXEC`, `WF_FORK`, `WF_SYNC` and `WF_CURRENT_CPU` (6.16 to 7.2) in the form of
/// policy/.
fn flags(wake: &RawWake) -> u32 {
    let has = |kernel: u32| wake.wake_flags & kernel != 0;
    let wake = Wake {
        exec: has(0x02),
        fork: has(0x04),
        // A waker that exits does not come back to its CPU, which it leaves free.
        sync: has(0x10) && wake.waker.flags & raw::EXITING == 0,
        current: has(0x40),
        in_task: wake.context & raw::IN_TASK != 0,
        ..Wake::default()
    };
    wake.flags()
}

/// Fills in every figure by which the kernel places a task on fork, on exec and among unequal CPUs.
/// The utilisation of a CPU is at most its capacity (`most`). A task that execs leaves a different
/// amount in each of the sums, and the policy has one number for it: there the row has the sums
/// without the task, and the task's utilisation.
fn whole(row: &mut Row<CpuRow>, cpu: &RawCpu, wake: &RawWake, number: usize, most: u64) {
    let [mut runnable, mut average, mut estimate] = [cpu.runnable, cpu.util_avg, cpu.util_est];
    let execs = wake.wake_flags & 0x02 != 0 && number == wake.prev_cpu as usize;
    let mut own = 0;
    if execs {
        let task = &wake.wakee;
        runnable = runnable.saturating_sub(task.runnable.into());
        average = average.saturating_sub(task.util_avg.into());
        estimate = estimate.saturating_sub(task.util_est.into());
        own = u64::from(task.util_avg.max(task.util_est));
    }
    row[Cpu::NrRunning] = cpu.nr_running.into();
    row[Cpu::NrDelayed] = cpu.nr_delayed.into();
    row[Cpu::Load] = cpu.load.into();
    row[Cpu::Runnable] = u64::from(runnable) + own;
    row[Cpu::Util] = u64::from(average.max(estimate)).min(most) + own;
    row[Cpu::IdleExitNs] = cpu.idle_exit_ns.into();
    row[Cpu::IdleSinceNs] = cpu.idle_since_ns;
}

fn task_row(task: &RawTask, wake: &RawWake, hz: u64, cpus: usize) -> Row<TaskRow> {
    let mut row = Row::default();
    row[Task::LastWakee] = task.last_wakee.into();
    row[Task::WakeeFlips] = task.wakee_flips.into();
    // The number of jiffies between then and now.
    let ago = wake.jiffies.wrapping_sub(task.flip_decay_at);
    row[Task::FlipDecayAtNs] = wake
        .at_ns
        .saturating_sub(ago.saturating_mul(1_000_000_000 / hz));
    let recent = u64::from(task.recent_cpu);
    row[Task::RecentCpu] = if recent < cpus as u64 { recent + 1 } else { 0 };
    row[Task::Load] = task.load.into();
    row[Task::Util] = task.util_avg.max(task.util_est).into();
    row[Task::UclampMin] = task.uclamp_min.into();
    row[Task::UclampMax] = task.uclamp_max.into();
    row[Task::Flags] = (task.flags & !raw::EXITING).into();
    row[Task::PreferredNode] = u64::try_from(task.numa_node).map_or(0, |node| node + 1);
    row[Task::Process] = task.tgid.into();
    row
}
