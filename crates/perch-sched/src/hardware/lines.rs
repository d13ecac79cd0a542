// SPDX-License-Identifier: GPL-2.0-or-later
//! Contended cache lines of the kernel: those of the root domain and of what it points to, which
//! CPUs of all nodes read and write.
//!
//! A line is modified in one CPU's cache, or shared by some CPUs, or in no cache. The cost of an
//! access depends on this:
//!
//! - A CPU that has the line has an L1 hit. A CPU that is alone with its lines never pays more than
//!   this.
//! - A CPU that loads a line that another CPU has modified pays for the transfer from there. `perf`
//!   calls this HITM, local or remote by the node. Both CPUs share the line from then on.
//! - A CPU that loads a line that is shared has an LLC hit if its LLC has a copy. Otherwise it pays
//!   for the transfer from the CPU that got the line last.
//! - A CPU that stores to a line that it does not own pays for the longer of two ways: to the CPU
//!   that has the line, and to the farthest sharer, because all other copies are invalidated.
//!
//! Transfers to a new owner, and those from an old one, go one after the other: a CPU that asks
//! while the line is on its way waits for all transfers that came before. So an access costs the
//! more, the more CPUs have dirtied the line since this one held it, as far as their transfers are
//! still to come: each CPU ahead in the queue is a transfer. The order is first come, first served;
//! a real interconnect favours its neighbours. An atomic instruction waits for its line. A plain
//! store does not, because it leaves by the store buffer, but its line is on the way all the same.
//!
//! The model leaves out speculation and prefetching, E and F states, snoop filters, the home
//! agent's own queue, lines that L1 or L2 lose to other data, and other data on the same lines.

mod place;

use perch_machine::{ContendedLine, Machine};
use perch_policy::Layout;

use super::Costs;
use super::c2c::{C2c, Row};
pub use place::{Access, Field, Layouts, Symbol};
use place::{LEVELS, Map};

/// Stands for no CPU.
const NONE: u32 = u32::MAX;

/// The least time of a load that `perf` samples, in cycles: its default for this report
/// (`--ldlat`).
const LEAST_CYCLES: u64 = 30;

/// One cache line.
#[derive(Clone, Debug)]
struct Line {
    /// The CPU that has the line modified, or `NONE`.
    owner: u32,
    /// The CPU that got the line last, or `NONE`.
    from: u32,
    /// The CPUs that have a copy, and the LLCs that have one, in words of 64 bits.
    sharers: Box<[u64]>,
    llcs: Box<[u64]>,
    /// The number of CPUs that have a copy. The CPU that got the line last is always one of them.
    nr_sharers: u32,
    /// The spans of time in which the line is on its way or held, in order, without those that are
    /// past. A CPU that waits for another line first asks for this one later, so there may be gaps.
    busy: Vec<(u64, u64)>,
}

impl Line {
    /// Returns the first moment from `at_ns` on at which the line is not on its way for `for_ns`
    /// nanoseconds.
    fn gap(&self, at_ns: u64, for_ns: u64) -> u64 {
        let mut begin_ns = at_ns;
        for &(from_ns, to_ns) in &self.busy {
            if begin_ns + for_ns <= from_ns {
                break;
            }
            begin_ns = begin_ns.max(to_ns);
        }
        begin_ns
    }

    /// Notes that the line is on its way or held from `from_ns` to `to_ns`.
    fn occupy(&mut self, now_ns: u64, from_ns: u64, to_ns: u64) {
        self.busy.retain(|&(_, end_ns)| end_ns > now_ns);
        let at = self.busy.partition_point(|&(begin_ns, _)| begin_ns < from_ns);
        self.busy.insert(at, (from_ns, to_ns));
    }

    /// Notes that `cpu`, which is in `llc`, got a copy.
    fn share(&mut self, cpu: usize, llc: u32) {
        self.nr_sharers += u32::from(!has(&self.sharers, cpu));
        self.from = cpu as u32;
        set(&mut self.sharers, cpu);
        set(&mut self.llcs, llc as usize);
    }

    /// Notes that all copies are invalidated.
    fn clear(&mut self) {
        match self.nr_sharers {
            0 => {}
            1 => self.sharers[self.from as usize / 64] = 0,
            _ => self.sharers.fill(0),
        }
        self.llcs.fill(0);
        self.nr_sharers = 0;
    }
}

