// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The recorder of what the fair class decides about a queue, for kernels with EEVDF: which entity
 * is picked, whether a wakee preempts, where an entity stands when it enters, and with which lag it
 * leaves. Each program looks at the whole queue when the kernel's function begins and, when it
 * ends, at what that function changed before it decided: it brings the running entity's vruntime up
 * to now.
 *
 * Each CPU fills a place of its own for each kind, which no other CPU touches: these functions run
 * under the queue's lock and a function of one kind is not called from within itself.
 */
#include "kernel.h"
#include "decision.h"

struct kind_counts {
	__u64 recorded;
	__u64 dropped;
	__u64 too_long;
	__u64 timed;
	__u64 timed_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RAW_KINDS); /* the loader sets this many for each CPU */
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct raw_decision));
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RAW_KINDS); /* the loader sets this many for each CPU */
	__type(key, __u32);
	__type(value, struct kind_counts);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24); /* the loader sets it */
} ring SEC(".maps");

#include "queue.h"

/* The recorder times one in so many decisions of every CPU. */
#define TIMED 16

static __always_inline __u32 key_of(enum raw_kind kind)
{
	return bpf_get_smp_processor_id() * RAW_KINDS + kind;
}

/* Returns the place of a decision that begins now, or none where the queue is too long. */
static __always_inline struct raw_decision *begin(enum raw_kind kind, const struct cfs_rq *cfs)
{
	__u32 key = key_of(kind);
	struct raw_decision *raw = bpf_map_lookup_elem(&places, &key);
	struct kind_counts *count = bpf_map_lookup_elem(&counts, &key);
	__u64 from;

	if (!raw || !count)
		return 0;
	from = bpf_ktime_get_ns();
	raw->at_ns = from;
	raw->kind = kind;
	raw->cpu = bpf_get_smp_processor_id();
	raw->flags = 0;
	raw->wakee = RAW_NOBODY;
	raw->picked = RAW_NOBODY;
	if (kind != RAW_PREEMPT)
		raw->wakee_entity = 0;
	if (!see_queue(raw, cfs)) {
		count->too_long++;
		raw->queue = 0;
		return 0;
	}
	raw->queue = (__u64)cfs;
	if ((count->recorded + count->dropped) % TIMED == 0) {
		count->timed++;
		count->timed_ns += bpf_ktime_get_ns() - from;
	}
	return raw;
}

/* Returns the place of the decision of this kind that is under way, if it has begun. */
static __always_inline struct raw_decision *under_way(enum raw_kind kind)
{
	__u32 key = key_of(kind);
	struct raw_decision *raw = bpf_map_lookup_elem(&places, &key);

	return raw && raw->queue ? raw : 0;
}

static __always_inline void end(struct raw_decision *raw)
{
	__u32 key = key_of(raw->kind), nr = raw->nr_members;
	struct kind_counts *count = bpf_map_lookup_elem(&counts, &key);

	raw->queue = 0;
	if (!count || nr > RAW_MEMBERS)
		return;
	if (bpf_ringbuf_output(&ring, raw,
			       __builtin_offsetof(struct raw_decision, members) +
				       nr * sizeof(struct raw_member),
			       BPF_RB_NO_WAKEUP))
		count->dropped++;
	else
		count->recorded++;
}

/*
 * Returns the wake-up preemption that is under way on this CPU and compares entities of this queue:
 * its picks are part of that decision, and no decisions of their own.
 */
static __always_inline struct raw_decision *preemption(const struct cfs_rq *cfs)
{
	struct raw_decision *raw = under_way(RAW_PREEMPT);

	return raw && raw->queue == (__u64)cfs ? raw : 0;
}

SEC("fentry/pick_eevdf")
int BPF_PROG(pick_begins, struct cfs_rq *cfs)
{
	struct raw_decision *raw = preemption(cfs);
	__u64 protect = 1;

	/* A wake-up that finds a delayed task picks again; its question is the first pick's. */
	if (raw && raw->picks++)
		return 0;
	raw = begin(raw ? RAW_PREEMPT : RAW_PICK, cfs);
	/* Up to 6.18 the function has one argument, and protection always counts. */
	if (raw && bpf_get_func_arg_cnt(ctx) > 1)
		bpf_get_func_arg(ctx, 1, &protect);
	if (raw && (protect & 0xff))
		raw->flags |= RAW_PROTECT;
	return 0;
}

SEC("fexit/pick_eevdf")
int BPF_PROG(pick_ends, struct cfs_rq *cfs)
{
	struct raw_decision *raw = preemption(cfs);
	__u64 picked = 0;

	bpf_get_func_ret(ctx, &picked);
	if (raw) {
		if (picked == raw->wakee_entity)
			raw->flags |= RAW_PREEMPTED;
		return 0;
	}
	raw = under_way(RAW_PICK);
	if (!raw)
		return 0;
	/* The kernel picks without a choice where there is nobody else. */
	if (!picked || raw->nr_queued < 2) {
		raw->queue = 0;
		return 0;
	}
	raw->picked = place_of(cfs, (void *)picked);
	end(raw);
	return 0;
}

