/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that look at tasks, at CPUs and at the things that CPUs share. A file that includes
 * this one must first define the configuration, the sizes of a record's parts and the map llcs.
 */
#ifndef PERCH_RECORD_LOOK_H
#define PERCH_RECORD_LOOK_H

/*
 * Returns a task's load as its CPU's queue counts it. The kernel works out once a jiffy the share
 * of the CPU's load that a group's queue has, and only where the kernel needs it; after a choice by
 * loads the share is up to date. In the root group the kernel has nothing to work out, but the
 * figure is as old all the same. The share is one of the queue's load as it was then, where the
 * recorder heard when.
 */
static __always_inline __u32 load_of(const struct task_struct *p, __u64 load, struct raw_wake *raw,
				     int wakee)
{
	const struct cfs_rq *cfs = p->se.cfs_rq;
	__u32 *flags = wakee ? &raw->wakee.flags : &raw->waker.flags;
	__u64 all, above;

	if (!cfs)
		return load;
	all = raw->compared ? raw->queue_load[wakee] : cfs->avg.load_avg;
	above = cfs->h_load;
	if (cfs->last_h_load_update < raw->jiffies) {
		if (p->se.parent)
			*flags |= RAW_OLD_LOAD;
		else
			above = all;
	}
	return load * above / (all + 1);
}

/* The highest bit of an estimate is a mark, and no part of the value. */
static __always_inline __u32 util_est_of(const struct sched_avg *avg)
{
	const struct sched_avg___old *old = (const void *)avg;
	__u32 last, mean;

	if (!bpf_core_field_exists(old->util_est.ewma))
		return avg->util_est & ~(1u << 31);
	last = old->util_est.enqueued & ~(1u << 31);
	mean = old->util_est.ewma;
	return last > mean ? last : mean;
}

/* Returns the number of tasks that are queued only to lose their lag. */
static __always_inline __u32 delayed_of(const struct rq *rq)
{
	const struct rq___old *old = (const void *)rq;

	if (bpf_core_field_exists(old->cfs.h_nr_delayed))
		return old->cfs.h_nr_delayed;
	if (bpf_core_field_exists(rq->cfs.h_nr_runnable))
		return rq->cfs.h_nr_queued - rq->cfs.h_nr_runnable;
	return 0;
}

static __always_inline __u32 idle_policy_of(const struct rq *rq)
{
	const struct rq___old *old = (const void *)rq;

	if (bpf_core_field_exists(rq->cfs.h_nr_idle))
		return rq->cfs.h_nr_idle;
	return old->cfs.idle_h_nr_running;
}

static inline __u32 clamp_of(const struct uclamp_se *clamp)
{
	return BPF_CORE_READ_BITFIELD(clamp, value);
}

static __always_inline void see_task(struct raw_task *to, const struct task_struct *p)
{
	__u32 flags = p->flags;

	to->pid = p->pid;
	to->tgid = p->tgid;
	to->wakee_flips = p->wakee_flips;
	to->flip_decay_at = p->wakee_flip_decay_ts;
	to->recent_cpu = p->recent_used_cpu;
	to->load = p->se.avg.load_avg;
	to->flags = flags & PF_KTHREAD && p->nr_cpus_allowed == 1 ? RAW_PERCPU_KTHREAD : 0;
	if (flags & PF_EXITING)
		to->flags |= RAW_EXITING;
	if (p->policy == SCHED_IDLE)
		to->flags |= RAW_SCHED_IDLE;
	to->uclamp_min = 0;
	to->uclamp_max = 1024;
	if (bpf_core_field_exists(p->uclamp)) {
		to->uclamp_min = clamp_of(&p->uclamp[0]);
		to->uclamp_max = clamp_of(&p->uclamp[1]);
	}
	to->numa_node = -1;
	if (bpf_core_field_exists(p->numa_preferred_nid))
		to->numa_node = p->numa_preferred_nid;
}

/* Tells whether the waker runs in a task, with no interrupt and no softirq. */
static __always_inline __u32 context(const struct task_struct *current)
{
	const struct task_struct___arm64 *here = (const void *)current;
	__u32 count;

	if (bpf_core_field_exists(here->thread_info.preempt.count))
		count = here->thread_info.preempt.count;
	else if (bpf_ksym_exists(&__preempt_count))
		count = *(const int *)bpf_this_cpu_ptr(&__preempt_count);
	else
		return current->pid ? RAW_IN_TASK : 0;
	return RAW_CONTEXT_KNOWN | (count & IN_INTERRUPT ? 0 : RAW_IN_TASK);
}