/// The place at which an access found its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Own,
    Modified { remote: bool },
    Clean,
}

/// The contended lines of a machine: the CPUs that have them, and the counts of their accesses.
#[derive(Debug)]
pub struct Lines {
    figures: ContendedLine,
    frequency_mhz: u32,
    memory_ns: u64,
    map: Map,
    lines: Vec<Line>,
    /// The node of each CPU, and its LLC.
    of: Vec<(u32, u32)>,
    /// The CPUs of each LLC; any of them represents it.
    llcs: Vec<Box<[u64]>>,
    /// The counts, by field and symbol.
    rows: Vec<Row>,
    /// The loads of cpupri's counters that found their line in the CPU's own cache in no time worth a
    /// sample, and that `rows` has not: by level, how many more than at the level below.
    swept: [u64; LEVELS + 1],
    /// The CPU and the moment of the last access, and the time that it took together with those
    /// just before it: accesses of one event follow one another.
    last: (u32, u64, u64),
    /// The current time of the run.
    now_ns: u64,
}

impl Lines {
    /// Returns the lines of a kernel with these layouts; no CPU has any of them yet. Returns `None`
    /// if the machine has no figures for them.
    pub fn new(machine: &Machine, layouts: Layouts) -> Option<Lines> {
        let figures = machine.hardware.contended_line?;
        let n = machine.cpus.len();
        let words = n.div_ceil(64);
        let nr_llcs = machine.cpus.iter().map(|c| c.llc as usize + 1).max()?;
        let nodes = machine.cpus.iter().map(|c| c.node as usize + 1).max()?;
        let declared = machine.cpus.iter().map(|c| c.declared_llc as usize + 1);
        let declared = declared.max()?;
        let mut llcs = vec![vec![0; words].into_boxed_slice(); nr_llcs];
        for (cpu, c) in machine.cpus.iter().enumerate() {
            set(&mut llcs[c.llc as usize], cpu);
        }
        let counters = match layouts.counters {
            Layout::Shared => 1,
            Layout::Node | Layout::NodePadded => nodes,
            Layout::LlcPadded => declared,
        };
        let bits = 8 * machine.hardware.line_bytes as usize;
        let map = Map::new(layouts, counters, n.div_ceil(bits), bits);
        let line = Line {
            owner: NONE,
            from: NONE,
            sharers: vec![0; words].into(),
            llcs: vec![0; nr_llcs.div_ceil(64)].into(),
            nr_sharers: 0,
            busy: Vec::new(),
        };
        Some(Lines {
            figures,
            frequency_mhz: machine.hardware.frequency_mhz,
            memory_ns: machine.hardware.memory_ns.0.into(),
            lines: vec![line; map.nr_lines()],
            of: machine.cpus.iter().map(|c| (c.node, c.llc)).collect(),
            llcs,
            rows: vec![Row::default(); map.nr_fields() * Symbol::ALL.len()],
            swept: [0; LEVELS + 1],
            map,
            last: (NONE, 0, 0),
            now_ns: 0,
        })
    }

    /// A CPU reads or writes a field at `now_ns`, or, if it made other accesses at this very
    /// moment, when those are done. Returns for how many nanoseconds the CPU waits.
    ///
    /// # Panics
    /// The kernel has no such counter.
    pub fn access(
        &mut self,
        costs: &Costs,
        now_ns: u64,
        cpu: usize,
        symbol: Symbol,
        field: Field,
        access: Access,
    ) -> u64 {
        let spent_ns = self.spent_ns(cpu, now_ns);
        self.now_ns = now_ns;
        let row = self.row(symbol, field);
        let mut took_ns = 0;
        for line in self.map.lines(field, access, cpu) {
            let at_ns = now_ns + spent_ns + took_ns;
            took_ns += match access {
                Access::Load => self.load(costs, at_ns, cpu, line, row),
                Access::Store => self.store(costs, at_ns, cpu, line, row, field.is_atomic()),
            };
        }
        self.last = (cpu as u32, now_ns, spent_ns + took_ns);
        took_ns
    }

