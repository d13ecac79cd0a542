// SPDX-License-Identifier: GPL-2.0-or-later
//! The reason why the kernel let the scheduler go: `struct scx_exit_info`, in words.

use std::fmt;

use perch_plan::interface::Exit;

/// Unregistered from user space: a plain unload (`SCX_EXIT_UNREG`).
pub const UNREGISTERED: i32 = 64;
/// By the BPF program (`SCX_EXIT_UNREG_BPF`).
pub const BY_PROGRAM: i32 = 65;
/// By the kernel, for a hotplugged CPU for instance (`SCX_EXIT_UNREG_KERN`).
pub const BY_KERNEL: i32 = 66;
/// By SysRq-S (`SCX_EXIT_SYSRQ`).
pub const BY_SYSRQ: i32 = 67;
/// Its parent scheduler went (`SCX_EXIT_PARENT`, Linux 7.1).
pub const BY_PARENT: i32 = 68;
/// The first kind that is an error (`SCX_EXIT_ERROR`).
pub const ERROR: i32 = 1024;
/// The BPF program called scx_bpf_error() (`SCX_EXIT_ERROR_BPF`).
pub const PROGRAM_ERROR: i32 = 1025;
/// A runnable task was not run for too long (`SCX_EXIT_ERROR_STALL`).
pub const STALL: i32 = 1026;

/// The exit code's bit that asks for a restart (`SCX_ECODE_ACT_RESTART`).
pub const RESTART: i64 = 1 << 48;
/// The exit code's bit for a CPU that went or came (`SCX_ECODE_RSN_HOTPLUG`).
pub const HOTPLUG: i64 = 1 << 32;

/// How the kernel ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// `enum scx_exit_kind`.
    pub kind: i32,
    /// The kernel's exit code: bits of `enum scx_exit_code`, or the program's own.
    pub code: i64,
    /// The kernel's words for the kind.
    pub reason: String,
    /// The particulars of the end; often empty.
    pub message: String,
}

impl Ended {
    /// Reads the end that `ops.exit` wrote; none while it has not run.
    pub fn read(exit: &Exit) -> Option<Ended> {
        (exit.kind != 0).then(|| Ended {
            kind: exit.kind,
            code: exit.code,
            reason: text(&exit.reason),
            message: text(&exit.message),
        })
    }

    /// True if perch should load the program again: the kernel let it go because the machine
    /// changed.
    pub fn wants_restart(&self) -> bool {
        (UNREGISTERED..=BY_KERNEL).contains(&self.kind) && self.code & RESTART != 0
    }

    /// True if the program ended because a CPU went offline or came online.
    pub fn is_hotplug(&self) -> bool {
        self.wants_restart() && self.code & HOTPLUG != 0
    }

    /// True if the end is the one that our own unloading causes.
    pub fn is_plain_unload(&self) -> bool {
        self.kind == UNREGISTERED && !self.wants_restart()
    }

    /// True if somebody unloaded it, by another program or from the console.
    pub fn is_by_hand(&self) -> bool {
        self.is_plain_unload() || self.kind == BY_SYSRQ
    }

    fn what(&self) -> &'static str {
        match self.kind {
            UNREGISTERED => "somebody else unloaded perch",
            BY_PROGRAM => "perch's BPF program unloaded itself",
            BY_KERNEL => "the kernel unloaded perch",
            BY_SYSRQ => "SysRq-S unloaded perch",
            BY_PARENT => "perch's parent scheduler went, and perch with it",
            ERROR => "the kernel ejected perch, which did something wrong",
            PROGRAM_ERROR => "perch's BPF program found an error and gave up",
            STALL => "the kernel ejected perch, which left a runnable task waiting",
            _ => "the kernel ended perch",
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.what())?;
        match self.reason.as_str() {
            "" => f.write_str("no reason given")?,
            reason => f.write_str(reason)?,
        }
        write!(f, " (exit kind {}, code {:#x})", self.kind, self.code)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        f.write_str("; the kernel is back on its own scheduler")
    }
}

/// A C string in a fixed field.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(kind: i32, code: i64, reason: &str, message: &str) -> Exit {
        let mut exit = Exit { code, kind, pad: 0, reason: [0; 128], message: [0; 1024] };
        exit.reason[..reason.len()].copy_from_slice(reason.as_bytes());
        exit.message[..message.len()].copy_from_slice(message.as_bytes());
        exit
    }

    #[test]
    fn a_program_that_runs_has_not_ended() {
        assert_eq!(Ended::read(&exit(0, 0, "", "")), None);
    }

    #[test]
    fn a_stall_is_told_with_the_kernel_s_words() {
        let message = "hackbench[42] failed to run for 30.1s";
        let ended = Ended::read(&exit(STALL, 0, "runnable task stall", message)).unwrap();
        assert_eq!(
            ended.to_string(),
            "the kernel ejected perch, which left a runnable task waiting: runnable task stall \
             (exit kind 1026, code 0x0): hackbench[42] failed to run for 30.1s; \
             the kernel is back on its own scheduler"
        );
        assert!(!ended.wants_restart());
    }

    #[test]
    fn only_a_plain_exit_with_the_bit_restarts() {
        let hotplug = exit(BY_KERNEL, RESTART | HOTPLUG, "hotplug", "cpu 3 going offline");
        let hotplug = Ended::read(&hotplug).unwrap();
        assert!(hotplug.wants_restart() && hotplug.is_hotplug());
        assert!(!hotplug.is_plain_unload());
        let error = Ended::read(&exit(ERROR, RESTART, "runtime error", "")).unwrap();
        assert!(!error.wants_restart());
        let unload = Ended::read(&exit(UNREGISTERED, 0, "unregistered", "")).unwrap();
        assert!(unload.is_plain_unload());
    }

    #[test]
    fn fields_without_a_terminator_are_read_whole() {
        let mut full = exit(ERROR, 0, "", "");
        full.reason = [b'r'; 128];
        let ended = Ended::read(&full).unwrap();
        assert_eq!(ended.reason.len(), 128);
    }
}
