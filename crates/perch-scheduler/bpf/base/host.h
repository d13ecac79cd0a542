/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live host. It reads the machine's shape from the arena, and all else from
 * the kernel at the moment of the question. Where a mechanism of the stock
 * kernel has no counterpart under sched_ext, a comment names the substitute.
 */
#ifndef PERCH_LIVE_HOST_H
#define PERCH_LIVE_HOST_H

#include "base/idle.h"

const volatile struct perch_config perch_config SEC(".rodata.config");

/* The time at the last turn of the timer, exact enough for values that decay over a second. */
static perch_u64 coarse_now;

struct perch_host {
	perch_u64 allowed_at; /* address of the wakee's affinity mask; 0: every CPU */
};

/*
 * The configuration is constant and zero in the object file, so the compiler
 * would replace reads of it by 0; but the loader writes it before the program
 * runs.
 */
static inline const struct perch_config *config(void)
{
	const volatile struct perch_config *c = &perch_config;

	asm volatile("" : "+r"(c));
	return (const struct perch_config *)c;
}

static inline struct perch_cpu __arena *cpu_state(perch_u32 cpu)
{
	return &config()->cpus[cpu];
}

/* False for a CPU that came online since the program was loaded: it belongs to no domain. */
static inline bool has_place(perch_u32 cpu)
{
	return cpu < config()->topology.nr_cpus;
}

static inline void count(perch_u32 cpu, enum perch_event event)
{
	cpu_state(cpu)->events[event]++;
}

/* A task is born without a follower's record. Another birth on this CPU may count at the same time. */
static inline void count_unrecorded(void)
{
	__sync_fetch_and_add(
		&cpu_state(bpf_get_smp_processor_id())->events[PERCH_EV_TASKS_UNRECORDED], 1);
}

/* One word of a kernel's mask. A load that faults reads 0. */
static inline perch_u64 mask_word(perch_u64 address, perch_u32 w)
{
	struct cpumask *m =
		bpf_rdonly_cast((void *)(address + w * 8), bpf_core_type_id_kernel(struct cpumask));

	perch_u64 word = m->bits[0];

	/*
	 * If the compiler merged this load with another, one instruction would
	 * read two kinds of memory, which the verifier refuses.
	 */
	asm volatile("" : "+r"(word));
	return word;
}

static inline const struct rq *cpu_rq(perch_u32 cpu)
{
	return bpf_per_cpu_ptr(&runqueues, cpu);
}

PERCH_INLINE const struct perch_topology *perch_topology(const struct perch_host *h)
{
	return &config()->topology;
}

PERCH_INLINE perch_u64 perch_host_allowed_word(const struct perch_host *h,
					       const struct perch_task *p, perch_u32 w)
{
	return h->allowed_at ? mask_word(h->allowed_at, w) : ~0ull;
}

PERCH_INLINE perch_u8 perch_host_grouped(const struct perch_host *h, const struct perch_task *p)
{
	return !!p->queued;
}

PERCH_INLINE perch_u64 perch_host_queued_word(const struct perch_host *h,
					      const struct perch_task *p, perch_u32 w)
{
	return p->queued[w];
}

PERCH_INLINE perch_u8 perch_host_idle(const struct perch_host *h, perch_u32 cpu)
{
	return is_idle(cpu);
}

PERCH_INLINE perch_u64 perch_host_idle_word(const struct perch_host *h, perch_u32 w,
					    perch_u64 among)
{
	return idle_among(w, among);
}

PERCH_INLINE perch_u64 perch_host_sched_idle_word(const struct perch_host *h, perch_u32 w)
{
	return nr_sched_idle_cpus ? config()->sched_idle[w] : 0;
}

/* Runnable tasks that a follower holds back, on all CPUs: while there is none, no CPU's are read. */
static perch_u32 nr_held;

/* Tasks in the CPU's run queue that may run. */
static inline perch_u32 nr_running(perch_u32 cpu)
{
	const struct rq *rq = cpu_rq(cpu);
	perch_u32 nr = rq ? rq->nr_running : 0, held;

	if (!nr_held)
		return nr;
	held = cpu_state(cpu)->held;
	return nr > held ? nr - held : 0;
}

PERCH_INLINE perch_u32 perch_host_nr_running(const struct perch_host *h, perch_u32 cpu)
{
	return nr_running(cpu);
}

/* Tasks of sched_ext leave the queue when they sleep. */
PERCH_INLINE perch_u32 perch_host_nr_delayed(const struct perch_host *h, perch_u32 cpu)
{
	return 0;
}

/* PELT does not follow tasks of sched_ext: the queue's length stands in, whatever the weights. */
PERCH_INLINE perch_u32 perch_host_load(const struct perch_host *h, perch_u32 cpu)
{
	return 1024 * perch_host_nr_running(h, cpu);
}

