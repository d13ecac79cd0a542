// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures the CPU time that this machine takes to raise, lower and read the counters of overloaded
//! CPUs (policy/include/perch/overload.h), in each layout, by threads that are pinned as far apart as
//! the machine allows.

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Barrier;
use std::thread::scope;
use std::time::{Duration, Instant};

use clap::Parser;
use perch_machine::{Host, Machine};
use perch_policy::{Layout, Memory, Overload, Topology};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

type Failure = Box<dyn Error + Send + Sync>;

/// Measurements of each load; one before them warms up.
const REPETITIONS: usize = 7;
/// Operations between two readings of the clock.
const BATCH: u64 = 1024;
/// The memory of a node's counters, a multiple of every page size.
const REGION: usize = 1 << 16;

/// Measures the cost of the counters of overloaded CPUs on this machine, in each layout.
#[derive(Parser)]
struct Arguments {
    /// Numbers of threads to measure with [default: 1, 2, 4, … and all the CPUs]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    threads: Vec<usize>,
    /// Milliseconds of a measurement
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..10_000))]
    ms: u64,
}

/// What a thread does again and again.
#[derive(Clone, Copy)]
enum Work {
    /// Raises and lowers its CPU's counter.
    Update,
    Read,
    /// Both, as the real-time class does around a switch.
    Switch,
}

/// The loads: what the even threads do and what the odd ones do. The figure is the even ones'.
const LOADS: [(&str, Work, Work); 5] = [
    ("update", Work::Update, Work::Update),
    ("read", Work::Read, Work::Read),
    ("switch", Work::Switch, Work::Switch),
    ("update, others read", Work::Update, Work::Read),
    ("read, others update", Work::Read, Work::Update),
];

/// Memory as the kernel's allocator hands it out: small objects of a node side by side, so that an
/// unpadded counter shares its line with its neighbours. A region belongs to the node of the CPU that
/// touches it first.
struct Slabs {
    /// A CPU of each node.
    cpus: Vec<usize>,
    /// Address and bytes in use of the region of each node. Regions live as long as the process.
    regions: BTreeMap<usize, (usize, usize)>,
}

// SAFETY: each block is cut off a region that stays mapped, at a multiple of `align`; none is handed
// out twice.
unsafe impl Memory for Slabs {
    fn alloc(&mut self, bytes: usize, align: usize, node: usize) -> *mut u8 {
        let cpu = self.cpus[node];
        let region = self.regions.entry(node).or_insert_with(|| (touched_on(cpu), 0));
        let at = region.1.next_multiple_of(align);
        if region.0 == 0 || at + bytes > REGION {
            return null_mut();
        }
        region.1 = at + bytes;
        (region.0 + at) as *mut u8
    }

    unsafe fn free(&mut self, _block: *mut u8, _bytes: usize, _align: usize) {}
}

/// The address of zeroed pages that a thread on this CPU touched first; 0 where there are none.
fn touched_on(cpu: usize) -> usize {
    let touch = || {
        pin(cpu).ok()?;
        let layout = std::alloc::Layout::from_size_align(REGION, REGION).ok()?;
        // SAFETY: the layout is not empty; all of the block is written once.
        let at = unsafe { std::alloc::alloc(layout) };
        // SAFETY: as above.
        (!at.is_null()).then(|| unsafe { at.write_bytes(0, REGION) })?;
        Some(at as usize)
    };
    let address = scope(|scope| scope.spawn(touch).join());
    address.ok().flatten().unwrap_or(0)
}

fn pin(cpu: usize) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
}

/// The CPUs that this program may use: the first of each node, then of each cache, then the others.
fn spread(machine: &Machine, allowed: &CpuSet) -> Vec<usize> {
    let mut seen = BTreeMap::new();
    let mut cpus: Vec<(usize, usize)> = Vec::new();
    for (number, cpu) in machine.cpus.iter().enumerate() {
        if allowed.is_set(number) {
            let mut earlier = |key| {
                let count: &mut usize = seen.entry(key).or_default();
                *count += 1;
                *count - 1
            };
            let (node, llc) = (earlier((0, cpu.node)), earlier((1, cpu.llc)));
            cpus.push((node.min(1) + llc.min(1), number));
        }
    }
    cpus.sort_unstable();
    cpus.into_iter().map(|(_, number)| number).collect()
}

