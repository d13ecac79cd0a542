// SPDX-License-Identifier: GPL-2.0-or-later
//! The way of a record from the recorder's programs into the file.

use std::io::Write;
use std::sync::Arc;

use perch_policy::{CpuMask, Topology, Wake};

use crate::capacity::GroupCapacity;
use crate::format::{Footer, Writer};
use crate::moment::{
    Class, Cpu, CpuRow, Group, GroupRow, HEARD, Row, Task, TaskRow, UNSEEN_CONTEXT, UNSEEN_ROWS,
    WakeUp,
};
use crate::raw::{self, RawCpu, RawNear, RawTask, RawWake, Record, Set};
use crate::recorder::group_places;

/// Turns records into rows. A value of a CPU that a record lacks keeps its last known value, which
/// takes no room in the file, and the wake-up says so.
pub(crate) struct Sink<W: Write> {
    topology: Arc<Topology>,
    writer: Writer<W>,
    error: Option<std::io::Error>,
    hz: u64,
    cpus: Vec<Row<CpuRow>>,
    groups: Vec<Row<GroupRow>>,
    /// The sets of the groups whose capacities come with a record, in that order.
    sets: Vec<usize>,
    wake_up: WakeUp,
}

impl<W: Write> Sink<W> {
    /// Returns a sink into a file that has no wake-up yet.
    pub fn new(topology: &Arc<Topology>, writer: Writer<W>, hz: u64) -> Sink<W> {
        Sink {
            topology: topology.clone(),
            writer,
            error: None,
            hz,
            cpus: vec![Row::default(); topology.nr_cpus()],
            groups: vec![Row::default(); topology.nr_shared()],
            sets: group_places(topology).iter().map(|place| place.set).collect(),
            wake_up: WakeUp::default(),
        }
    }

    /// Returns the error, if there was one, for which the file cannot be written any more.
    pub fn take_error(&mut self) -> Option<std::io::Error> {
        self.error.take()
    }

    /// Brings the file up to date.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }

    /// Ends the file. Returns the footer as it was written.
    pub fn finish(self, footer: Footer) -> std::io::Result<Footer> {
        let (footer, mut out) = self.writer.finish(footer)?;
        out.flush()?;
        Ok(footer)
    }

    /// Takes a record. Returns a number other than 0 to stop the reading of the ring buffer.
    pub fn take(&mut self, bytes: &[u8], possible: usize) -> i32 {
        let Some(record) = Record::parse(bytes, possible) else {
            return 0;
        };
        let wake = &record.wake;
        let sides = [wake.this_cpu, wake.prev_cpu].map(|cpu| cpu as usize);
        let n = self.cpus.len();
        if sides.into_iter().chain([wake.chosen as usize]).any(|cpu| cpu >= n) {
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

    /// Takes the record of a decision about a queue. Returns as `take` does.
    pub fn decide(&mut self, bytes: &[u8]) -> i32 {
        let Some(decision) = crate::decision::parse(bytes) else {
            return 0;
        };
        match self.writer.decide(&decision) {
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
        self.wake_up.capacities.clear();
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
        for (&set, group) in self.sets.iter().zip(record.groups()) {
            let now = GroupCapacity::now(self.topology.set_numbered(set), &self.cpus);
            let seen = GroupCapacity {
                sum: group.capacity,
                most: match group.max_capacity {
                    0 => now.most,
                    most => most,
                },
                ..now
            };
            // Where the kernel has no capacity its domains are not those of this machine's description.
            if group.capacity > 0 && seen != now {
                self.wake_up.capacities.push(seen);
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
        if wake.context & raw::HEARD != 0 {
            w.unseen |= HEARD;
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
    row[Task::FlipDecayAtNs] = wake.at_ns.saturating_sub(ago.saturating_mul(1_000_000_000 / hz));
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

#[cfg(test)]
mod tests {
    use perch_machine::Machine;

    use super::*;
    use crate::format::{Header, Moment, Reader};
    use crate::raw::Record;

    /// Returns the bytes of a record of four CPUs with these sets, in the order of `enum raw_set`.
    fn bytes(wake: &RawWake, sets: [u64; 7]) -> Vec<u8> {
        let head = std::ptr::from_ref(wake).cast::<u8>();
        // SAFETY: the structure has only integers, and its padding is fields of it.
        let head = unsafe { std::slice::from_raw_parts(head, size_of::<RawWake>()) };
        let sets = sets.iter().flat_map(|set| set.to_ne_bytes());
        let capacities = [1024u16; 4].into_iter().flat_map(u16::to_ne_bytes);
        head.iter().copied().chain(sets).chain(capacities).collect()
    }

    /// What the kernel was told of an idle CPU comes into the file: at first and at last, and that the
    /// recorder heard it.
    #[test]
    fn answers_that_the_kernel_got_are_the_states_of_cpus() {
        let text =
            "name = \"four\"\n[topology]\npackages = 1\nllcs_per_node = 1\ncores_per_llc = 4\n";
        let machine = Machine::from_toml_str(text, "four").expect("a machine");
        let topology = Topology::new(&machine);
        let header =
            Header { machine: machine.to_toml(), era: "6.1".to_string(), ..Header::default() };
        let n = topology.nr_cpus();
        let writer = Writer::new(Vec::new(), header, n, topology.nr_shared()).expect("memory");
        let mut sink = Sink::new(&topology, writer, 250);
        for context in [raw::IN_TASK, raw::IN_TASK | raw::HEARD] {
            let wake =
                RawWake { context, prev_cpu: 1, chosen: 3, nr_allowed: 4, ..RawWake::default() };
            // CPU 3 is idle at first, CPU 2 at last.
            let bytes = bytes(&wake, [15, 8, 0, 12, 0, 15, 14]);
            assert!(Record::parse(&bytes, 4).is_some());
            assert_eq!(sink.take(&bytes, 4), 0);
        }
        let writer = sink.writer;
        let (_, file) = writer.finish(Footer::default()).expect("memory");
        let mut reader = Reader::new(&file[..]).expect("a recording");
        let block = reader.next_block().expect("whole").expect("a block");
        let mut moment = Moment::new(n, topology.nr_shared());
        let mut cursor = block.cursor();
        cursor.begin(&mut moment);
        for heard in [false, true] {
            assert!(cursor.advance(&mut moment).expect("whole"));
            let w = moment.wake_up();
            assert_eq!(w.unseen & HEARD != 0, heard);
            let idle = moment.cpus().iter().map(|row| row[Cpu::Idle]);
            assert_eq!(idle.collect::<Vec<_>>(), [0, 0, 0, 1]);
            let later = w.later.iter().map(|(cpu, row)| (*cpu, row[Cpu::Idle]));
            assert_eq!(later.collect::<Vec<_>>(), [(2, 1)]);
        }
    }
}
