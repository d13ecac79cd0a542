/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the loader and the BPF program share; scripts/mirrors
 * writes src/interface/generated.rs from it.
 * The loader lays everything out in the arena before it loads the program
 * and tells it by `perch_config`, which is read-only from then on, so that
 * the verifier drops what is switched off.
 */
#ifndef PERCH_INTERFACE_H
#define PERCH_INTERFACE_H

#include "../../../policy/hosts/topology.h"

/* Where the arena lies, in the loader as in the program; a multiple of 4 GiB. */
#define PERCH_ARENA_BASE 0x100000000000ull

/* What is counted besides the reasons. Append only: perch stats has their names. */
enum perch_event {
	PERCH_EV_EXAMINED = 0,	 /* CPUs that the policy's scans looked at */
	PERCH_EV_DIRECT,	 /* tasks put straight on an idle CPU that was claimed for them */
	PERCH_EV_CLAIM_LOST,	 /* the chosen idle CPU was gone when it was claimed */
	PERCH_EV_QUEUED,	 /* tasks queued behind others */
	PERCH_EV_PINNED,	 /* of those and the direct ones, tasks that may use one CPU only */
	PERCH_EV_PREEMPTED,	 /* running tasks interrupted by a wakee far behind them */
	PERCH_EV_KICKED,	 /* idle CPUs woken to take work that waits elsewhere */
	PERCH_EV_REVIVED,	 /* idle CPUs that were claimed and never used */
	PERCH_EV_STOLEN_CLUSTER, /* tasks taken from the queue of a CPU of the same cluster */
	PERCH_EV_STOLEN_LLC,	 /* of the same last-level cache */
	PERCH_EV_STOLEN_NODE,	 /* of the same node */
	PERCH_EV_STOLEN_REMOTE,	 /* of another node */
	PERCH_EV_PULLED,	 /* tasks taken from a longer queue by a CPU that had work */
	PERCH_EV_NEAR_IDLE,	 /* detail: wake-ups with an idle CPU in the target's cluster */
	PERCH_EV_NEAR_TAKEN,	 /* detail: of those, the wakee went to that cluster */
	PERCH_EV_MOVED_UP,	 /* running tasks sent on to a larger CPU that was idle */
	PERCH_EV_CALLED_UP,   /* of those that do not fit, called by a larger CPU that went idle */
	PERCH_EV_LEFT_LARGER, /* tasks that a smaller CPU did not steal, as they do not fit it */
	/* What the cache mechanism did with a wake-up: in the order of enum perch_cache_step. */
	PERCH_EV_CACHE_REDIRECTED,    /* aimed at an LLC that the process prefers */
	PERCH_EV_CACHE_FULL_UTIL,     /* not so, as that LLC is too busy */
	PERCH_EV_CACHE_FULL_RUNNABLE, /* not so, as it has too many runnable tasks */
	PERCH_EV_CACHE_UNFIT,	      /* not so, as it has no CPU that the task may use and fits */
	PERCH_EV_CACHE_RETURNED,      /* aimed there, found nobody idle, searched where it was */
	PERCH_EV_CACHE_KEPT,  /* tasks that another LLC left in a queue of the one they prefer */
	PERCH_EV_CACHE_MOVED, /* running tasks sent to an idle CPU of the LLC they prefer */
	PERCH_EV_BOUNCED,     /* tasks that changed LLC and were back within PERCH_BOUNCE_NS */
	PERCH_EV_PROCESSES_TRACKED,   /* processes that got a place in the table */
	PERCH_EV_PROCESSES_ENDED,     /* of those, that gave it back */
	PERCH_EV_PROCESSES_UNTRACKED, /* processes for which the table had no room */
	/* The real-time band (band.h, migrate.h): */
	PERCH_EV_BAND_WAKEUPS,	 /* wake-ups of its tasks, which the policy is not asked for */
	PERCH_EV_BAND_QUEUED,	 /* times that one of its tasks was queued */
	PERCH_EV_BAND_PREEMPTED, /* CPUs interrupted for one of its tasks */
	PERCH_EV_BAND_PUSHED,	 /* tasks that were queued on a CPU which runs a lower priority */
	PERCH_EV_BAND_CALLED,	 /* CPUs that were told to come for a task that waits */
	PERCH_EV_BAND_PULLED, /* tasks taken from another CPU's queue by one that ran a lower priority */
	PERCH_EV_BAND_THROTTLED, /* periods of a CPU in which the band waited for the others */
	/* How many CPUs were overloaded, when it was asked: in the order of enum perch_overload_level. */
	PERCH_EV_OVERLOAD_NONE,
	PERCH_EV_OVERLOAD_ONE,
	PERCH_EV_OVERLOAD_MORE,
	PERCH_EV_BAND_WAITED, /* overloaded CPUs, at their ticks */
	PERCH_EV_BAND_PASSED, /* of those, a lower priority ran where the one that waits may run */
	PERCH_EV_BAND_RELIEVED, /* tasks that had waited for so long that they came first for once */
	/* Task groups (group.h): */
	PERCH_EV_GROUPS_TRACKED,   /* cgroups that got a place in the table */
	PERCH_EV_GROUPS_ENDED,	   /* of those, that gave it back */
	PERCH_EV_GROUPS_UNTRACKED, /* cgroups for which it had no room: part of the one above */
	PERCH_EV_CREDITED, /* wakees that stood before others as their group had nobody there */
	PERCH_EV_RELIEVED, /* tasks that had waited for so long that they came first for once */
	PERCH_NR_EVENTS,
};