static __always_inline void see_near(struct raw_near *to, __u32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	if (!rq)
		return;
	to->load = rq->cfs.avg.load_avg;
	to->nr_running = rq->nr_running;
	to->nr_delayed = delayed_of(rq);
}

static __always_inline void see_shared(struct raw_shared *to, __u32 cpu)
{
	struct sched_domain_shared **cores = 0, **llc = bpf_per_cpu_ptr(&sd_llc_shared, cpu);
	struct sched_domain **asym;

	to->llc_idle_scan = 0;
	to->asym_idle_scan = RAW_NO_LIMIT;
	to->idle_cores = 0;
	if (!llc)
		return;
	if (*llc)
		to->llc_idle_scan = BPF_CORE_READ(*llc, nr_idle_scan);
	if (bpf_ksym_exists(&sd_balance_shared))
		cores = bpf_per_cpu_ptr(&sd_balance_shared, cpu);
	if (!cores)
		cores = llc;
	if (*cores)
		to->idle_cores = BPF_CORE_READ(*cores, has_idle_cores);
	if (!config.unequal)
		return;
	asym = bpf_per_cpu_ptr(&sd_asym_cpucapacity, cpu);
	/* Up to 6.19 a domain of unequal CPUs has no budget. */
	if (asym && *asym && bpf_ksym_exists(&sd_balance_shared) && BPF_CORE_READ(*asym, shared))
		to->asym_idle_scan = BPF_CORE_READ(*asym, shared, nr_idle_scan);
}

static __always_inline __u64 *set_of(struct raw_wake *raw, enum raw_set set)
{
	return (void *)raw + sizeof(*raw) + set * NR_WORDS * 8;
}

/* Adds the CPUs that share the last-level cache with one CPU to a set. */
static __always_inline void add_llc(__u64 *set, __u32 cpu)
{
	__u64 *llc = bpf_map_lookup_elem(&llcs, &cpu);
	__u32 w;

	for (w = 0; llc && w < NR_WORDS && can_loop; w++)
		set[w] |= llc[w];
}

static __always_inline __u64 bit_of(__u32 cpu, __u32 word)
{
	return cpu / 64 == word ? 1ull << (cpu % 64) : 0;
}

/* Gives the CPUs `among` of a word of a set the states `are`. */
static __always_inline void set_in(__u64 *set, __u32 word, __u64 among, __u64 are)
{
	set[word] = (set[word] & ~among) | are;
}

/*
 * Ends a choice of which the recorder heard all that the kernel asked: a CPU of which the kernel did
 * not ask cannot have mattered, and keeps its state from the beginning.
 */
static __always_inline void keep_unasked(struct raw_wake *raw)
{
	__u32 w;

	for (w = 0; w < NR_WORDS && can_loop; w++) {
		__u64 unasked = ~set_of(raw, RAW_ASKED)[w];

		set_in(set_of(raw, RAW_IDLE_LATER), w, unasked, set_of(raw, RAW_IDLE)[w] & unasked);
		set_in(set_of(raw, RAW_SCHED_IDLE_ONLY_LATER), w, unasked,
		       set_of(raw, RAW_SCHED_IDLE_ONLY)[w] & unasked);
	}
}

/*
 * Tells whether the choice may have fallen on any CPU that was idle. The kernel asks the wakee's
 * last CPU, the waker's and the recent one first: when one of these was idle and was chosen, the
 * kernel looked at no other.
 */
static __always_inline int searched(struct raw_wake *raw)
{
	__u32 chosen = raw->chosen, w = chosen / 64;

	if (raw->rows)
		return 1;
	if (chosen != raw->this_cpu && chosen != raw->prev_cpu && chosen != raw->wakee.recent_cpu)
		return 1;
	return w >= NR_WORDS || !(set_of(raw, RAW_IDLE)[w] >> (chosen % 64) & 1);
}

/*
 * Records idle states, by words of 64 CPUs. At the end of a choice only those CPUs matter on which
 * the choice may have fallen: those that were idle, and the one that was chosen. The recorder gives
 * the others their states from the beginning. The slow path counts idle CPUs, so all matter there.
 */
