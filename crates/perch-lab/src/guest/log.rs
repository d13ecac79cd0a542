// SPDX-License-Identifier: GPL-2.0-or-later
//! Trouble in a kernel's log.

/// Words of a kernel in whose own work something is wrong. The list is short on purpose: a line
/// that contains one of these is never normal, in any guest.
const TROUBLE: [&str; 14] = [
    "WARNING: ",
    "BUG: ",
    "Oops",
    "kernel BUG at",
    "general protection fault",
    "Kernel panic",
    "Unable to handle kernel",
    "detected stall",
    "detected stalls",
    "rcu_sched kthread starved",
    "rcu_preempt kthread starved",
    "blocked for more than",
    "runnable task stall",
    "soft lockup",
];

/// The lines of `log` that tell of trouble in the kernel: warnings, oopses, lockups, RCU and
/// scheduler stalls. The kernel also logs a line when it disables a sched_ext scheduler. That line
/// is trouble, except when the loader unloaded the scheduler, when a CPU came or went, or when the
/// scheduler asked to be loaded again for a new CPU.
pub fn trouble(log: &str) -> Vec<&str> {
    let troubled = |line: &&str| {
        let ejected = line.contains("sched_ext:")
            && line.contains("disabled")
            && !line.contains("unregistered from user space")
            && !line.contains("unregistered from the main kernel")
            && !line.contains("unregistered from BPF");
        ejected || TROUBLE.iter().any(|words| line.contains(words))
    };
    log.lines().filter(troubled).collect()
}

#[cfg(test)]
mod tests {
    use super::trouble;

    #[test]
    fn trouble_is_told_from_business() {
        let log = "\
[    0.1] Linux version 7.2.12
[    0.2] sched_ext: BPF scheduler \"perch\" enabled
[    0.3] sched_ext: BPF scheduler \"perch\" disabled (unregistered from user space)
[    0.4] sched_ext: BPF scheduler \"perch\" disabled (runtime error)
[    0.5] WARNING: CPU: 1 PID: 7 at kernel/sched/core.c:1 foo+0x1/0x2
[    0.6] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:
[    0.7] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!
[    0.8] sched_ext: BPF scheduler \"perch\" disabled (unregistered from the main kernel)
[    0.9] sched_ext: BPF scheduler \"perch\" disabled (unregistered from BPF)
[    1.0] debugfs ready";
        let found: Vec<&str> = trouble(log).iter().map(|line| &line[5..9]).collect();
        assert_eq!(found, ["0.4]", "0.5]", "0.6]", "0.7]"]);
    }
}
