/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory that the loader and the BPF program share; scripts/mirrors writes
 * src/interface/generated.rs from it. The loader lays everything out in the
 * arena before it loads the program, and writes the addresses into
 * `perch_config`. From then on no program can write there, so the verifier knows
 * the values and drops what is switched off.
 */
#ifndef PERCH_INTERFACE_H
#define PERCH_INTERFACE_H

#include "../../../policy/hosts/topology.h"

/* The arena's address, the same in the loader and in the program; a multiple of 4 GiB. */
#define PERCH_ARENA_BASE 0x100000000000ull

/*
 * Events that a CPU counts besides the reasons of its decisions. New ones are
 * appended, because perch stats names them by number.
 */
enum perch_event {
#define EVENT(name, help) PERCH_EV_##name,
#include "events.def"
#undef EVENT
	PERCH_NR_EVENTS,
};

#define PERCH_MAX_EVENTS 60u
#define PERCH_BOUNCE_NS 50000000ull
#define PERCH_MAX_REASONS 64u

/* One CPU. The fields that other CPUs read often come first; only the CPU itself counts. */
struct perch_cpu {
	perch_u64 clock;      /* virtual time: ns that a nice-0 task without lag has received */
	perch_u64 curr_vtime; /* virtual time of the task that runs, at its last accounting */
	perch_u64 exec_start; /* that task's se.sum_exec_runtime at that time */
	perch_u64 busy_ns;    /* time that tasks of this scheduler ran here */
	perch_u64 served_ns;  /* when the last task was taken from its queue, scx_bpf_now() */
	perch_u64 idle_since_ns;
	perch_u32 curr_weight; /* sched_ext weight of the task that runs, 100 for nice 0; 0: idle */
	perch_u32 util;	       /* its utilisation in the last milliseconds, 0 to 1024 */
	perch_u32 queued; /* the length of its queue for balancing, at the last turn of the timer */
	perch_u32 pull_from; /* CPU with a longer queue, PERCH_NONE for none */
	perch_u32 capacity;
	perch_u32 node;
	perch_u64 busy_seen_ns;	 /* busy_ns at the last turn of the timer */
	perch_u32 unused_claims; /* turns of the timer that found it idle but claimed */
	perch_u32 stuck; /* turns for which thieves leave its queue alone: no task there may move */
	perch_u32 move_to; /* idle CPU claimed for the task that leaves, PERCH_NONE for none */
	perch_u32 flat; /* the running task's flattened weight, 1024ths of sched_ext's; 0: its own weight */
	perch_u64 allowed_at; /* address of an affinity mask, passed through memory (affinity.h) */
	perch_u32 llc;	      /* its number, PERCH_NONE without one */
	perch_u32 process;    /* slot of the running thread's process plus 1; 0: it has none */
	perch_u32 refused;    /* pulls in a row that left its tasks in the LLC that they prefer */
	perch_u32 seeks;      /* enum perch_seeks */
	perch_u32 band_coming; /* priorities on their way to its queue, as look_at_queue() returns them */
	perch_u32 band_look_at; /* when it looks next for tasks that wait too long, in 2^20 ns */
	/* For the real-time band, on a cache line of their own. Priorities are 1 to 99; 0: none. */
	perch_u32 band_prio;	/* priority of the task that runs or was just sent here */
	perch_u32 band_first;	/* the highest priority that waits here */
	perch_u32 band_movable; /* the highest priority that waits here and may run elsewhere */
	perch_u32 band_spent; /* 1: the band has used up its share of this period; 2: and others ran */
	perch_u32 band_changes;	 /* times that a task came to its queue or left it */
	perch_u32 overloaded;	 /* enum perch_overloaded */
	perch_u32 overload_mark; /* written by perch_overload_set() */
	perch_u32 overload_home; /* the counter that this CPU reads first */
	perch_u64 band_since_ns; /* when the share's period began, scx_bpf_now() */
	perch_u64 band_used_ns;	 /* ns that band tasks ran since then */
	perch_u64 band_arrivals; /* tasks that were queued behind all others of their priority */
	perch_u64 band_returns;	 /* tasks that were queued before all others of their priority */
	perch_u32 group;	 /* slot of the running task's group; 0: the root group */
	perch_u32 impatient;  /* the timer asks this CPU to look for a task that waits too long */
	perch_u32 move_event; /* enum perch_event, counted when the task goes to move_to */
	perch_u32 behind;     /* a task waits for the running one to sleep (behind.h) */
	perch_u64 jumped; /* sum of what `clock` changed by when it was set to other CPUs' clocks */
	perch_u64 turn_start; /* the running task's se.sum_exec_runtime when it was picked */
	perch_u32 held;	      /* runnable tasks of its run queue that cpu.max holds back */
	perch_u32 limited;    /* enum perch_limited, of the running task */
	perch_u32 swept;      /* how often a group had reached its limit when its queue was swept */
	perch_u32 sched_idle; /* the running task counts as SCHED_IDLE */
	perch_s64 granted_ns; /* time that the running task's groups granted and it has not used */
	/* At the last tick at which tasks waited: the weights of its tasks, the running one among them. */
	perch_u64 weights;
	perch_u32 weighed;  /* how many tasks these are; 0: none waited yet */
	perch_u32 lightest; /* the smallest weight of those that waited */
	perch_u64 load; /* the weight that competes for it, at the last turn of the timer; 0: it idles */
	perch_u32 ranking;   /* among preferred cores: the higher, the sooner */
	perch_u32 outranked; /* a CPU of its LLC ranks higher and has the same capacity */
	perch_u64 events[PERCH_MAX_EVENTS];
	perch_u64 reasons[PERCH_MAX_REASONS];
};