#define PERCH_MAX_EVENTS 54u
#define PERCH_BOUNCE_NS 50000000ull
#define PERCH_MAX_REASONS 64u

/* One CPU. What others read often comes first; counters are its own. */
struct perch_cpu {
	perch_u64 clock;      /* virtual time: what a nice-0 task with no lag has received */
	perch_u64 curr_vtime; /* virtual time of the task that runs, at its last accounting */
	perch_u64 exec_start; /* its se.sum_exec_runtime at that time */
	perch_u64 busy_ns;    /* time that tasks of this scheduler ran here */
	perch_u64 served_ns;  /* since when nobody was taken from its queue, scx_bpf_now() */
	perch_u64 idle_since_ns;
	perch_u32 curr_weight; /* sched_ext weight of the task that runs, 100 for nice 0; 0: idle */
	perch_u32 util;	       /* of the last milliseconds, 0 to 1024 */
	perch_u32 queued;      /* runnable tasks at the last turn of the timer */
	perch_u32 pull_from;   /* CPU with a longer queue, PERCH_NONE for none */
	perch_u32 capacity;
	perch_u32 node;
	perch_u64 busy_seen_ns;	 /* busy_ns at the last turn of the timer */
	perch_u32 unused_claims; /* turns of the timer that found it idle but claimed */
	perch_u32 stuck;      /* turns for which its queue is left alone: nobody in it may move */
	perch_u32 move_to;    /* idle CPU claimed for the task that leaves, PERCH_NONE for none */
	perch_u32 flat;	      /* what the running task is worth, 1024ths of sched_ext's weight */
	perch_u64 allowed_at; /* address of the mask of the task looked at last */
	perch_u32 llc;	      /* its number, PERCH_NONE without one */
	perch_u32 process;    /* whose thread runs: its slot plus 1, 0 for nobody's */
	perch_u32 refused;    /* pulls in a row that left its tasks in the LLC they prefer */
	perch_u32 homeward;   /* the running task has somewhere to go in the LLC that it prefers */
	perch_u32 band_coming; /* priorities on their way to its queue, as look_at_queue() has them */
	perch_u32 band_looked; /* when who waits for ever was last looked for, in 2^30 ns */
	/* The real-time band, on a cache line of its own. Priorities are 1 to 99; 0: none. */
	perch_u32 band_prio;	 /* of the task that runs or was just sent here */
	perch_u32 band_first;	 /* the highest that waits here */
	perch_u32 band_movable;	 /* the highest that waits here and may run elsewhere */
	perch_u32 band_spent;	 /* the band's share of this period is used up; 2: and others ran */
	perch_u32 band_changes;	 /* times that somebody came to its queue or left it */
	perch_u32 overloaded;	 /* enum perch_overloaded */
	perch_u32 overload_mark; /* perch_overload_set()'s */
	perch_u32 overload_home; /* the counter that this CPU reads first */
	perch_u64 band_since_ns; /* when its period began, scx_bpf_now() */
	perch_u64 band_used_ns;	 /* time that band tasks ran since then */
	perch_u64 band_arrivals; /* tasks that joined at the end of their priority */
	perch_u64 band_returns;	 /* tasks that came back to the head of theirs */
	perch_u32 group;	 /* slot of the running task's group, 0 for the root's */
	perch_u32 impatient;	 /* somebody may wait here for too long: it is to be looked */
	perch_u64 jumped;	 /* by how much `clock` was set to those of others, in all */
	perch_u64 events[PERCH_MAX_EVENTS];
	perch_u64 reasons[PERCH_MAX_REASONS];
};

