// SPDX-License-Identifier: GPL-2.0-or-later
//! A CPU's idle and busy time.

/// A CPU's idle and busy time.
#[derive(Debug)]
pub(crate) struct Idleness {
    /// True while the CPU runs its idle task.
    idle: bool,
    /// True if a wakee has ended the idle period, and the CPU still leaves its idle loop.
    woken: bool,
    /// The time at which the CPU last became idle.
    idle_since_ns: u64,
    /// The time that the CPU was busy, in nanoseconds, as far as it is counted.
    busy_ns: u64,
    /// The time since which the CPU's busy time is not yet counted.
    busy_since_ns: u64,
    /// The moving average of the length of idle periods (`avg_idle`), in nanoseconds.
    avg_idle_ns: u64,
    /// Half of the ceiling of that average (`max_idle_balance_cost`), in nanoseconds.
    max_cost_ns: u64,
}

impl Idleness {
    /// Returns the times of a CPU on which nothing has run yet.
    pub fn new() -> Idleness {
        Idleness {
            idle: true,
            woken: false,
            idle_since_ns: 0,
            busy_ns: 0,
            busy_since_ns: 0,
            avg_idle_ns: 1_000_000,
            max_cost_ns: 500_000,
        }
    }

    /// Sets to `ns` nanoseconds what the balancer's passes cost the CPU in all. Twice this is the
    /// ceiling of the average idle time.
    pub fn set_max_cost(&mut self, ns: u64) {
        self.max_cost_ns = ns;
    }

    /// Raises to `ns` nanoseconds, if it is less, what the balancer's passes cost the CPU in all.
    pub fn raise_max_cost(&mut self, ns: u64) {
        self.max_cost_ns = self.max_cost_ns.max(ns);
    }

    /// Counts `ns` nanoseconds of an idle period as busy, because the CPU waited for contended
    /// lines then.
    pub fn add_busy(&mut self, ns: u64) {
        self.busy_ns += ns;
    }

    /// Returns whether the CPU runs its idle task.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// Returns the average length of the CPU's idle periods, in nanoseconds.
    #[inline]
    pub fn avg_idle_ns(&self) -> u64 {
        self.avg_idle_ns
    }

    /// Notes that the CPU becomes idle, after a search for a task that began at `since_ns`.
    pub fn begin(&mut self, since_ns: u64) {
        self.idle = true;
        self.idle_since_ns = since_ns;
        self.busy_ns += since_ns - self.busy_since_ns;
    }

    /// Notes that the CPU begins to search for a task, which is no busy time.
    pub fn begin_search(&mut self, now_ns: u64) {
        self.busy_ns += now_ns - self.busy_since_ns;
        self.busy_since_ns = now_ns;
    }

    /// Notes that the CPU goes on with a task that its search has pulled.
    pub fn end_search(&mut self, now_ns: u64) {
        self.busy_since_ns = now_ns;
    }

    /// Notes that a wakee ends the idle period (`idle_stamp`), though the CPU has yet to leave its
    /// idle loop.
    pub fn wake(&mut self, now_ns: u64) {
        if !std::mem::replace(&mut self.woken, true) {
            self.average(now_ns);
        }
    }

    /// Returns whether a wakee has ended the idle period, and the CPU still leaves its idle loop.
    #[inline]
    pub fn is_woken(&self) -> bool {
        self.woken
    }

    /// Notes that the CPU, which is idle, found no task: somebody has taken the wakee, and another
    /// idle period begins.
    pub fn idle_on(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.woken) {
            self.idle_since_ns = now_ns;
        }
    }

    /// Notes that the CPU becomes busy.
    pub fn end(&mut self, now_ns: u64) {
        self.wake(now_ns);
        self.woken = false;
        self.idle = false;
        self.busy_since_ns = now_ns;
    }

    /// Counts the idle period that ends now in the average.
    fn average(&mut self, now_ns: u64) {
        let idle_ns = now_ns - self.idle_since_ns;
        let avg = self.avg_idle_ns as i64;
        let avg = avg + (idle_ns as i64 - avg) / 8;
        self.avg_idle_ns = (avg as u64).min(2 * self.max_cost_ns);
    }

    /// Returns the CPU's busy time since this was last called, in nanoseconds; `busy` says that the
    /// CPU is busy now.
    pub fn take_busy(&mut self, now_ns: u64, busy: bool) -> u64 {
        let taken_ns = self.busy_ns(now_ns, busy);
        if busy {
            self.busy_since_ns = now_ns;
        }
        self.busy_ns = 0;
        taken_ns
    }

    /// Returns what [`Idleness::take_busy`] would, and takes nothing.
    pub fn busy_ns(&self, now_ns: u64, busy: bool) -> u64 {
        let under_way = if busy { now_ns - self.busy_since_ns.min(now_ns) } else { 0 };
        self.busy_ns + under_way
    }
}