    /// A CPU reads the counters of cpupri's levels from `first` to `last`, one after the other, as by as
    /// many calls of [`Lines::access`]. A search reads up to 99 of them, four to a line: nearly all are in
    /// the CPU's own cache.
    ///
    /// # Panics
    /// There is no such level.
    pub fn load_levels(
        &mut self,
        costs: &Costs,
        now_ns: u64,
        cpu: usize,
        first: u8,
        last: u8,
    ) -> u64 {
        let spent_ns = self.spent_ns(cpu, now_ns);
        self.now_ns = now_ns;
        let hit_ns = u64::from(self.figures.hit_ns);
        let (mut took_ns, mut level) = (0, first);
        while level <= last {
            let field = Field::CpupriCount(level);
            let line = self.map.lines(field, Access::Load, cpu).start;
            if has(&self.lines[line].sharers, cpu) && !self.is_sampled(hit_ns) {
                let end = Map::last_level(line).min(last);
                let levels = end + 1 - level;
                took_ns += hit_ns * u64::from(levels);
                let [begin, end] = [level, end + 1].map(usize::from);
                self.swept[begin] = self.swept[begin].wrapping_add(1);
                self.swept[end] = self.swept[end].wrapping_sub(1);
                level += levels;
            } else {
                let row = self.row(Symbol::CpupriFind, field);
                took_ns += self.load(costs, now_ns + spent_ns + took_ns, cpu, line, row);
                level += 1;
            }
        }
        self.last = (cpu as u32, now_ns, spent_ns + took_ns);
        took_ns
    }

    /// Returns the place of the counts of a symbol's accesses to a field.
    #[inline]
    fn row(&self, symbol: Symbol, field: Field) -> usize {
        self.map.field(field) * Symbol::ALL.len() + symbol as usize
    }

    /// Returns whether `perf` samples a load that takes `ns` nanoseconds.
    #[inline]
    fn is_sampled(&self, ns: u64) -> bool {
        ns * u64::from(self.frequency_mhz) >= LEAST_CYCLES * 1000
    }

    /// Returns for how many nanoseconds `cpu` waits for the lines that it accessed at this very
    /// moment.
    pub fn spent_ns(&self, cpu: usize, now_ns: u64) -> u64 {
        match self.last {
            (last, at_ns, spent_ns) if last as usize == cpu && at_ns == now_ns => spent_ns,
            _ => 0,
        }
    }

    /// Sets the counts back; the lines stay where they are.
    pub fn start_counting(&mut self) {
        self.rows.fill(Row::default());
        self.swept.fill(0);
    }

    /// Returns the counts.
    pub fn counted(&self) -> C2c {
        let nr = Symbol::ALL.len();
        let (mut all, mut loads) = (self.rows.clone(), 0u64);
        for (level, more) in (0..).zip(&self.swept[..LEVELS]) {
            loads = loads.wrapping_add(*more);
            all[self.row(Symbol::CpupriFind, Field::CpupriCount(level))].loads += loads;
        }
        let rows = all.iter().enumerate();
        let met = rows.filter(|(_, row)| row.loads + row.stores > 0);
        let met = met.map(|(i, row)| (self.map.describe(i / nr), Symbol::ALL[i % nr], *row));
        C2c::new(self.frequency_mhz, met)
    }

    fn load(&mut self, costs: &Costs, at_ns: u64, cpu: usize, number: usize, row: usize) -> u64 {
        let line = &self.lines[number];
        let (source, took_ns) = if has(&line.sharers, cpu) {
            (Source::Own, u64::from(self.figures.hit_ns))
        } else {
            let fetch_ns = self.fetch_ns(costs, line, cpu);
            let hold_ns = u64::from(self.figures.hold_ns);
            let begin_ns = line.gap(at_ns, fetch_ns + hold_ns);
            let done_ns = begin_ns + fetch_ns;
            let source = self.source(line, cpu);
            let (_, llc) = self.of[cpu];
            let line = &mut self.lines[number];
            if line.owner != NONE {
                line.owner = NONE;
                line.occupy(self.now_ns, begin_ns, done_ns + hold_ns);
            }
            line.share(cpu, llc);
            (source, done_ns - at_ns)
        };
        self.count_load(row, source, took_ns);
        took_ns
    }

