/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a task that was preempted was in user mode. One that was in a system
 * call may hold a lock, or read under RCU, and so keep others waiting for as long
 * as it does not run.
 *
 * sched_ext does not tell. But the kernel keeps a task's registers of user mode
 * in one place at the beginning of the task's stack, and notes there whether a
 * system call or an interrupt led out of user mode. A tick that finds a task in
 * user mode shows where that place is. What an exception led out of user mode, a
 * page fault in most cases, looks like an interrupt; the lock that it may hold is
 * one of its process.
 */
#ifndef PERCH_USER_H
#define PERCH_USER_H

#include "base/host.h"

#ifdef __bpf__

#ifdef __TARGET_ARCH_x86
struct pt_regs {
	unsigned long cs;
	unsigned long orig_ax; /* the number of the system call; -1: none */
} __attribute__((preserve_access_index));

#define PERCH_IN_USER_MODE(regs) ((regs)->cs & 3)
#define PERCH_IN_SYSCALL(regs) ((long)(regs)->orig_ax >= 0)
#else
struct pt_regs {
	__u64 pstate;
	__s32 syscallno; /* -1: none */
} __attribute__((preserve_access_index));

#define PERCH_IN_USER_MODE(regs) (!((regs)->pstate & 0xf))
#define PERCH_IN_SYSCALL(regs) ((regs)->syscallno >= 0)
#endif

/* The registers of what this CPU's interrupt interrupted; null outside of one. */
extern struct pt_regs *const __irq_regs __ksym __weak;

static inline const struct pt_regs *regs_at(perch_u64 address)
{
	return bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct pt_regs));
}

/* In a tick: where the running task's registers of user mode are; 0: it is not in user mode. */
static inline perch_u64 user_regs(void)
{
	perch_u64 at = 0;

	if (&__irq_regs)
		at = (perch_u64) * (struct pt_regs *const *)bpf_this_cpu_ptr(&__irq_regs);
	return at && PERCH_IN_USER_MODE(regs_at(at)) ? at : 0;
}

/*
 * True if the current task, whose registers of user mode are at `at`, is preempted
 * in user mode. The kernel calls BPF programs under RCU, so that the task reads
 * under it once itself.
 */
static inline bool preempted_in_user_mode(const struct task_struct *p, perch_u64 at)
{
	if (!at || PERCH_IN_SYSCALL(regs_at(at)))
		return false;
	return !bpf_core_field_exists(p->rcu_read_lock_nesting) || p->rcu_read_lock_nesting <= 1;
}

#else

/* Simulated tasks make no system calls. */
static inline perch_u64 user_regs(void)
{
	return 1;
}

static inline bool preempted_in_user_mode(const struct task_struct *p, perch_u64 at)
{
	return at;
}

#endif

#endif
