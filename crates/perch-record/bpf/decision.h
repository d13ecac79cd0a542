/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record of one decision of the fair class about one queue, which the programs of
 * decisions.bpf.c hand out; scripts/mirrors writes src/raw/generated.rs from this file. A record is
 * a raw_decision with as many members as it says.
 */
#ifndef PERCH_RECORD_DECISION_H
#define PERCH_RECORD_DECISION_H

/* The longest queue that is recorded; decisions about longer ones are counted. */
#define RAW_MEMBERS 64

/* raw_decision.picked and its like: none of those that wait. */
#define RAW_NOBODY 0xffffffffu

enum raw_kind {
	RAW_PICK,    /* which entity runs next */
	RAW_PREEMPT, /* whether a wakee makes the running entity give way */
	RAW_PLACE,   /* the vruntime and the deadline with which an entity enters a queue */
	RAW_LEAVE,   /* the lag with which it leaves, and whether it stays queued for that */
	RAW_KINDS,
};

/* Bits of raw_member.flags. */
#define RAW_DELAYED 1u
#define RAW_RELATIVE 2u
#define RAW_GROUP 4u
#define RAW_NEW 8u	   /* RAW_PLACE: the task enters its first queue */
#define RAW_NOT_NORMAL 16u /* SCHED_BATCH or SCHED_IDLE */
#define RAW_QUEUED 32u

/* Bits of raw_decision.flags. */
#define RAW_RUNNING 1u	  /* an entity runs from this queue */
#define RAW_PROTECT 2u	  /* its protection counts */
#define RAW_SLEEPS 4u	  /* the entity that leaves goes to sleep, and may stay queued */
#define RAW_PREEMPTED 8u  /* the wakee was picked */
#define RAW_FORKED 16u	  /* the wakee has just been forked */
#define RAW_NEXT_RUNS 64u /* the entity that runs is the next buddy */
#define RAW_RUNS 32u	  /* the entity that leaves is the one that runs */

struct raw_member {
	__u64 vruntime;
	__u64 deadline;
	__u64 protected; /* the vruntime up to which it is protected; 0 where it is not */
	__s64 vlag;
	__u64 slice_ns;
	__u64 weight; /* in the kernel's unit: 1048576 at nice 0 */
	__u32 pid;    /* 0 for a group */
	__u32 flags;
};

struct raw_decision {
	__u64 at_ns;
	__u64 queue;	    /* the queue, while the decision is under way */
	__u64 wakee_entity; /* RAW_PREEMPT: the wakee's entity in that queue */
	__u64 zero_v;
	__s64 weighted_v; /* the kernel's own sums, without the entity that runs */
	__u64 waiting_weight;
	__u32 kind;
	__u32 cpu;
	__u32 flags;
	__u32 nr_queued;
	__u32 next;   /* the next buddy's place among those that wait */
	__u32 wakee;  /* RAW_PREEMPT: the wakee's place */
	__u32 picked; /* RAW_PICK: the place of the entity that was picked */
	__u32 nr_members;
	__u32 picks;  /* RAW_PREEMPT: the picks so far */
	__u32 forked; /* RAW_PREEMPT: the wakee has just been forked */
	struct raw_member running;
	struct raw_member subject; /* RAW_PLACE, RAW_LEAVE: the entity before the decision */
	struct raw_member after;   /* and after it */
	struct raw_member members[RAW_MEMBERS]; /* those that wait, by deadline */
};

#endif
