/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record of one wake-up, which the recorder's program hands out; scripts/mirrors writes
 * src/raw/generated.rs from this file. A record is a raw_wake, then sets of CPUs as words of 64
 * (enum raw_set), then a capacity a CPU (16 bits, filled up to 8 bytes), then, where raw_wake.rows
 * says so, a raw_cpu a CPU, once or twice, then, where it is twice, a raw_group a group of CPUs.
 */
#ifndef PERCH_RECORD_RAW_H
#define PERCH_RECORD_RAW_H

#define RAW_MAX_CPUS 1024
/* The number of domains that a CPU may be in. */
#define RAW_MAX_LEVELS 12

/* Bits of raw_task.flags. */
#define RAW_PERCPU_KTHREAD 1u
#define RAW_SCHED_IDLE 2u
#define RAW_OLD_LOAD 4u
#define RAW_EXITING 8u

/* Bits of raw_wake.context. */
#define RAW_IN_TASK 1u
#define RAW_CONTEXT_KNOWN 2u
#define RAW_HEARD 4u /* the recorder heard all that the kernel asked about idle CPUs */

/* raw_shared.idle_scan of a domain that the kernel scans whatever the domain's size is. */
#define RAW_NO_LIMIT 0xffffffffu

enum raw_set {
	RAW_SEEN, /* the CPUs looked at: those in the LLCs of waker and wakee, or all */
	RAW_IDLE, /* the seen CPUs that were idle when the choice began */
	RAW_SCHED_IDLE_ONLY,
	RAW_IDLE_LATER, /* the seen CPUs that were idle when the choice was made */
	RAW_SCHED_IDLE_ONLY_LATER,
	RAW_ALLOWED,
	RAW_ASKED, /* the CPUs of which the kernel asked whether they are idle; see kernel_asks() */
	RAW_SETS,
};

struct raw_cpu {
	__u64 idle_since_ns;
	__u32 load;
	__u32 runnable;
	__u32 util_avg;
	__u32 util_est;
	__u32 idle_exit_ns;
	__u16 nr_running;
	__u16 nr_delayed;
};

/*
 * The capacity of a group of a domain, and the largest of its CPUs'; 0 where the kernel has no such
 * group.
 */
struct raw_group {
	__u32 capacity;
	__u32 max_capacity;
};

/* The place of a group: it is the one of this CPU in the CPU's domain of this level. */
struct raw_group_place {
	__u32 cpu;
	__u32 level; /* from 0 for the lowest domain */
};

/* The figures of two CPUs: the waker's, and the wakee's last. */
struct raw_near {
	__u32 load;
	__u16 nr_running;
	__u16 nr_delayed;
};

/* The figures that such a CPU shares with others. */
struct raw_shared {
	__u32 llc_idle_scan;
	__u32 asym_idle_scan; /* budget of the domain of unequal CPUs */
	__u32 idle_cores;
	__u32 pad;
};

struct raw_task {
	__u64 flip_decay_at; /* in jiffies */
	__u32 pid;
	__u32 tgid;
	__u32 last_wakee;
	__u32 wakee_flips;
	__u32 recent_cpu;
	__u32 load;
	__u16 util_avg;
	__u16 util_est;
	__u32 flags;
	__u16 uclamp_min;
	__u16 uclamp_max;
	__u16 runnable;
	__s16 numa_node; /* the node that NUMA balancing prefers; -1 for none */
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
	__u32 context;
	__u32 rows; /* rows a CPU: none, 1 of the beginning, or 2 with that of the end */
	__u32 turn; /* counts the uses of this place */
	__u32 timed;
	__u32 compared;	     /* enum compared */
	__u32 scans;	     /* the kernel scans the cache's CPUs */
	__u64 queue;	     /* the address of the wakee's queue */
	__u32 queue_load[2]; /* of the queues of waker and wakee, when the kernel compared loads */
	struct raw_task waker;
	struct raw_task wakee;
	struct raw_shared shared[2]; /* one for this_cpu, one for prev_cpu */
	struct raw_near near[2]; /* the same CPUs, when the choice began, or better: see_compared() */
	struct raw_near later[2];
	__u64 sets[];
};

#endif