/* Whether cpu.max limits the running task's group, or one above it. */
enum perch_limited {
	PERCH_UNLIMITED = 0,
	PERCH_LIMITED,
	PERCH_PASSES, /* and the task runs nevertheless, until the next tick */
};

/* What the next dispatch looks for, as its tick found one: an idle CPU for the running task. */
enum perch_seeks {
	PERCH_SEEKS_NOTHING = 0,
	PERCH_SEEKS_HOME, /* in the LLC that the task's process prefers */
	PERCH_SEEKS_CORE, /* of an idle core, as a sibling is busy */
	PERCH_SEEKS_RANK, /* of an idle core that ranks higher */
};

/* A CPU is overloaded while a band task waits on it that may run elsewhere. */
enum perch_overloaded {
	PERCH_NOT_OVERLOADED = 0,
	PERCH_OVERLOADED,
	PERCH_OVERLOAD_CHANGES, /* some CPU is finding out */
};

#define PERCH_MAX_BANDS 16u
#define PERCH_BAND_GLOB 32u
#define PERCH_BAND_PATH 192u
#define PERCH_BAND_NAME 64u /* bytes of one folder's name in a path, its 0 included */

enum perch_band_flags {
	PERCH_BAND_COMM = 1,
	PERCH_BAND_CGROUP = 2,
	PERCH_BAND_NICE = 4,
	PERCH_BAND_USER = 8,
};

/*
 * A rule of the configuration: the tasks that it chooses for the band, and their
 * priority. A task has to meet every condition that the rule names.
 */
struct perch_band {
	perch_u64 slice_ns; /* round robin: the turn of each task; 0: first in, first out */
	perch_u32 flags;    /* enum perch_band_flags: the conditions that it names */
	perch_u32 prio;	    /* 1 to 99, 99 the highest */
	perch_s32 nice;
	perch_u32 depth;	    /* folders in `path` */
	char comm[PERCH_BAND_GLOB]; /* a pattern with * and ?, ends with a 0 */
	char path[PERCH_BAND_PATH]; /* a cgroup's folders from the root on; each ends with a 0 */
	perch_u32 uid;		    /* the real and the effective user; PERCH_NONE: nobody */
	perch_u32 line;
};

/*
 * The idle CPUs among 1 << idle_shift of them, each at its place in a word of 64
 * (base/idle.h); as large as the largest line that caches of our machines move.
 */
struct perch_idle {
	perch_u64 cpus;
	perch_u64 line[15];
};

struct perch_llc {
	perch_u32 set, nr_idle_scan;
	perch_u32 span;	      /* CPUs of the domain above, whose balancer looks at this LLC */
	perch_u32 idle_cores; /* one of its cores may be idle as a whole */
	perch_u64 note_at_ns; /* when that balancer looks next, bpf_ktime_get_ns() */
	perch_u64 line[5];    /* a cache line each */
};

/* A process that the cache mechanism follows; each fills a cache line. */
struct perch_slot {
	struct perch_process process;
	perch_u32 tgid; /* the process's number; 0: the slot is free */
	perch_u32 pad[3];
};