PERCH_INLINE perch_u32 perch_host_runnable(const struct perch_host *h, perch_u32 cpu)
{
	return 1024 * perch_host_nr_running(h, cpu);
}

PERCH_INLINE perch_u32 perch_host_util(const struct perch_host *h, perch_u32 cpu)
{
	return cpu_state(cpu)->util;
}

PERCH_INLINE perch_u32 perch_host_capacity(const struct perch_host *h, perch_u32 cpu)
{
	return cpu_state(cpu)->capacity;
}

/* Nothing takes capacity from a CPU here, so a group has what its CPUs are made for. */
PERCH_INLINE perch_u32 perch_host_group_capacity(const struct perch_host *h, perch_u32 set)
{
	return config()->topology.sets[set].capacity;
}

PERCH_INLINE perch_u32 perch_host_group_max_capacity(const struct perch_host *h, perch_u32 set)
{
	return config()->topology.sets[set].max_capacity;
}

PERCH_INLINE perch_u32 perch_host_curr_load(const struct perch_host *h, perch_u32 cpu)
{
	return cpu_state(cpu)->curr_weight ? 1024 : 0;
}

PERCH_INLINE perch_u32 perch_host_idle_exit_ns(const struct perch_host *h, perch_u32 cpu)
{
	const struct rq *rq = cpu_rq(cpu);
	struct cpuidle_state *state = rq ? rq->idle_state : 0;

	return state ? state->exit_latency_ns : 0;
}

PERCH_INLINE perch_u64 perch_host_idle_since_ns(const struct perch_host *h, perch_u32 cpu)
{
	return cpu_state(cpu)->idle_since_ns;
}

PERCH_INLINE perch_u32 perch_host_kick_ns(const struct perch_host *h)
{
	return config()->behind_ns;
}

PERCH_INLINE struct perch_llc __arena *llc_of(perch_u32 set)
{
	const struct perch_config *c = config();

	return &c->llcs[c->topology.llc_of_set[set]];
}

PERCH_INLINE perch_u32 perch_host_nr_idle_scan(const struct perch_host *h, perch_u32 set)
{
	return llc_of(set)->nr_idle_scan;
}

/* As in the stock kernel: a core that goes idle sets it, a search that finds none clears it. */
PERCH_INLINE perch_u8 perch_host_idle_cores(const struct perch_host *h, perch_u32 set)
{
	return llc_of(set)->idle_cores;
}

PERCH_INLINE void perch_host_set_idle_cores(struct perch_host *h, perch_u32 set, perch_u8 has)
{
	if (llc_of(set)->idle_cores != has)
		llc_of(set)->idle_cores = has;
}

PERCH_INLINE struct perch_epoch PERCH_AS *perch_host_epoch(const struct perch_host *h,
							   perch_u32 cpu)
{
	return &config()->epochs[cpu];
}

PERCH_INLINE struct perch_llc_load PERCH_AS *perch_host_llc_load(const struct perch_host *h,
								 perch_u32 llc)
{
	return &config()->llc_loads[llc];
}

/* ask_soon() of choose.h does. */
#define PERCH_ASKS_FIRST
#include "../../../../policy/include/perch/select.h"

/* True for a CPU without a domain: it is offline or isolated, or the only one. */
static inline bool is_apart(perch_u32 cpu)
{
	return perch_host_domain(0, cpu, 0) == PERCH_NONE;
}

/* The CPU begins to idle, or goes on. */
static inline void idles(perch_u32 cpu)
{
	struct perch_host host = {};
	perch_u32 llc, asym;

	mark_idle(cpu);
	if (!perch_host_has_smt(0) || !has_place(cpu) || !perch_siblings_idle(&host, cpu))
		return;
	llc = perch_host_llc_set(0, cpu);
	if (llc != PERCH_NONE)
		perch_host_set_idle_cores(0, llc, 1);
	asym = perch_host_asym_set(0, cpu);
	if (asym != PERCH_NONE)
		perch_host_set_idle_cores(0, asym, 1);
}

/*
 * True if the CPU of this run queue may be going offline. Once such a CPU is inactive, the kernel
 * keeps a callback queued there (balance_push) that pushes away the tasks that must
 * not run there. Other CPUs have a callback for the length of a switch at most.
 */
static inline bool may_go_offline(const struct rq *rq)
{
	return rq && rq->balance_callback;
}

/* A task of another class may have run since this CPU last had one of ours. */
static __attribute__((noinline)) void idles_on(perch_u32 cpu)
{
	const struct rq *rq = cpu_rq(cpu);

	if (rq && rq->curr == rq->idle)
		idles(cpu);
}

#include "../../../../policy/hosts/question.h"

/*
 * A question to the policy, one for each CPU, as the stack is too short for it.
 * No wake-up interrupts another on its CPU.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct perch_question);
} questions SEC(".maps");

static inline struct perch_question *question(void)
{
	perch_u32 zero = 0;

	return bpf_map_lookup_elem(&questions, &zero);
}

#endif