/// CPU nanoseconds for an operation of the even threads, one thread on each of the CPUs.
fn once(
    counters: &Overload,
    cpus: &[usize],
    load: (Work, Work),
    span: Duration,
) -> Result<f64, Failure> {
    let ready = &Barrier::new(cpus.len());
    let work = move |thread: usize, cpu: usize| -> Result<(u64, u64), Failure> {
        let pinned = pin(cpu);
        // A thread that could not be pinned still takes part, or the others would wait for ever.
        ready.wait();
        pinned.map_err(|error| format!("a thread cannot stay on CPU {cpu}: {error}"))?;
        let work = if thread % 2 == 0 { load.0 } else { load.1 };
        let (began, cpu_began, mut operations) = (Instant::now(), cpu_ns(), 0);
        while operations == 0 || began.elapsed() < span {
            for _ in 0..BATCH {
                if !matches!(work, Work::Read) {
                    counters.set(cpu);
                    counters.clear(cpu);
                }
                if !matches!(work, Work::Update) {
                    black_box(counters.read(cpu));
                }
            }
            operations += BATCH;
        }
        Ok((operations, cpu_ns() - cpu_began))
    };
    let (mut operations, mut ns) = (0, 0);
    scope(|scope| {
        let start = |(thread, &cpu)| scope.spawn(move || work(thread, cpu));
        let threads: Vec<_> = cpus.iter().enumerate().map(start).collect();
        for (thread, handle) in threads.into_iter().enumerate() {
            let (did, took) = handle.join().expect("no thread panics")?;
            operations += if thread % 2 == 0 { did } else { 0 };
            ns += if thread % 2 == 0 { took } else { 0 };
        }
        assert!(counters.counts().iter().all(|&count| count == 0), "a counter is left raised");
        Ok(ns as f64 / operations as f64)
    })
}

/// CPU time of this thread.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let machine = Host::detect(Path::new("/"))?.with_kernel_numbers()?;
    let cpus = spread(&machine, &sched_getaffinity(None)?);
    let &any = cpus.first().ok_or("none of the machine's CPUs may be used here")?;
    let topology = Topology::new(&machine);
    // No thread runs on a node without an allowed CPU, so that node's counter may lie anywhere.
    let of_node = |node| cpus.iter().copied().find(|&cpu| machine.cpus[cpu].node as usize == node);
    let nodes: Vec<usize> = (0..machine.nodes()).map(|node| of_node(node).unwrap_or(any)).collect();
    let mut sizes = arguments.threads;
    if sizes.is_empty() {
        let doubled = std::iter::successors(Some(1), |threads| Some(threads * 2));
        sizes.extend(doubled.take_while(|&threads| threads < cpus.len()).chain([cpus.len()]));
    }
    println!(
        "CPU ns for an operation, median (least to most) of {REPETITIONS}; {} nodes",
        nodes.len()
    );
    for threads in sizes {
        let place = cpus.get(..threads).filter(|place| !place.is_empty());
        let most = cpus.len();
        let place = place
            .ok_or_else(|| format!("--threads {threads}: expected 1 to {most}, the CPUs here"))?;
        for layout in Layout::ALL {
            let memory = Slabs { cpus: nodes.clone(), regions: BTreeMap::new() };
            let counters = Overload::new_in(layout, layout.padded(), &topology, Box::new(memory))?;
            for (name, even, odd) in LOADS {
                let once =
                    |_| once(&counters, place, (even, odd), Duration::from_millis(arguments.ms));
                let mut ns =
                    (0..=REPETITIONS).map(once).skip(1).collect::<Result<Vec<f64>, Failure>>()?;
                ns.sort_by(f64::total_cmp);
                let (least, median, most) = (ns[0], ns[REPETITIONS / 2], ns[REPETITIONS - 1]);
                let layout = layout.name();
                println!(
                    "{threads:4} threads  {layout:11} {name:20} {median:7.1} ({least:.1} to {most:.1})"
                );
            }
        }
    }
    Ok(())
}
