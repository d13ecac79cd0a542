// SPDX-License-Identifier: GPL-2.0-or-later
//! Blocks of wake-ups: a writer stores rows as differences, and a reader keeps a machine's state
//! current with them.

use std::collections::HashMap;

use perch_policy::CpuMask;

use super::bytes::{Bytes, put, put_row, take_row};
use super::error::BlockError;
use super::read::Known;
use super::tasks::Tasks;
use crate::capacity::GroupCapacity;
use crate::moment::{Class, CpuRow, GroupRow, Row, TaskRow, WakeUp};

/// The kinds of entries in a block.
mod op {
    /// The CPUs of an affinity, by words; the affinity gets the next number.
    pub const AFFINITY: u64 = 1;
    pub const WAKE_UP: u64 = 2;
    /// The rows of CPUs that had changed when the last wake-up's choice was made.
    pub const LATER: u64 = 3;
    /// The capacities of groups that are not the sums of their CPUs'.
    pub const CAPACITIES: u64 = 4;
}

/// Returns a task's key: idle tasks have no number of their own.
fn key_of(task: u32, cpu: u32) -> u64 {
    match task {
        0 => 1 << 32 | u64::from(cpu),
        task => task.into(),
    }
}

/// The state that differences are taken against; it is zero at the beginning of every block.
#[derive(Debug)]
struct State {
    wake_up: [u64; 6],
    cpus: Vec<Row<CpuRow>>,
    groups: Vec<Row<GroupRow>>,
    tasks: Tasks,
}

impl State {
    fn new(cpus: usize, groups: usize) -> State {
        State {
            wake_up: [0; 6],
            cpus: vec![Row::default(); cpus],
            groups: vec![Row::default(); groups],
            tasks: Tasks::default(),
        }
    }

    fn clear(&mut self) {
        self.wake_up = [0; 6];
        self.cpus.fill(Row::default());
        self.groups.fill(Row::default());
        self.tasks.clear();
    }
}

/// Returns the numbers of a wake-up that are written as differences.
fn numbers(w: &WakeUp) -> [u64; 6] {
    [
        w.at_ns,
        u64::from(w.unseen) << 40 | u64::from(w.class as u8) << 32 | u64::from(w.flags),
        w.this_cpu.into(),
        w.prev_cpu.into(),
        w.chosen.into(),
        w.waker.into(),
    ]
}

/// A block that is being written.
#[derive(Debug)]
pub(super) struct Filling {
    pub bytes: Vec<u8>,
    pub wake_ups: u64,
    state: State,
    affinities: HashMap<CpuMask, u64>,
}

impl Filling {
    pub fn new(cpus: usize, groups: usize) -> Filling {
        Filling {
            bytes: Vec::new(),
            wake_ups: 0,
            state: State::new(cpus, groups),
            affinities: HashMap::new(),
        }
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.wake_ups = 0;
        self.state.clear();
        self.affinities.clear();
    }

    /// Appends a wake-up and the changes since the last one.
    pub fn add(
        &mut self,
        wake_up: &WakeUp,
        tasks: [&Row<TaskRow>; 2],
        affinity: Option<&CpuMask>,
        cpus: &[Row<CpuRow>],
        groups: &[Row<GroupRow>],
    ) {
        let out = &mut self.bytes;
        let affinity = affinity.map_or(0, |mask| match self.affinities.get(mask) {
            Some(&number) => number,
            None => {
                let number = self.affinities.len() as u64 + 1;
                put(out, op::AFFINITY);
                mask.words().iter().for_each(|&word| put(out, word));
                self.affinities.insert(mask.clone(), number);
                number
            }
        });
        let state = &mut self.state;
        put(out, op::WAKE_UP);
        let now = numbers(wake_up);
        put_row(out, &state.wake_up, &now);
        state.wake_up = now;
        put(out, wake_up.wakee.into());
        let [waker, mut wakee] = tasks.map(|row| *row);
        wakee.0[crate::moment::Task::Affinity as usize] = affinity;
        let keys =
            [key_of(wake_up.waker, wake_up.this_cpu), key_of(wake_up.wakee, wake_up.prev_cpu)];
        for (key, row) in keys.into_iter().zip([waker, wakee]) {
            let slot = state.tasks.slot(key);
            let before = state.tasks.row_mut(slot);
            put_row(out, &before.0, &row.0);
            *before = row;
        }
        put(out, wake_up.queued.len() as u64);
        wake_up.queued.iter().for_each(|&word| put(out, word));
        put_changed(out, &mut state.cpus, cpus);
        put_changed(out, &mut state.groups, groups);
        if !wake_up.capacities.is_empty() {
            put(out, op::CAPACITIES);
            put(out, wake_up.capacities.len() as u64);
            let mut next = 0;
            for group in &wake_up.capacities {
                put(out, u64::from(group.set - next));
                put(out, group.sum.into());
                put(out, group.most.into());
                next = group.set + 1;
            }
        }
        if !wake_up.later.is_empty() {
            put(out, op::LATER);
            put(out, wake_up.later.len() as u64);
            let mut next = 0;
            for (cpu, row) in &wake_up.later {
                put(out, u64::from(cpu - next));
                put_row(out, &cpus[*cpu as usize].0, &row.0);
                next = cpu + 1;
            }
        }
        self.wake_ups += 1;
    }
}