    fn store(
        &mut self,
        costs: &Costs,
        at_ns: u64,
        cpu: usize,
        number: usize,
        row: usize,
        atomic: bool,
    ) -> u64 {
        let line = &self.lines[number];
        let own_ns =
            if atomic { u64::from(self.figures.atomic_ns) } else { u64::from(self.figures.hit_ns) };
        let source = self.source(line, cpu);
        let mut took_ns = own_ns;
        if source != Source::Own {
            let fetch_ns =
                if has(&line.sharers, cpu) { 0 } else { self.fetch_ns(costs, line, cpu) };
            let way_ns = fetch_ns.max(self.throw_away_ns(costs, line, cpu));
            let hold_ns = u64::from(self.figures.hold_ns);
            let begin_ns = line.gap(at_ns, way_ns + hold_ns);
            let done_ns = begin_ns + way_ns;
            let (_, llc) = self.of[cpu];
            let line = &mut self.lines[number];
            line.occupy(self.now_ns, begin_ns, done_ns + hold_ns);
            line.owner = cpu as u32;
            line.clear();
            line.share(cpu, llc);
            if atomic {
                took_ns += done_ns - at_ns;
            }
        }
        // An atomic instruction loads its line and then stores to it.
        if atomic {
            self.count_load(row, source, took_ns);
        }
        let r = &mut self.rows[row];
        r.stores += 1;
        r.store_hits += u64::from(atomic || source == Source::Own);
        took_ns
    }

    fn count_load(&mut self, row: usize, source: Source, took_ns: u64) {
        let sampled = self.is_sampled(took_ns);
        let r = &mut self.rows[row];
        r.loads += 1;
        match source {
            Source::Modified { remote: true } => r.remote_hitm += 1,
            Source::Modified { remote: false } => r.local_hitm += 1,
            Source::Own | Source::Clean => {}
        }
        if sampled {
            r.slow_loads += 1;
            r.slow_ns += took_ns;
            r.longest_ns = r.longest_ns.max(took_ns);
        }
    }

    /// Returns the place at which a CPU that wants to own a line finds it.
    fn source(&self, line: &Line, cpu: usize) -> Source {
        match line.owner {
            NONE => Source::Clean,
            owner if owner as usize == cpu && line.nr_sharers == 1 => Source::Own,
            owner => Source::Modified { remote: self.of[owner as usize].0 != self.of[cpu].0 },
        }
    }

    /// Returns the time that a line takes to a CPU that has no copy.
    fn fetch_ns(&self, costs: &Costs, line: &Line, cpu: usize) -> u64 {
        match (line.owner, line.from) {
            (NONE, NONE) => self.memory_ns,
            (NONE, _) if has(&line.llcs, self.of[cpu].1 as usize) => costs.llc_hit_ns(),
            (NONE, from) => costs.transfer_ns(1, from as usize, cpu),
            (owner, _) => costs.transfer_ns(1, owner as usize, cpu),
        }
    }

    /// Returns the time that the invalidation of a line's farthest copy takes, there and back.
    fn throw_away_ns(&self, costs: &Costs, line: &Line, cpu: usize) -> u64 {
        if line.nr_sharers <= 1 {
            let from = line.from as usize;
            return if line.nr_sharers == 1 && from != cpu {
                costs.transfer_ns(1, from, cpu)
            } else {
                0
            };
        }
        let mut farthest = 0;
        for (i, &word) in line.llcs.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                let llc = i * 64 + word.trailing_zeros() as usize;
                word &= word - 1;
                let there = other(&line.sharers, &self.llcs[llc], cpu);
                if let Some(sharer) = there {
                    farthest = farthest.max(costs.transfer_ns(1, sharer, cpu));
                }
            }
        }
        farthest
    }
}

fn has(words: &[u64], bit: usize) -> bool {
    words[bit / 64] >> (bit % 64) & 1 == 1
}

fn set(words: &mut [u64], bit: usize) {
    words[bit / 64] |= 1 << (bit % 64);
}

/// Returns a sharer in an LLC other than `cpu`. The sharers in one LLC are about equally far away.
fn other(sharers: &[u64], llc: &[u64], cpu: usize) -> Option<usize> {
    sharers.iter().zip(llc).enumerate().find_map(|(i, (s, l))| {
        let mut both = s & l;
        if cpu / 64 == i {
            both &= !(1 << (cpu % 64));
        }
        (both != 0).then(|| i * 64 + both.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests;