/* The part of a task group that is on one CPU. */
struct perch_group_cell {
	perch_u64 vtime; /* the latest that its tasks reached here, as a reading less `jumped` */
	perch_u32 nr;	 /* tasks of the group that are queued or run here */
	perch_u32 pad;
};

/* A task group; each fills two cache lines. Slots are numbered from 1. */
struct perch_group_slot {
	perch_s64 load;	   /* sum of its runnable tasks' weights and of its groups' `counted` */
	perch_u32 weight;  /* cpu.weight, 1 to 10000 */
	perch_u32 counted; /* the part of its parent's load that stands for it */
	perch_u32 parent;  /* slot of the group above; 0: the root group */
	perch_u32 refs;	   /* tasks and groups in it, and one more until it is deleted */
	perch_u64 PERCH_AS *queued; /* a bit for each CPU, by words of 64: it has a task there */
	struct perch_group_cell PERCH_AS *cells; /* one per CPU */
	perch_u32 limited;			 /* it or a group above has a quota */
	perch_u32 throttled;			 /* it has used up its quota */
	perch_u32 idle;				 /* cpu.idle of this group */
	perch_u32 sched_idle;			 /* cpu.idle of it or of a group above */
	perch_u64 id;				 /* of the cgroup: its folder's inode */
	/* For cpu.max (follow/limit.h), on a cache line of their own: */
	perch_s64 left_ns;    /* time that its tasks may still run; below 0: they ran too long */
	perch_u64 quota_ns;   /* time that each period brings; 0: no limit */
	perch_u64 period_ns;  /* length of a period */
	perch_u64 burst_ns;   /* time of former periods that it may keep */
	perch_u64 renewed_ns; /* when its period began, bpf_ktime_get_ns() */
	perch_u64 line2[3];
};

/*
 * The memory that the scheduler keeps of a task between its wake-ups, found by
 * the lower bits of its pid; each fills a cache line. Where two live tasks share
 * a place, each finds the other's pid there and starts afresh. That does little
 * harm: flips and the recent CPU are hints, and utilisation builds up again.
 */
struct perch_memory {
	perch_u64 flip_decay_at_ns;
	perch_u32 pid, last_wakee, wakee_flips, recent_cpu;
	/* For the utilisation (follow/util.h): */
	perch_u64 util_at_ns; /* the moment for which `util` holds, scx_bpf_now() */
	perch_u32 util;	      /* utilisation, 0 to 1024, times 2^PERCH_PELT_SHIFT */
	perch_u32 util_est;   /* estimate of what the next activation will need, 0 to 1024 */
	/* For the cache mechanism (follow/process.h): */
	perch_u32 process;	/* slot of its process plus 1; 0: it has none */
	perch_u32 llc;		/* LLC in which the task ran last; PERCH_NONE: none yet */
	perch_u32 llc_before;	/* the LLC before that one */
	perch_u32 turn_ns;	/* the time it runs before it sleeps (behind.h) */
	perch_u64 llc_since_ns; /* when the task came to `llc`, scx_bpf_now() */
};

/*
 * The reasons by which waits are told apart: what happened to the task when it
 * became runnable, or while it waited. New ones are appended, because perch stats
 * names them by number.
 */
enum perch_wait_reason {
#define WAIT(name, help) PERCH_WAIT_##name,
#include "waits.def"
#undef WAIT
	PERCH_NR_WAITS,
};

/* Bucket b counts the waits of at most 2^b us that are in none before it; the last, all longer ones. */
#define PERCH_WAIT_BUCKETS 26u

/* A task's wait, found by the lower bits of its pid, as its memory is. */
struct perch_wait {
	perch_u64 since_ns; /* when it began, scx_bpf_now(); 0: the task does not wait */
	perch_u32 pid;
	perch_u16 reason; /* enum perch_wait_reason */
	perch_u16 cpu;	  /* where the task is to run */
};

/* The waits that ended on one CPU. */
struct perch_waits {
	perch_u64 counts[PERCH_NR_WAITS][PERCH_WAIT_BUCKETS];
	perch_u64 sums_ns[PERCH_NR_WAITS];
};

/* The waits of a group's tasks that ended in one LLC, whatever their reasons; four cache lines. */
struct perch_group_waits {
	perch_u64 counts[PERCH_WAIT_BUCKETS];
	perch_u64 sum_ns;
	/* Those in which cpu.max held the task back, which are not among the others: */
	perch_u64 limited;
	perch_u64 limited_ns;
	perch_u64 line[3];
};