/// Appends the rows that changed: their number, and each row behind the number of rows between it
/// and the last.
fn put_changed<R>(out: &mut Vec<u8>, before: &mut [Row<R>], now: &[Row<R>])
where
    R: crate::Columns + PartialEq,
{
    let changed = || before.iter().zip(now).enumerate().filter(|(_, (a, b))| a != b);
    put(out, changed().count() as u64);
    let mut next = 0;
    for (i, (a, b)) in changed() {
        put(out, (i - next) as u64);
        put_row(out, a.0.as_ref(), b.0.as_ref());
        next = i + 1;
    }
    before.copy_from_slice(now);
}

/// The state of a machine at the wake-up that was read last.
#[derive(Debug)]
pub struct Moment {
    state: State,
    affinities: Vec<CpuMask>,
    wake_up: WakeUp,
    /// The places of waker and wakee among the tasks.
    slots: [usize; 2],
    /// CPUs and groups whose rows the last wake-up changed.
    changed: [Vec<u32>; 2],
    nr_cpus: usize,
}

impl Moment {
    /// Returns the state for a machine with so many CPUs and sets of CPUs that share something.
    pub fn new(cpus: usize, groups: usize) -> Moment {
        Moment {
            state: State::new(cpus, groups),
            affinities: Vec::new(),
            wake_up: WakeUp::default(),
            slots: [0; 2],
            changed: [Vec::new(), Vec::new()],
            nr_cpus: cpus,
        }
    }

    /// Returns the wake-up.
    pub fn wake_up(&self) -> &WakeUp {
        &self.wake_up
    }

    /// Returns the waker's row.
    pub fn waker(&self) -> &Row<TaskRow> {
        self.state.tasks.row(self.slots[0])
    }

    /// Returns the wakee's row.
    pub fn wakee(&self) -> &Row<TaskRow> {
        self.state.tasks.row(self.slots[1])
    }

    /// Returns the CPUs that the wakee may use; `None` for all.
    pub fn affinity(&self) -> Option<&CpuMask> {
        let number = self.wakee().0[crate::moment::Task::Affinity as usize] as usize;
        self.affinities.get(number.wrapping_sub(1))
    }

    /// Returns the CPUs' rows.
    pub fn cpus(&self) -> &[Row<CpuRow>] {
        &self.state.cpus
    }

    /// Returns the rows of what the CPUs share, by the topology's numbers.
    pub fn groups(&self) -> &[Row<GroupRow>] {
        &self.state.groups
    }

    /// Returns the CPUs whose rows changed with this wake-up, ascending.
    pub fn changed_cpus(&self) -> &[u32] {
        &self.changed[0]
    }

    /// Returns the groups whose rows changed with this wake-up, ascending.
    pub fn changed_groups(&self) -> &[u32] {
        &self.changed[1]
    }
}

/// A place in a block of wake-ups.
pub struct Cursor<'a> {
    pub(super) bytes: Bytes<'a>,
    pub(super) known: &'a Known,
}