static __always_inline void look(struct raw_wake *raw, int later)
{
	__u16 *capacity = (void *)raw + sizeof(*raw) + SETS_SIZE;
	__u64 *idle = set_of(raw, later ? RAW_IDLE_LATER : RAW_IDLE);
	__u64 *sched_idle = set_of(raw, later ? RAW_SCHED_IDLE_ONLY_LATER : RAW_SCHED_IDLE_ONLY);
	int all = later && searched(raw);
	__u32 w, bit;

	for (w = 0; w < NR_WORDS && can_loop; w++) {
		__u64 left = set_of(raw, RAW_SEEN)[w], is_idle = 0, is_sched_idle = 0;

		if (later) {
			__u64 mask = 0;

			is_idle = set_of(raw, RAW_IDLE)[w];
			is_sched_idle = set_of(raw, RAW_SCHED_IDLE_ONLY)[w];
			if (raw->rows == 2)
				mask = ~0ull;
			else if (all)
				mask = is_idle | is_sched_idle;
			mask |= bit_of(raw->chosen, w) | bit_of(raw->this_cpu, w) |
				bit_of(raw->prev_cpu, w) | bit_of(raw->wakee.recent_cpu, w);
			left &= mask;
			is_idle &= ~left;
			is_sched_idle &= ~left;
		}
		for (bit = 0; bit < 64 && left && can_loop; bit++, left >>= 1) {
			__u32 cpu = w * 64 + bit, running;
			const struct rq *rq;

			if (!(left & 1) || cpu >= nr_cpus)
				continue;
			rq = bpf_per_cpu_ptr(&runqueues, cpu);
			if (!rq)
				continue;
			running = rq->nr_running;
			if (running)
				is_sched_idle |= (__u64)(running == idle_policy_of(rq)) << bit;
			else
				is_idle |= (__u64)(rq->curr == rq->idle && !rq->ttwu_pending)
					   << bit;
			if (!later)
				capacity[cpu] = rq->cpu_capacity;
		}
		idle[w] = is_idle;
		sched_idle[w] = is_sched_idle;
	}
}

/*
 * Records every figure by which the kernel places a task on fork, on exec and among unequal CPUs.
 */
static __always_inline void see_rows(struct raw_wake *raw, int later)
{
	struct raw_cpu *to = (void *)raw + ROWS_AT + later * nr_cpus * sizeof(*to);
	__u32 cpu;

	for (cpu = 0; cpu < nr_cpus && can_loop; cpu++) {
		const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

		if (!rq)
			continue;
		to[cpu].idle_since_ns = rq->idle_stamp;
		to[cpu].load = rq->cfs.avg.load_avg;
		to[cpu].runnable = rq->cfs.avg.runnable_avg;
		to[cpu].util_avg = rq->cfs.avg.util_avg;
		to[cpu].util_est = util_est_of(&rq->cfs.avg);
		to[cpu].nr_running = rq->nr_running;
		to[cpu].nr_delayed = delayed_of(rq);
		to[cpu].idle_exit_ns = 0;
		if (bpf_core_field_exists(rq->idle_state) && rq->idle_state)
			to[cpu].idle_exit_ns = rq->idle_state->exit_latency_ns;
	}
}

/* Records the capacities of groups, by which the kernel compares them on fork and exec. */
static __always_inline void see_groups(struct raw_wake *raw)
{
	struct raw_group *to = (void *)raw + ROWS_AT + 2 * nr_cpus * sizeof(struct raw_cpu);
	__u32 i, level;

	for (i = 0; i < config.nr_groups && can_loop; i++) {
		/* The verifier forgets the bounds of a number whose address is taken. */
		__u32 key = i;
		const struct raw_group_place *place = bpf_map_lookup_elem(&groups, &key);
		const struct sched_domain *sd;
		const struct rq *rq;

		if (!place)
			return;
		rq = bpf_per_cpu_ptr(&runqueues, place->cpu);
		if (!rq)
			return;
		/* A load behind a null pointer reads 0. */
		sd = rq->sd;
		for (level = 0; level < RAW_MAX_LEVELS && level < place->level; level++)
			sd = sd->parent;
		to[i].capacity = sd->groups->sgc->capacity;
		to[i].max_capacity = 0;
		if (bpf_core_field_exists(sd->groups->sgc->max_capacity))
			to[i].max_capacity = sd->groups->sgc->max_capacity;
	}
}

#endif