/* Written by the loader, read-only for the program. Times are in ns. */
struct perch_config {
	struct perch_policy policy;
	struct perch_topology topology;
	struct perch_cpu PERCH_AS *cpus; /* nr_possible of them */
	struct perch_llc PERCH_AS *llcs;
	perch_u64 PERCH_AS
		*waiting; /* a bit for each CPU, by words of 64: its queue may hold a task */
	struct perch_idle PERCH_AS *idle;    /* of nr_possible CPUs */
	perch_u64 PERCH_AS *misfits;	     /* likewise: it runs a task that does not fit it */
	perch_u64 PERCH_AS *sched_idle;	     /* likewise: only tasks of SCHED_IDLE are there */
	struct perch_epoch PERCH_AS *epochs; /* one per CPU, for the cache mechanism */
	struct perch_llc_load PERCH_AS *llc_loads; /* one per LLC, for cache and spread */
	perch_u64 slice_ns;			   /* slice of a task that is alone */
	perch_u64 slice_min_ns;			   /* the least slice, however many tasks wait */
	perch_u64 lag_ns;	  /* the most virtual time a task is owed or owes */
	perch_u64 preempt_ns;	  /* a wakee so far behind the running task interrupts it */
	perch_u64 balance_ns;	  /* period of the timer that compares queues, at least 1 ms */
	perch_u64 behind_ns;	  /* a waker whose turns are shorter has its wakee behind it */
	perch_u64 behind_most_ns; /* the same, where another CPU is in its deepest idle state */
	perch_u64 steal_remote_ns; /* the time for which thieves leave the queues of other nodes alone */
	struct perch_memory PERCH_AS *memories;
	perch_u32 memory_mask; /* number of memories, a power of two, less 1 */
	perch_u32 nr_llcs;
	/*
	 * CPUs that may come online. A CPU beyond topology.nr_cpus has a queue,
	 * which its kernel threads need until the program is loaded anew.
	 */
	perch_u32 nr_possible;
	perch_u8 detail;     /* count PERCH_EV_NEAR_* too */
	perch_u8 capacities; /* CPUs differ in capacity, and mechanism capacity is on */
	perch_u8 cache;	     /* enum perch_mode of mechanism cache */
	perch_u8 utils;	     /* utilisation is followed, and running tasks may be moved */
	struct perch_slot PERCH_AS *slots;
	perch_u32 nr_slots; /* 0 while cache is off */
	/* `capacities`, `utils`, `cache`, `parts` or `ranks`: one question in place of several (followers.def). */
	perch_u32 follows;
	/* The real-time band. Without rules there is no band. */
	struct perch_band PERCH_AS *bands;
	struct perch_overload PERCH_AS *overload;
	perch_u64 PERCH_AS *overloaded; /* a bit for each CPU, by words of 64 */
	perch_u64 band_period_ns;
	perch_u64 band_share_ns; /* time of each period that the band of a CPU may use */
	perch_u32 nr_bands;
	perch_u16 band_cgroups; /* a rule names a cgroup */
	perch_u16 band_users;	/* a rule names a user */
	/* Task groups. Without slots cgroups do not count. */
	struct perch_group_slot PERCH_AS *groups;
	perch_u64 PERCH_AS *limits; /* a bit for each slot, by words of 64: cpu.max limits it */
	perch_u32 nr_groups;
	perch_u32 credits; /* mechanism steer is on, and a wakee in an empty queue is credited */
	perch_u16 parts;   /* cores have threads, and busy siblings are parted */
	perch_u16 ranks;   /* the kernel prefers cores to others of their LLC, and tasks go there */
	perch_u32 idle_shift; /* 0 to 6 */
	/* How long tasks wait. Unless it is counted, there is no memory for it. */
	struct perch_wait PERCH_AS *task_waits; /* as many as memories */
	struct perch_waits PERCH_AS *waits;	/* one per CPU */
	/* group_parts for each slot of the groups, and before them for slot 0 */
	struct perch_group_waits PERCH_AS *group_waits;
	perch_u32 counts_waits;
	perch_u32 group_parts; /* LLCs that count waits by group for themselves; 0: none */
};

/* The reason why the kernel unloaded the program; written once, by ops.exit. */
struct perch_exit {
	perch_s64 code;
	perch_s32 kind; /* 0: the program still runs */
	perch_u32 pad;
	char reason[128];
	char message[1024];
};

#endif