/* Whether a CPU counts as overloaded: it has a band task that waits and may run elsewhere. */
enum perch_overloaded {
	PERCH_NOT_OVERLOADED = 0,
	PERCH_OVERLOADED,
	PERCH_OVERLOAD_CHANGES, /* somebody is finding out */
};

#define PERCH_MAX_BANDS 16u
#define PERCH_BAND_GLOB 32u
#define PERCH_BAND_PATH 192u
#define PERCH_BAND_NAME 64u /* bytes of one folder's name in a path, its 0 included */

enum perch_band_flags {
	PERCH_BAND_COMM = 1,
	PERCH_BAND_CGROUP = 2,
	PERCH_BAND_NICE = 4,
};

/* Whom a rule of the configuration chooses, and what for. All that it names must be so. */
struct perch_band {
	perch_u64 slice_ns; /* round robin: the turn of each; 0: first in, first out */
	perch_u32 flags;    /* enum perch_band_flags: what it names */
	perch_u32 prio;	    /* 1 to 99, 99 the highest */
	perch_s32 nice;
	perch_u32 depth;	    /* folders in `path` */
	char comm[PERCH_BAND_GLOB]; /* with * and ?, ends with a 0 */
	char path[PERCH_BAND_PATH]; /* a cgroup's folders from the root, each ends with a 0 */
	perch_u64 line;
};

struct perch_llc {
	perch_u32 set, nr_idle_scan;
	perch_u32 span; /* CPUs of the domain above, whose balance looks at this LLC */
	perch_u32 pad;
	perch_u64 note_at_ns; /* when it does so next, bpf_ktime_get_ns() */
	perch_u64 line[5];    /* a cache line each */
};

/* A process that the cache mechanism follows; a cache line each. */
struct perch_slot {
	struct perch_process process;
	perch_u32 tgid; /* whose it is; 0: nobody's */
	perch_u32 pad[3];
};

/* What of a task group is on one CPU. */
struct perch_group_cell {
	perch_u64 vtime; /* to which its tasks came here, a reading of the CPU's clock less `jumped` */
	perch_u32 nr;	 /* how many of them are queued or run here */
	perch_u32 pad;
};

/* A task group; a cache line each. Slots count from 1. */
struct perch_group_slot {
	perch_s64 load;	   /* weights of what is runnable in it: tasks, and groups by `counted` */
	perch_u32 weight;  /* cpu.weight, 1 to 10000 */
	perch_u32 counted; /* what of it stands in its parent's load */
	perch_u32 parent;  /* slot of the group above; 0: the root's */
	perch_u32 refs;	   /* tasks and groups in it, and one while it is not deleted */
	perch_u64 PERCH_AS *queued;		 /* by words of 64 CPUs: where it has somebody */
	struct perch_group_cell PERCH_AS *cells; /* one a CPU */
	perch_u64 line[3];
};

