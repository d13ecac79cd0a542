// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's own events of a CPU, in the compact form: a switch leaves the task that the switch
//! before it on that CPU went to, and a bundle tells each name once.

use super::proto::Message;

// Fields of FtraceEventBundle.
const CPU: u32 = 1;
const EVENT: u32 = 2;
const COMPACT: u32 = 4;
// Fields of FtraceEvent.
const EVENT_TIMESTAMP: u32 = 1;
const EVENT_PID: u32 = 2;
const SCHED_WAKING: u32 = 20;
const SCHED_WAKEUP_NEW: u32 = 114;
/// The number of a CPU's events that are written together.
const TOGETHER: usize = 512;
/// The priority of a task about which nothing more is known: nice 0.
const PRIORITY: u64 = 120;

/// A task: its pid, 0 for the idle task, and its name.
#[derive(Clone, Copy)]
pub struct Thread<'a> {
    pub pid: u64,
    pub name: &'a str,
}

/// A task is woken.
pub struct Waking<'a> {
    pub at_ns: u64,
    pub waker: u64,
    pub wakee: Thread<'a>,
    pub target: usize,
    pub is_new: bool,
}

/// Events of one kind, with a column for each of their fields.
#[derive(Clone, Debug, Default)]
struct Columns {
    at_ns: Message,
    last_ns: u64,
    /// The columns of a switch are the state of the task that is left, the next pid and its
    /// priority; those of a waking are the pid, the target and the priority.
    facts: [Message; 3],
    names: Message,
}

impl Columns {
    fn add(&mut self, at_ns: u64, facts: [u64; 3], name: u64) {
        // The first event has its full time, each other one the time since the event before it.
        self.at_ns.bare(at_ns - self.last_ns);
        self.last_ns = at_ns;
        for (column, fact) in self.facts.iter_mut().zip(facts) {
            column.bare(fact);
        }
        self.names.bare(name);
    }

    /// Moves the events into a message.
    fn drain(&mut self, into: &mut Message, fields: [u32; 5]) {
        let [first, second, third] = &self.facts;
        let columns = [&self.at_ns, first, second, third, &self.names];
        for (field, column) in fields.into_iter().zip(columns) {
            if !column.is_empty() {
                into.message(field, column);
            }
        }
        self.at_ns.clear();
        self.facts.iter_mut().for_each(Message::clear);
        self.names.clear();
        self.last_ns = 0;
    }
}

/// The events of one CPU that wait to be written.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    switches: Columns,
    wakings: Columns,
    /// The flags of each compact waking, which are 0, since nothing is known of them.
    flags: Message,
    others: Message,
    /// The pids whose names the bundle tells, in that order, and the names.
    told: Vec<u64>,
    names: Message,
    count: usize,
    /// The pid of the running task.
    pid: u64,
    /// The time of the last waking on this CPU.
    woken_ns: Option<u64>,
}

impl Cpu {
    /// Returns a CPU that idles from the beginning: a reader takes from the first switch only the
    /// task that runs after it.
    pub fn new() -> Cpu {
        let mut cpu = Cpu::default();
        cpu.switch(0, 0, Thread { pid: 0, name: "swapper" });
        cpu
    }

    fn name(&mut self, thread: Thread) -> u64 {
        let known = self.told.iter().position(|&pid| pid == thread.pid);
        let place = known.unwrap_or_else(|| {
            self.told.push(thread.pid);
            self.names.text(5, thread.name);
            self.told.len() - 1
        });
        place as u64
    }

    /// Returns true where the waiting events must be written before a switch at that time. A reader
    /// takes all switches of a bundle before its wakings where both have the same time, but the
    /// waker is the task that ran before the switch.
    pub fn is_ahead(&self, at_ns: u64) -> bool {
        self.count > 0 && self.woken_ns == Some(at_ns)
    }

    /// Switches to another task; `state` is the next state of the task that ran, in the kernel's
    /// code.
    pub fn switch(&mut self, at_ns: u64, state: u64, to: Thread) {
        let name = self.name(to);
        self.switches.add(at_ns, [state, to.pid, PRIORITY], name);
        self.pid = to.pid;
        self.count += 1;
    }

    /// Adds the wake-up of a task by this CPU.
    pub fn waking(&mut self, waking: &Waking) {
        let Waking { at_ns, wakee, .. } = *waking;
        self.woken_ns = Some(at_ns);
        self.count += 1;
        let target = waking.target as u64;
        if !waking.is_new && waking.waker == self.pid {
            let name = self.name(wakee);
            self.wakings.add(at_ns, [wakee.pid, target, PRIORITY], name);
            self.flags.bare(0);
            return;
        }
        let kind = if waking.is_new { SCHED_WAKEUP_NEW } else { SCHED_WAKING };
        self.others.within(EVENT, |event| {
            event.uint(EVENT_TIMESTAMP, at_ns).uint(EVENT_PID, waking.waker);
            event.within(kind, |what| {
                what.text(1, wakee.name).uint(2, wakee.pid).uint(3, PRIORITY);
                what.uint(4, 1).uint(5, target);
            });
        });
    }

    /// Returns true where there are as many events as are written together.
    pub fn is_full(&self) -> bool {
        self.count >= TOGETHER
    }

    /// Returns true where no event waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Moves the waiting events into a bundle of this CPU.
    pub fn drain(&mut self, number: usize, bundle: &mut Message) {
        bundle.uint(CPU, number as u64).within(COMPACT, |compact| {
            compact.append(&self.names);
            self.switches.drain(compact, [1, 2, 3, 4, 6]);
            self.wakings.drain(compact, [7, 8, 9, 10, 11]);
            if !self.flags.is_empty() {
                compact.message(12, &self.flags);
            }
        });
        bundle.append(&self.others);
        self.flags.clear();
        self.others.clear();
        self.names.clear();
        self.told.clear();
        self.count = 0;
        self.woken_ns = None;
    }
}
