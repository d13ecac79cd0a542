// SPDX-License-Identifier: GPL-2.0-only
//! The recorder: its programs in the kernel, and what they hand out on its way into a file.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, RingBufferBuilder};
use perch_policy::{CpuMask, Topology, Wake};

use crate::format::{Footer, Writer};
use crate::moment::{Class, CpuRow, Group, GroupRow, Row, Task, TaskRow, WakeUp};
use crate::raw::{self, RawCpu, RawTask, RawWake};

/// bpf/recorder.bpf.c, compiled by build.rs.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.bpf.o"));

/// Why nothing can be recorded, or no more.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The kernel does not let it.
    #[error("{0}")]
    Unable(String),
    /// The file cannot be written any more; what was written before is good.
    #[error("cannot write the recording: {0}; what was written before is good")]
    Write(#[from] std::io::Error),
}

/// Rates of ticks that kernels are built with.
const RATES: [u64; 4] = [100, 250, 300, 1000];

/// The recorder's programs in the kernel, at work.
pub struct Recorder {
    object: Object,
    links: Vec<Link>,
    hz: u64,
    cpus: usize,
}

fn unable(what: &str) -> impl Fn(libbpf_rs::Error) -> RecordError {
    let what = what.to_string();
    move |error| RecordError::Unable(format!("{what}: {error:#}"))
}

impl Recorder {
    /// Loads the programs, with a ring buffer of so many bytes (a power of two, at least a page);
    /// `possible` is one more than the highest number that a CPU may have. Nothing is recorded yet.
    ///
    /// # Errors
    /// [`RecordError::Unable`], with the kernel's words.
    pub fn load(possible: usize, ring: u32) -> Result<Recorder, RecordError> {
        if possible > raw::MAX_CPUS {
            return Err(RecordError::Unable(format!(
                "{possible} CPUs: the recorder takes up to {}",
                raw::MAX_CPUS
            )));
        }
        let failed = unable("the recorder's programs");
        let mut open = ObjectBuilder::default()
            .name("perch_record")
            .and_then(|builder| builder.open_memory(OBJECT))
            .map_err(&failed)?;
        for mut map in open.maps_mut() {
            match map.name().to_str() {
                Some("places") => map.set_max_entries(possible as u32).map_err(&failed)?,
                Some("ring") => map.set_max_entries(ring).map_err(&failed)?,
                Some(name) if name.ends_with(".rodata") => {
                    if let Some(data) = map.initial_value_mut() {
                        data[..4].copy_from_slice(&(possible as u32).to_ne_bytes());
                    }
                }
                _ => {}
            }
        }
        let object = open.load().map_err(&failed)?;
        let mut recorder = Recorder {
            object,
            links: Vec::new(),
            hz: 0,
            cpus: possible,
        };
        recorder.hz = recorder.measure_hz()?;
        Ok(recorder)
    }

    /// Ticks a second.
    pub fn hz(&self) -> u32 {
        self.hz as u32
    }

    fn data(&self, name: &str) -> Result<Vec<u64>, RecordError> {
        let found = self.object.maps().find(|map| map.name() == name);
        let map = found.ok_or_else(|| RecordError::Unable(format!("no map {name}")))?;
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(unable(name))?.unwrap_or_default();
        let words = value.chunks_exact(8);
        Ok(words
            .map(|w| u64::from_ne_bytes(w.try_into().expect("eight bytes")))
            .collect())
    }