/* ENQUEUE_INITIAL as it was up to 6.18, which is not a flag now, and as it is. */
#define ENQUEUE_INITIAL (0x80 | 0x80000)

SEC("fentry/place_entity")
int BPF_PROG(place_begins, struct cfs_rq *cfs, struct sched_entity *se, int flags)
{
	struct raw_decision *raw = begin(RAW_PLACE, cfs);

	if (!raw)
		return 0;
	see_entity(&raw->subject, se);
	if (flags & ENQUEUE_INITIAL)
		raw->subject.flags |= RAW_NEW;
	return 0;
}

SEC("fexit/place_entity")
int BPF_PROG(place_ends, struct cfs_rq *cfs, struct sched_entity *se)
{
	struct raw_decision *raw = under_way(RAW_PLACE);

	if (!raw)
		return 0;
	see_entity(&raw->after, se);
	raw->subject.slice_ns = raw->after.slice_ns;
	end(raw);
	return 0;
}

#define DEQUEUE_SLEEP 1

/*
 * The flags of a task that leaves at once, because it ends, stops or freezes, or because its group
 * has used up its time: DEQUEUE_SPECIAL as it was up to 6.18 and as it is, and DEQUEUE_THROTTLE. The
 * first is DEQUEUE_MIGRATING now, which no task has that sleeps.
 */
#define DEQUEUE_AT_ONCE (0x10 | 0x10000 | 0x20000)

SEC("fentry/dequeue_entities")
int BPF_PROG(leave_begins, struct rq *rq, struct sched_entity *se, int flags)
{
	struct raw_decision *raw;

	if (!se->cfs_rq)
		return 0;
	raw = begin(RAW_LEAVE, se->cfs_rq);
	if (!raw)
		return 0;
	see_entity(&raw->subject, se);
	if ((flags & DEQUEUE_SLEEP) && !(flags & DEQUEUE_AT_ONCE))
		raw->flags |= RAW_SLEEPS;
	if (is_running(se->cfs_rq, se))
		raw->flags |= RAW_RUNS;
	return 0;
}

SEC("fexit/dequeue_entities")
int BPF_PROG(leave_ends, struct rq *rq, struct sched_entity *se, int flags)
{
	struct raw_decision *raw = under_way(RAW_LEAVE);

	if (!raw)
		return 0;
	see_entity(&raw->after, se);
	see_running(raw, (const struct cfs_rq *)raw->queue);
	end(raw);
	return 0;
}

/*
 * Whether a wakee preempts: whether it is picked when the kernel asks who would run now. The kernel
 * compares the entities of the two tasks in the queue that is above both. It does not ask where a
 * switch is due anyway, and then nothing is recorded.
 */
SEC("fentry/wakeup_preempt_fair")
int BPF_PROG(preempt_begins, struct rq *rq, struct task_struct *p, int flags)
{
	const struct sched_entity *runs = (const void *)&rq->curr->se,
				  *wakes = (const void *)&p->se;
	__u32 key = key_of(RAW_PREEMPT);
	struct raw_decision *raw = bpf_map_lookup_elem(&places, &key);

	if (!raw)
		return 0;
	raw->queue = 0;
	while (can_loop) {
		const struct cfs_rq *one = BPF_CORE_READ(runs, cfs_rq), *other;
		__s32 below;

		other = BPF_CORE_READ(wakes, cfs_rq);
		if (!one || !other)
			return 0;
		if (one == other)
			break;
		below = depth_of(runs) - depth_of(wakes);
		if (below >= 0)
			runs = BPF_CORE_READ(runs, parent);
		if (below <= 0)
			wakes = BPF_CORE_READ(wakes, parent);
		if (!runs || !wakes)
			return 0;
	}
	raw->queue = (__u64)BPF_CORE_READ(wakes, cfs_rq);
	raw->wakee_entity = (__u64)wakes;
	raw->picks = 0;
	see_entity(&raw->subject, wakes);
	raw->forked = !!(flags & WF_FORK);
	if (p->policy || rq->curr->policy)
		raw->subject.flags |= RAW_NOT_NORMAL;
	return 0;
}

SEC("fexit/wakeup_preempt_fair")
int BPF_PROG(preempt_ends)
{
	struct raw_decision *raw = under_way(RAW_PREEMPT);

	if (!raw)
		return 0;
	if (!raw->picks || raw->wakee == RAW_NOBODY || !(raw->flags & RAW_RUNNING)) {
		raw->queue = 0;
		return 0;
	}
	if (raw->forked)
		raw->flags |= RAW_FORKED;
	end(raw);
	return 0;
}

char _license[] SEC("license") = "GPL";
