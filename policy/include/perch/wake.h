/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A wake-up, the verdict on it, and the reason for the verdict.
 *
 * These structures are shared by every host: the simulator and the replay
 * build them natively (scripts/mirrors writes Rust's copies of them), the live
 * scheduler builds them in BPF. Fixed-width types only, no padding that
 * a compiler chooses.
 */
#ifndef PERCH_WAKE_H
#define PERCH_WAKE_H

typedef __UINT8_TYPE__ perch_u8;
typedef __UINT16_TYPE__ perch_u16;
typedef __UINT32_TYPE__ perch_u32;
typedef __UINT64_TYPE__ perch_u64;
typedef __INT32_TYPE__ perch_s32;
typedef __INT64_TYPE__ perch_s64;

#define PERCH_INLINE static inline __attribute__((always_inline, unused))

/*
 * The BPF host defines these macros before it includes this file. PERCH_AS is
 * the address space of its arrays. Every loop asks PERCH_MORE, because the BPF
 * verifier wants to see each loop end. PERCH_OUTLINE keeps a function out of
 * line, so that the verifier checks it once and not on every path to it.
 * PERCH_RARE is PERCH_OUTLINE for a function that few decisions call: natively
 * it stays out of line too, because its caller would otherwise keep registers
 * for it in every decision. PERCH_APART is the same with more arguments than a
 * BPF function may have, so BPF has it in line. PERCH_GIVEN marks a pointer of
 * such a function that is never null, and PERCH_GIVEN_AS one that leads into
 * the host's arrays. PERCH_ZERO is a zero to count from that the verifier takes
 * for any number; from a plain 0 it would follow every count for itself.
 */
#ifndef PERCH_AS
#define PERCH_AS
#endif
#ifndef PERCH_MORE
#define PERCH_MORE 1
#endif
#ifndef PERCH_OUTLINE
#define PERCH_OUTLINE static inline __attribute__((unused))
#endif
#ifndef PERCH_RARE
#define PERCH_RARE static __attribute__((noinline, unused))
#endif
#ifndef PERCH_APART
#define PERCH_APART static __attribute__((noinline, unused))
#endif
#ifndef PERCH_ZERO
#define PERCH_ZERO 0
#endif
#ifndef PERCH_GIVEN
#define PERCH_GIVEN
#endif
#ifndef PERCH_GIVEN_AS
#define PERCH_GIVEN_AS
#endif

/* No CPU, no mask, no domain. */
#define PERCH_NONE 0xffffffffu

/* How a mechanism behaves (docs/mechanisms/README.md#modes). */
enum perch_mode {
	PERCH_OFF = 0,	    /* as if it had never been written */
	PERCH_POSTED = 1,   /* as in its source, defects and all */
	PERCH_UPSTREAM = 2, /* as Linux 7.2 has it */
	PERCH_PERCH = 3,    /* known defects fixed */
};

/* The mechanisms (mechanisms.def), in the order in which tables show them. */
enum perch_mechanism {
#define PERCH_MECHANISM(name, help) PERCH_MECHANISM_##name,
#include "mechanisms.def"
	PERCH_NR_MECHANISMS,
};

/* Bytes of struct perch_modes, however many mechanisms there are. */
#define PERCH_MODES_SIZE 16

/*
 * One mode for each mechanism; an experiment's arm consists of nothing else.
 * The build script of crates/perch-policy fills it by the order of
 * mechanisms.def.
 */
struct perch_modes {
#define PERCH_MECHANISM(name, help) perch_u8 name;
#include "mechanisms.def"
	perch_u8 overload_layout; /* enum perch_overload_layout */
	perch_u8 pad[PERCH_MODES_SIZE - 1 - PERCH_NR_MECHANISMS];
};

/*
 * The rules by which stock kernels of different eras choose a CPU
 * (docs/mechanisms/stock.md#eras).
 */
struct perch_rules {
	/*
	 * Nanoseconds after which wakee flips are halved; one second in every
	 * era.
	 */
	perch_u64 flip_decay_ns;
	/*
	 * 7.2: a CPU that runs only SCHED_IDLE tasks is not an idle CPU to a wakee
	 * that is SCHED_IDLE itself.
	 */
	perch_u8 idle_sees_policy;
	/* 7.2: an empty LLC-and-affinity mask ends the scan before its budget is read. */
	perch_u8 empty_mask_fails_early;
	/*
	 * 6.19: fork and exec compare groups by the CPUs that the task may use.
	 * Older kernels compared whole groups: a group of which the task may
	 * use one CPU looked as idle as all of its CPUs, and forks crowded
	 * there (kernel commit 82d6e01a0699).
	 */
	perch_u8 groups_by_affinity;
	/*
	 * Up to 5.6: on asymmetric machines a wake-up that does not fit the
	 * smaller of its two CPUs, or that wake_affine is not asked about, is
	 * balanced like a fork (wake_cap() and SD_BALANCE_WAKE;
	 * docs/mechanisms/capacity.md#before). Any mode of `capacity` replaces
	 * this rule.
	 */
	perch_u8 wake_cap;
	/*
	 * 5.5 and 5.6: the slow path compares groups as these kernels did when
	 * groups were new. Waiting tasks are not counted. The load of groups
	 * without spare capacity is forgotten, so a task stays where it is
	 * between two of them (fixed in 5.8). Of groups with equally many idle
	 * CPUs the first is taken.
	 */
	perch_u8 early_groups;
	/*
	 * Up to 5.9: a wakee's recent CPU is replaced only when it was taken,
	 * and a waker that may pull remembers its own CPU as recent.
	 */
	perch_u8 recent_when_taken;
	/* Percent that domains wider than an LLC tolerate; 0 for the domain's own. */
	perch_u8 far_imbalance_pct;
	/*
	 * Percent that domains within an LLC and wider than a core tolerate; 0
	 * for the domain's own.
	 */
	perch_u8 near_imbalance_pct;
	/*
	 * 3.4: the choice before PELT, wakee flips and the scan CPU by CPU:
	 * early.h instead of steps 1 to 9, wake_affine by weights that are
	 * predicted through the groups' shares, fork and exec by load alone.
	 */
	perch_u8 early_path;
	perch_u8 pad[7];
};

struct perch_policy {
	struct perch_modes modes;
	struct perch_rules rules;
};

/* The causes of a wake-up; bits of perch_wake.flags. */
#define PERCH_WAKE_SYNC 0x1u	 /* the waker is about to sleep (WF_SYNC) */
#define PERCH_WAKE_FORK 0x2u	 /* a new task's first wake-up (WF_FORK) */
#define PERCH_WAKE_EXEC 0x4u	 /* exec: the cheapest moment to move (WF_EXEC) */
#define PERCH_WAKE_CURRENT 0x8u	 /* caller asks for this CPU (WF_CURRENT_CPU) */
#define PERCH_WAKE_IN_TASK 0x10u /* the waker runs in task, not interrupt context */

struct perch_wake {
	perch_u64 now_ns;
	perch_u32 this_cpu; /* where the waker runs */
	perch_u32 prev_cpu; /* where the wakee ran last */
	perch_u32 flags;
	perch_u32 pad;
};

/*
 * The time that a process ran on one CPU, halved once an epoch
 * (docs/mechanisms/cache.md#occupancy).
 */
struct perch_occupancy {
	perch_u64 runtime_ns;
	perch_u64 epoch; /* of that CPU, up to which it was halved */
};

/* The time that all processes together ran on one CPU, and the epoch that this CPU has reached. */
struct perch_epoch {
	perch_u64 runtime_ns;
	perch_u64 epoch;
	perch_u64 next_ns; /* when the next one begins */
	perch_u64 pad;
};

/* The share of one LLC that a process occupies, as of the last scan of the process. */
struct perch_seat {
	perch_u64 occupancy; /* sum over the LLC's CPUs, PERCH_SHARE_ALL for each that is all its own */
	perch_u32 hot_cpu;   /* where it occupies most; PERCH_NONE: nowhere */
	perch_u32 preferred; /* perch mode: it wants to be here */
};

/*
 * A process (an address space) as the cache mechanism sees it. The host writes
 * the fields marked "host"; cache.h writes the others.
 */
struct perch_process {
	struct perch_occupancy PERCH_AS *occupancy; /* one per CPU */
	struct perch_seat PERCH_AS *seats;	    /* one per LLC */
	perch_u64 scan_epoch;			    /* of the CPU whose tick led to the last scan */
	perch_u32 pref_cpu;	 /* in the preferred LLC; PERCH_NONE: none is preferred */
	perch_u32 nr_preferred;	 /* how many LLCs it prefers; more than one in perch mode only */
	perch_u32 nr_threads;	 /* host: threads alive */
	perch_u32 nr_running;	 /* host: threads on a CPU right now */
	perch_u32 running_avg;	 /* average of nr_running at scans, 16ths */
	perch_u32 footprint_kib; /* host: its working set; 0 when unknown */
};

/*
 * How full an LLC is. `util` and `nr` are as old as the last periodic balance
 * that looked (posted, upstream), or as they are now (perch).
 */
struct perch_llc_load {
	perch_u32 util; /* sum over its CPUs, 1024 for one that is always busy */
	perch_u32 nr; /* posted: slow average of runnable tasks; perch: those there or on their way */
	perch_u32 capacity_left; /* of its CPUs, for fair tasks, at the last balance; 0 before the first */
	perch_u32 capacity; /* sum over its CPUs, nothing taken off (perch) */
	perch_u32 cores;
	perch_u32 size_kib;
	perch_u32 busy; /* spread: mean utilisation of its CPUs, 0 to 1024, when the host last looked */
	perch_u32 leaving; /* spread: how many wakees may leave it until the host looks again */
};

/* The facts that the policy knows of a task and the memory that it keeps on the task. */
#define PERCH_TURN_LONG 1000000u
#define PERCH_TASK_PERCPU_KTHREAD 0x1u
#define PERCH_TASK_SCHED_IDLE 0x2u

struct perch_task {
	/* The allowed CPUs, by words of 64; hosts other than the native leave it 0. */
	const perch_u64 PERCH_AS *allowed;
	perch_u64 flip_decay_at_ns;
	perch_u32 id;	       /* unique while the task lives; 0 is not a task */
	perch_u32 last_wakee;  /* id of the task it woke last */
	perch_u32 wakee_flips; /* how often that changed, decayed */
	perch_u32 recent_cpu;  /* recent_used_cpu: where it ran before prev_cpu */
	perch_u32 nr_allowed;  /* CPUs in allowed */
	perch_u32 flags;
	/*
	 * Hierarchical load, 1024 for nice 0 always running. In 3.4 a wakee's
	 * load is the weight that the waker's CPU would gain by it.
	 */
	perch_u32 load;
	perch_u32 util; /* max(util_avg, util_est), 0 to 1024 */
	/* The bounds to which uclamp holds its utilisation; 0 and 1024 without uclamp. */
	perch_u32 uclamp_min, uclamp_max;
	/* Its process; 0 for a kernel thread, or while no mechanism needs it. */
	struct perch_process PERCH_AS *process;
	perch_u32 process_id; /* the native host's number for it plus 1, 0 for none */
	perch_u32 group_id;   /* likewise of its task group, 0 for the root group */
	/*
	 * The CPUs where its task group has something runnable queued, by words
	 * of 64, sleepers that only lose their lag left out; 0 for the root
	 * group, and while no mechanism needs it.
	 */
	const perch_u64 PERCH_AS *queued;
	/*
	 * 3.4: the amount by which the load of the wakee's previous CPU changes
	 * because the task group then has this task's weight elsewhere. It is
	 * at most 0 for the wakee, which comes, and at least 0 for the waker,
	 * which leaves.
	 */
	perch_s32 load_shift;
	/* How long it runs until it sleeps, ns (perch_turn()); PERCH_TURN_LONG: so long or longer, or unknown. */
	perch_u32 turn_ns;
};

/*
 * The reasons why a CPU is chosen. Every host counts these, under the names of
 * mechanisms.def, which has the numbers too: recordings hold them.
 */
enum perch_reason {
#define PERCH_REASON(owner, name, number, words, class, meaning) PERCH_BY_##name = (number),
#include "mechanisms.def"
};

/* Reasons are numbered without a gap, so there are as many as lines. */
enum {
	PERCH_NR_REASONS = 0
#define PERCH_REASON(owner, name, number, words, class, meaning) +1
#include "mechanisms.def"
};

/*
 * The cache mechanism's step on the way to the choice. Hosts count it beside
 * the reason, because the search that follows has a reason of its own. New
 * steps are appended only.
 */
enum perch_cache_step {
	PERCH_CACHE_NONE = 0,	   /* the process prefers nothing, or the wakee is there already */
	PERCH_CACHE_REDIRECTED,	   /* aimed at a preferred LLC; perch: or out of a crowded one */
	PERCH_CACHE_FULL_UTIL,	   /* inhibited: that LLC is over-aggregated by utilisation */
	PERCH_CACHE_FULL_RUNNABLE, /* inhibited: by runnable tasks */
	PERCH_CACHE_UNFIT,	   /* inhibited: no CPU there is allowed and large enough */
	PERCH_CACHE_RETURNED,	   /* aimed there, found no idle CPU, searched again at home */
	PERCH_NR_CACHE_STEPS,
};

struct perch_verdict {
	perch_u32 cpu;
	perch_u32 reason;   /* enum perch_reason */
	perch_u32 examined; /* CPUs the scans looked at; a core looked for idleness is one */
	perch_u32 target;   /* what wake_affine aimed at, or prev_cpu */
	perch_u32 cache;    /* enum perch_cache_step */
	perch_u32 pad;
};

#endif