    /// Nobody says how long a jiffy is; a fifth of a second of them does.
    fn measure_hz(&self) -> Result<u64, RecordError> {
        let look = || -> Result<(u64, u64), RecordError> {
            let mut programs = self.object.progs_mut();
            let program = programs.find(|p| p.name() == "look_at_clocks");
            let program = program.ok_or_else(|| RecordError::Unable("no clocks".to_string()))?;
            program
                .test_run(ProgramInput::default())
                .map_err(unable("the kernel's clocks"))?;
            let data = self.data(".data.clocks")?;
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

    /// Records from now on.
    ///
    /// # Errors
    /// [`RecordError::Unable`], with the kernel's words.
    pub fn attach(&mut self) -> Result<(), RecordError> {
        let names = ["fair_begins", "fair_ends", "rt_begins", "rt_ends"];
        for program in self.object.progs_mut() {
            if names.iter().any(|name| program.name() == *name) {
                let what = format!("{} cannot be attached", program.name().to_string_lossy());
                self.links.push(program.attach().map_err(unable(&what))?);
            }
        }
        Ok(())
    }

    /// Stops recording; what is in the ring buffer stays there.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Moves what was recorded into a file until `done` says so, which is asked 100 times a
    /// second; then detaches, and empties the ring buffer.
    ///
    /// # Errors
    /// [`RecordError::Write`] at once, when the file cannot be written.
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
        let ring = ring.ok_or_else(|| RecordError::Unable("no ring".to_string()))?;
        let into = sink.clone();
        builder
            .add(ring, move |bytes| into.borrow_mut().take(bytes, cpus))
            .map_err(unable("the ring buffer"))?;
        let buffer = builder.build().map_err(unable("the ring buffer"))?;
        loop {
            let last = done();
            if last {
                self.links.clear();
            }
            // The programs wake nobody up: their reader's own wake-ups would be in the recording.
            let consumed = buffer.consume();
            if let Some(error) = sink.borrow_mut().error.take() {
                return Err(error.into());
            }
            consumed.map_err(unable("the ring buffer"))?;
            if last {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(buffer);
        drop(maps);
        let counts = self.data(".data.counts")?;
        let sink = Rc::into_inner(sink).expect("the ring buffer is gone");
        let footer = Footer {
            wake_ups: 0,
            dropped: counts[1],
            cost_ns: counts[2],
        };
        let (footer, mut out) = sink.into_inner().writer.finish(footer)?;
        out.flush()?;
        Ok(footer)
    }
}

/// Turns records into rows.
struct Sink<W: Write> {
    writer: Writer<W>,
    error: Option<std::io::Error>,
    hz: u64,
    cpus: Vec<Row<CpuRow>>,
    groups: Vec<Row<GroupRow>>,
    /// The first CPU of each group.
    firsts: Vec<usize>,
    wake_up: WakeUp,
}

impl<W: Write> Sink<W> {
    fn new(topology: &Arc<Topology>, writer: Writer<W>, hz: u64) -> Sink<W> {
        let shared = 0..topology.nr_shared();
        let first = |g| topology.shared_span(g).iter().next().unwrap_or(0);
        Sink {
            writer,
            error: None,
            hz,
            cpus: vec![Row::default(); topology.nr_cpus()],
            groups: vec![Row::default(); topology.nr_shared()],
            firsts: shared.map(first).collect(),
            wake_up: WakeUp::default(),
        }
    }

    /// Takes a record. Returns not 0 to end it all.
    fn take(&mut self, bytes: &[u8], possible: usize) -> i32 {
        let Some((wake, cpus)) = raw::parse(bytes, possible) else {
            return 0;
        };
        for (number, cpu) in cpus.enumerate() {
            for (group, &first) in self.groups.iter_mut().zip(&self.firsts) {
                if first == number {
                    group[Group::NrIdleScan] = cpu.nr_idle_scan.into();
                    group[Group::IdleCores] = cpu.idle_cores.into();
                }
            }
            if let Some(row) = self.cpus.get_mut(number) {
                *row = cpu_row(&cpu);
            }
        }
        match self.write(&wake) {
            Ok(()) => 0,
            Err(error) => {
                self.error = Some(error);
                -1
            }
        }
    }

    fn write(&mut self, wake: &RawWake) -> std::io::Result<()> {
        let n = self.cpus.len();
        if [wake.this_cpu, wake.prev_cpu, wake.chosen]
            .iter()
            .any(|&cpu| cpu as usize >= n)
        {
            // A CPU that came after the machine was looked at.
            return Ok(());
        }
        let w = &mut self.wake_up;
        w.at_ns = wake.at_ns;
        w.class = match wake.class {
            0 => Class::Fair,
            _ => Class::RealTime,
        };
        w.flags = flags(wake);
        (w.this_cpu, w.prev_cpu, w.chosen) = (wake.this_cpu, wake.prev_cpu, wake.chosen);
        (w.waker, w.wakee) = (wake.waker.pid, wake.wakee.pid);
        let waker = task_row(&wake.waker, wake, self.hz, n);
        let wakee = task_row(&wake.wakee, wake, self.hz, n);
        let mut affinity = None;
        if (wake.nr_allowed as usize) < n {
            let words = &wake.allowed;
            let allowed = (0..n).filter(|&cpu| words[cpu / 64] >> (cpu % 64) & 1 != 0);
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

/// `WF_EXEC`, `WF_FORK`, `WF_SYNC` and `WF_CURRENT_CPU` (6.16 to 7.2), as policy/ has them.
fn flags(wake: &RawWake) -> u32 {
    let has = |kernel: u32| wake.wake_flags & kernel != 0;
    let wake = Wake {
        exec: has(0x02),
        fork: has(0x04),
        sync: has(0x10),
        current: has(0x40),
        // An idle task does not wake others by itself: an interrupt does.
        in_task: wake.waker.pid != 0,
        ..Wake::default()
    };
    wake.flags()
}

fn cpu_row(cpu: &RawCpu) -> Row<CpuRow> {
    Row([
        cpu.idle.into(),
        cpu.sched_idle.into(),
        cpu.nr_running.into(),
        cpu.nr_delayed.into(),
        cpu.load.into(),
        cpu.runnable.into(),
        cpu.util.into(),
        cpu.capacity.into(),
        cpu.curr_load.into(),
        cpu.idle_exit_ns.into(),
        cpu.idle_since_ns,
    ])
}

fn task_row(task: &RawTask, wake: &RawWake, hz: u64, cpus: usize) -> Row<TaskRow> {
    let mut row = Row::default();
    row[Task::LastWakee] = task.last_wakee.into();
    row[Task::WakeeFlips] = task.wakee_flips.into();
    // Jiffies since then, before now.
    let ago = wake.jiffies.wrapping_sub(task.flip_decay_at);
    row[Task::FlipDecayAtNs] = wake
        .at_ns
        .saturating_sub(ago.saturating_mul(1_000_000_000 / hz));
    let recent = u64::from(task.recent_cpu);
    row[Task::RecentCpu] = if recent < cpus as u64 { recent + 1 } else { 0 };
    row[Task::Load] = task.load.into();
    row[Task::Util] = task.util.into();
    row[Task::UclampMin] = task.uclamp_min.into();
    row[Task::UclampMax] = task.uclamp_max.into();
    row[Task::Flags] = task.flags.into();
    row[Task::Process] = task.tgid.into();
    row
}
