// SPDX-License-Identifier: GPL-2.0-or-later
//! Waiting for Ctrl-C, without a handler: the signals are blocked and taken from the queue.

use std::time::Duration;

/// SIGINT, SIGTERM and SIGHUP, as requests; without those that the parent process set to be
/// ignored (nohup; a shell's background jobs). They stay blocked for good in this thread and in
/// those it starts from then on, so that none of them ends the process in between.
pub struct Signals {
    set: libc::sigset_t,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// SIGINT or SIGTERM: to stop.
    Stop,
    /// SIGHUP: the terminal has gone, or a service is to read its configuration again.
    HangUp,
}

impl Signals {
    /// Blocks them.
    pub fn block() -> Signals {
        // SAFETY: sigset_t and sigaction are plain C structures, and the calls only read and write
        // these two.
        let set = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut action);
                if action.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&mut set, signal);
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            set
        };
        Signals { set }
    }

    /// Waits for one of them, or for `timeout`; none if none came.
    pub fn wait(&self, timeout: Duration) -> Option<Request> {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: both point to values that live through the call; no information is asked for.
        match unsafe { libc::sigtimedwait(&self.set, std::ptr::null_mut(), &timeout) } {
            libc::SIGHUP => Some(Request::HangUp),
            signal if signal > 0 => Some(Request::Stop),
            _ => None,
        }
    }
}