impl Cursor<'_> {
    /// Clears the state that another block left in the moment. A reader calls this before a block's
    /// first wake-up.
    pub fn begin(&self, moment: &mut Moment) {
        moment.state.clear();
        moment.affinities.clear();
    }

    /// Advances the moment to the next wake-up. Returns whether there was one.
    ///
    /// # Errors
    /// Returns the reason why the bytes make no sense.
    pub fn advance(&mut self, moment: &mut Moment) -> Result<bool, BlockError> {
        loop {
            if self.bytes.0.is_empty() {
                return Ok(false);
            }
            let what = self.bytes.take().ok_or(BlockError::NumberEnds)?;
            match what {
                op::AFFINITY => self.affinity(moment).ok_or(BlockError::Affinity)?,
                op::WAKE_UP => {
                    self.wake_up(moment)?;
                    return Ok(true);
                }
                _ => return Err(BlockError::Unknown),
            }
        }
    }

    fn affinity(&mut self, moment: &mut Moment) -> Option<()> {
        let n = moment.nr_cpus;
        let mut mask = CpuMask::empty(n);
        for first in (0..n).step_by(64) {
            let mut word = self.bytes.take()?;
            while word != 0 {
                let cpu = first + word.trailing_zeros() as usize;
                word &= word - 1;
                if cpu >= n {
                    return None;
                }
                mask.insert(cpu);
            }
        }
        moment.affinities.push(mask);
        Some(())
    }

    fn wake_up(&mut self, moment: &mut Moment) -> Result<(), BlockError> {
        const ENDS: BlockError = BlockError::WakeUpEnds;
        let Moment { state, affinities, wake_up: w, slots, changed, nr_cpus } = moment;
        let (n, bytes) = (*nr_cpus, &mut self.bytes);
        let all: [Option<u8>; 6] = std::array::from_fn(|i| Some(i as u8));
        take_row(bytes, &all, &mut state.wake_up).ok_or(ENDS)?;
        let [at_ns, how, this, prev, chosen, waker] = state.wake_up;
        let class = Class::ALL.get((how >> 32 & 0xff) as usize);
        w.class = *class.ok_or(BlockError::Class)?;
        (w.at_ns, w.flags, w.unseen) = (at_ns, how as u32, (how >> 40) as u8);
        if [this, prev, chosen].iter().any(|&cpu| cpu >= n as u64) {
            return Err(BlockError::Cpu);
        }
        (w.this_cpu, w.prev_cpu, w.chosen) = (this as u32, prev as u32, chosen as u32);
        w.waker = u32::try_from(waker).map_err(|_| ENDS)?;
        let wakee = bytes.take().and_then(|v| u32::try_from(v).ok());
        w.wakee = wakee.ok_or(ENDS)?;
        let keys = [key_of(w.waker, w.this_cpu), key_of(w.wakee, w.prev_cpu)];
        *slots = keys.map(|key| state.tasks.slot(key));
        for slot in *slots {
            let row = state.tasks.row_mut(slot);
            take_row(bytes, &self.known.task, &mut row.0).ok_or(ENDS)?;
            if row.0[crate::moment::Task::Affinity as usize] > affinities.len() as u64 {
                return Err(BlockError::NoAffinity);
            }
        }
        let words = bytes.below(n.div_ceil(64) + 1).ok_or(ENDS)?;
        w.queued.clear();
        for _ in 0..words {
            w.queued.push(bytes.take().ok_or(ENDS)?);
        }
        let [cpus, groups] = changed;
        take_changed(bytes, &self.known.cpu, &mut state.cpus, cpus).ok_or(ENDS)?;
        take_changed(bytes, &self.known.group, &mut state.groups, groups).ok_or(ENDS)?;
        w.capacities.clear();
        if bytes.0.first() == Some(&(op::CAPACITIES as u8)) {
            take_capacities(bytes, &mut w.capacities).ok_or(ENDS)?;
        }
        w.later.clear();
        if bytes.0.first() == Some(&(op::LATER as u8)) {
            take_later(bytes, &self.known.cpu, &state.cpus, &mut w.later).ok_or(ENDS)?;
        }
        Ok(())
    }
}

fn take_capacities(bytes: &mut Bytes, capacities: &mut Vec<GroupCapacity>) -> Option<()> {
    bytes.take()?;
    let mut next = 0u32;
    let short = |bytes: &mut Bytes| u32::try_from(bytes.take()?).ok();
    for _ in 0..bytes.take()? {
        let set = next.checked_add(short(bytes)?)?;
        let (sum, most) = (short(bytes)?, short(bytes)?);
        capacities.push(GroupCapacity { set, sum, most });
        next = set.checked_add(1)?;
    }
    Some(())
}

fn take_later(
    bytes: &mut Bytes,
    known: &[Option<u8>],
    rows: &[Row<CpuRow>],
    later: &mut Vec<(u32, Row<CpuRow>)>,
) -> Option<()> {
    bytes.take()?;
    let mut next = 0;
    for _ in 0..bytes.below(rows.len() + 1)? {
        let at = next + bytes.below(rows.len().checked_sub(next)?)?;
        let mut row = rows[at];
        take_row(bytes, known, &mut row.0)?;
        later.push((at as u32, row));
        next = at + 1;
    }
    Some(())
}

fn take_changed<R: crate::Columns>(
    bytes: &mut Bytes,
    known: &[Option<u8>],
    rows: &mut [Row<R>],
    changed: &mut Vec<u32>,
) -> Option<()> {
    changed.clear();
    let mut next = 0;
    for _ in 0..bytes.below(rows.len() + 1)? {
        let at = next + bytes.below(rows.len().checked_sub(next)?)?;
        take_row(bytes, known, rows[at].0.as_mut())?;
        changed.push(at as u32);
        next = at + 1;
    }
    Some(())
}
