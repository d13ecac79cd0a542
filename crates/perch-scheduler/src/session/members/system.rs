// SPDX-License-Identifier: GPL-2.0-or-later
//! The system calls that read and change a task's policy.

use std::io;

/// A kernel that knows the policies of tasks, with the flag `SCHED_RESET_ON_FORK` in them.
pub(crate) trait System {
    /// The policy of a task.
    ///
    /// # Errors
    /// ESRCH where there is no such task.
    fn policy(&self, tid: u32) -> io::Result<i32>;

    /// Gives a task another policy. Its niceness stays, and its slice where it has one of its own.
    ///
    /// # Errors
    /// The kernel's: EPERM without CAP_SYS_NICE, ESRCH where there is no such task.
    fn set_policy(&mut self, tid: u32, policy: i32) -> io::Result<()>;
}

/// The running kernel.
///
/// The older pair of calls does it: with sched_setattr(2) one writes a niceness that was read before, and
/// that somebody may have changed meanwhile. musl has no sched_setscheduler(3), so these are bare calls.
pub(crate) struct Calls;

impl System for Calls {
    fn policy(&self, tid: u32) -> io::Result<i32> {
        // SAFETY: the call takes a number and touches no memory of this process.
        let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, tid) };
        match policy {
            ..0 => Err(io::Error::last_os_error()),
            policy => Ok(policy as i32),
        }
    }

    fn set_policy(&mut self, tid: u32, policy: i32) -> io::Result<()> {
        // Its only field that all have; 0 outside of the real-time policies.
        let priority: libc::c_int = 0;
        // SAFETY: the kernel reads struct sched_param, which is one int, while the call lasts.
        let done = unsafe {
            libc::syscall(libc::SYS_sched_setscheduler, tid, policy, &raw const priority)
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_and_set() {
        let mut calls = Calls;
        let task = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        // Also where the tests run as SCHED_BATCH.
        let policy = calls.policy(task).unwrap();
        calls.set_policy(task, policy).unwrap();
        assert_eq!(calls.policy(task).unwrap(), policy);
        // Beyond any number of a task.
        let gone = calls.policy(i32::MAX as u32).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
    }
}
