// SPDX-License-Identifier: GPL-2.0-or-later
//! What /proc tells of a task in a line.

/// `PF_KTHREAD` of a task's flags.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What /proc/PID/stat says (proc_pid_stat(5)).
pub(crate) struct Stat<'a> {
    /// The command's name, which may hold any character.
    pub comm: &'a str,
    pub state: &'a str,
    flags: u64,
    /// 1 to 99; 0 outside of the real-time policies.
    pub priority: u32,
    /// As of sched(7).
    pub policy: u32,
}

impl Stat<'_> {
    /// Reads the line; none if it is none. The name stands in parentheses and may hold some itself.
    pub fn read(line: &str) -> Option<Stat<'_>> {
        let (before, after) = line.rsplit_once(')')?;
        let (_, comm) = before.split_once('(')?;
        // The state is field 3 of the line.
        let fields: Vec<&str> = after.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Stat {
            comm,
            state: field(3)?,
            flags: field(9)?.parse().ok()?,
            priority: field(40)?.parse().ok()?,
            policy: field(41)?.parse().ok()?,
        })
    }

    /// True for a kernel thread.
    pub fn is_kernel_s(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}
