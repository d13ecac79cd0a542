// SPDX-License-Identifier: GPL-2.0-or-later
//! What a service manager hears of the scheduler, by systemd's protocol: nothing where there is none.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

/// Tells the service manager that started this process, if one did.
#[derive(Debug)]
pub(crate) struct Service {
    /// Time between two signs of life; none if nobody waits for them.
    every: Option<Duration>,
    /// When the last one was sent.
    last: Option<Instant>,
}

impl Service {
    /// Reads from the environment who wants to hear what.
    pub fn new() -> Service {
        Service::fed(sd_notify::watchdog_enabled())
    }

    /// A service that ends if there is no sign of life for `within`: four come in that time, so that
    /// one may be late.
    fn fed(within: Option<Duration>) -> Service {
        Service { every: within.map(|within| within / 4), last: None }
    }

    /// The scheduler is loaded.
    pub fn ready(&mut self, status: &str) {
        self.last = None;
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// The configuration was read again, and the scheduler is about to be loaded with it.
    pub fn reloading(&self) {
        let mut said = vec![NotifyState::Reloading];
        said.extend(NotifyState::monotonic_usec_now());
        tell(&said);
    }

    /// The scheduler is about to be unloaded for good.
    pub fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }

    /// Gives the sign of life that is due.
    pub fn alive(&mut self) {
        if self.is_due(Instant::now()) {
            tell(&[NotifyState::Watchdog]);
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let late = |every| self.last.is_none_or(|at| now.duration_since(at) >= every);
        let due = self.every.is_some_and(late);
        if due {
            self.last = Some(now);
        }
        due
    }
}

/// A manager that is gone, or that does not listen, is not a reason to stop scheduling.
fn tell(said: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(said);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_signs_of_life_come_in_time() {
        let mut service = Service::fed(Some(Duration::from_secs(20)));
        let start = Instant::now();
        let mut at = |seconds| service.is_due(start + Duration::from_secs(seconds));
        assert!(at(0), "the first comes at once");
        assert!(!at(4), "it is not time yet");
        assert!(at(5) && at(11) && !at(15));
    }

    #[test]
    fn nobody_who_does_not_wait_is_told() {
        let mut service = Service::fed(None);
        assert!(!service.is_due(Instant::now()));
    }
}
