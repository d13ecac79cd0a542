// SPDX-License-Identifier: GPL-2.0-or-later
//! Waiting for Ctrl-C, without a handler: the signals are blocked and taken from the queue.

use std::time::Duration;

const STOPPING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// SIGINT, SIGTERM and SIGHUP, as requests to stop; without those that the parent process set to be
/// ignored (nohup; a shell's background jobs). They stay blocked for good in this thread and in
/// those it starts from then on, so that none of them ends the process in between.
pub struct Signals {
    set: libc::sigset_t,
}

impl Signals {
    /// Blocks them.
    pub fn block() -> Signals {
        // SAFETY: sigset_t and sigaction are plain C structures, and the calls only read and write
        // these two.
        let set = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in STOPPING {
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

    /// Waits for one of them, or for `timeout`; whether one came.
    pub fn wait(&self, timeout: Duration) -> bool {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: both point to values that live through the call; no information is asked for.
        unsafe { libc::sigtimedwait(&self.set, std::ptr::null_mut(), &timeout) > 0 }
    }
}