/*
 * What the policy remembers of a task between its wake-ups, found by the lower
 * bits of its pid. Where two live tasks share a place, each finds the other's
 * pid there and starts afresh: flips and recent CPU are hints, utilisation
 * builds up again, and nothing else of a task is kept here. A cache line each.
 */
struct perch_memory {
	perch_u64 flip_decay_at_ns;
	perch_u32 pid, last_wakee, wakee_flips, recent_cpu;
	/* Where capacities differ (util.h): */
	perch_u64 util_at_ns; /* until when `util` was brought up to date, scx_bpf_now() */
	perch_u32 util;	      /* mean running time by capacity, in 1/2^PERCH_PELT_SHIFT */
	perch_u32 util_est;   /* what its activations come to, 0 to 1024 */
	/* For the cache mechanism (process.h): */
	perch_u32 process;    /* slot of its process plus 1; 0: it has none */
	perch_u32 llc;	      /* where it ran last; PERCH_NONE: nowhere yet */
	perch_u32 llc_before; /* and before that */
	perch_u32 pad;
	perch_u64 llc_since_ns; /* when it changed from the one to the other, scx_bpf_now() */
};

struct perch_config {
	struct perch_policy policy;
	struct perch_topology topology;
	struct perch_cpu PERCH_AS *cpus; /* nr_possible of them */
	struct perch_llc PERCH_AS *llcs;
	perch_u64 PERCH_AS *waiting;	     /* by words of 64 CPUs: whose queue may hold a task */
	perch_u64 PERCH_AS *misfits;	     /* likewise: on which a task runs that does not fit */
	struct perch_epoch PERCH_AS *epochs; /* one a CPU, for the cache mechanism */
	struct perch_llc_load PERCH_AS *llc_loads; /* one an LLC, likewise */
	perch_u64 slice_ns;			   /* for a task that is alone */
	perch_u64 slice_min_ns;			   /* however many wait */
	perch_u64 lag_ns;	   /* the most virtual time a task is owed or owes */
	perch_u64 preempt_ns;	   /* a wakee so far behind the running task interrupts it */
	perch_u64 balance_ns;	   /* period of the timer that compares queues, at least 1 ms */
	perch_u64 steal_remote_ns; /* queues of other nodes are left alone so long */
	struct perch_memory PERCH_AS *memories;
	perch_u32 memory_mask; /* number of memories - 1; a power of two less one */
	perch_u32 nr_llcs;
	/*
	 * CPUs that may come online; those beyond topology.nr_cpus have a queue,
	 * which their kernel threads need until the program is loaded anew.
	 */
	perch_u32 nr_possible;
	perch_u8 detail;     /* count PERCH_EV_NEAR_* too */
	perch_u8 capacities; /* they differ, and it is asked who fits where */
	perch_u8 cache;	     /* enum perch_mode of the mechanism */
	perch_u8 utils;	     /* tasks' utilisation is followed, and running ones are moved by it */
	struct perch_slot PERCH_AS *slots;
	perch_u32 nr_slots; /* 0 while cache is off */
	/* `utils` or `cache`: even a question that is always answered no costs three instructions. */
	perch_u32 follows;
	/* The real-time band; without rules there is none. */
	struct perch_band PERCH_AS *bands;
	struct perch_overload PERCH_AS *overload;
	perch_u64 PERCH_AS *overloaded; /* by words of 64 CPUs: which ones are */
	perch_u64 band_period_ns;
	perch_u64 band_share_ns; /* of each period, for the band of each CPU */
	perch_u32 nr_bands;
	perch_u32 band_cgroups; /* some rule names a cgroup */
	/* Task groups; without slots cgroups do not count. */
	struct perch_group_slot PERCH_AS *groups;
	perch_u32 nr_groups;
	perch_u32 credits; /* mechanism steer is on: who wakes in an empty queue is credited */
};

/* Why the kernel let the program go; written once, by ops.exit. */
struct perch_exit {
	perch_s64 code;
	perch_s32 kind; /* 0: it still runs */
	perch_u32 pad;
	char reason[128];
	char message[1024];
};

#endif
