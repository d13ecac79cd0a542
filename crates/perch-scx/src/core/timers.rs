// SPDX-License-Identifier: GPL-2.0-or-later
//! The program's timers.

struct Timer {
    /// The program's address of it.
    at: usize,
    /// When it expires or has expired, nanoseconds; `u64::MAX`: it was stopped.
    at_ns: u64,
}

#[derive(Default)]
pub(crate) struct Timers(Vec<Timer>);

impl Timers {
    /// Starts a timer, and returns its key.
    pub fn start(&mut self, at: usize, at_ns: u64) -> u32 {
        let key = self.0.iter().position(|timer| timer.at == at);
        let key = key.unwrap_or(self.0.len());
        if key == self.0.len() {
            self.0.push(Timer { at, at_ns });
        }
        self.0[key].at_ns = at_ns;
        key as u32
    }

    /// Stops a timer. Returns whether it was started and has not expired yet.
    pub fn cancel(&mut self, at: usize, now_ns: u64) -> bool {
        let found = self.0.iter_mut().find(|timer| timer.at == at);
        found.is_some_and(|timer| {
            let was = std::mem::replace(&mut timer.at_ns, u64::MAX);
            was != u64::MAX && was > now_ns
        })
    }

    /// The address of the timer with this key, unless it was started anew.
    pub fn expired(&self, key: u64, now_ns: u64) -> Option<usize> {
        let timer = self.0.get(key as usize)?;
        (timer.at_ns == now_ns).then_some(timer.at)
    }
}
