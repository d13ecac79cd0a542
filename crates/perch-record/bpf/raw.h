/* SPDX-License-Identifier: GPL-2.0-only */
/* What the recorder's program hands out, wake-up by wake-up; src/raw.rs has the same. */
#ifndef PERCH_RECORD_RAW_H
#define PERCH_RECORD_RAW_H

#define RAW_MAX_CPUS 1024
#define RAW_WORDS (RAW_MAX_CPUS / 64)

/* raw_task.flags */
#define RAW_PERCPU_KTHREAD 1u
#define RAW_SCHED_IDLE 2u

struct raw_cpu {
	__u64 idle_since_ns;
	__u32 load;
	__u32 runnable;
	__u32 util;
	__u32 capacity;
	__u32 curr_load;
	__u32 idle_exit_ns;
	__u32 nr_idle_scan; /* of its last-level cache */
	__u16 nr_running;
	__u16 nr_delayed;
	__u8 idle;
	__u8 sched_idle;
	__u8 idle_cores;
	__u8 pad[5];
};

struct raw_task {
	__u64 flip_decay_at; /* jiffies */
	__u32 pid;
	__u32 tgid;
	__u32 last_wakee;
	__u32 wakee_flips;
	__u32 recent_cpu;
	__u32 load;
	__u32 util;
	__u32 flags;
	__u16 uclamp_min;
	__u16 uclamp_max;
	__u32 pad;
};

struct raw_wake {
	__u64 at_ns;
	__u64 jiffies;
	__u32 class;
	__u32 wake_flags; /* the kernel's WF_* */
	__u32 this_cpu;
	__u32 prev_cpu;
	__u32 chosen;
	__u32 nr_allowed;
	struct raw_task waker;
	struct raw_task wakee;
	__u64 allowed[RAW_WORDS];
	struct raw_cpu cpus[RAW_MAX_CPUS];
};

_Static_assert(sizeof(struct raw_cpu) == 48 && sizeof(struct raw_task) == 48 &&
		       __builtin_offsetof(struct raw_wake, cpus) == 264,
	       "src/raw.rs has other sizes");

#endif
