// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recorder: at the entry of select_task_rq_fair a snapshot of all that the
 * choice may read, at its exit the verdict. What the function changes on its
 * way (the waker's flips, the wakee's recent CPU) is seen as it was before.
 *
 * A CPU fills a place of its own, which no other touches: the function runs
 * with interrupts off and does not nest.
 */
#include "kernel.h"
#include "raw.h"

/* CPU numbers below this exist. */
const volatile __u32 nr_cpus = 1;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader's: one a CPU */
	__type(key, __u32);
	__type(value, struct raw_wake);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24); /* the loader's */
} ring SEC(".maps");

struct counts {
	__u64 recorded;
	__u64 dropped;
	__u64 cost_ns; /* of both programs, without what calling them costs */
} counts SEC(".data.counts");

/*
 * A task's load as its CPU's queue has it. The kernel works out once a jiffy
 * what a queue's load is there; in the root group, where nothing has to be
 * worked out, that figure is as old all the same. One that a group's queue has
 * not got in this jiffy is taken from an earlier one.
 */
static __always_inline __u32 load_of(const struct task_struct *p)
{
	const struct cfs_rq *cfs = p->se.cfs_rq;
	__u64 load = p->se.avg.load_avg, above;

	if (!cfs)
		return load;
	above = cfs->h_load;
	if (!p->se.parent && cfs->last_h_load_update != bpf_jiffies64())
		above = cfs->avg.load_avg;
	return load * above / (cfs->avg.load_avg + 1);
}

static __always_inline __u32 util_of(const struct sched_avg *avg)
{
	__u32 util = avg->util_avg, est = avg->util_est & ~(1u << 31);

	return util > est ? util : est;
}

static inline __u32 clamp_of(const struct uclamp_se *clamp)
{
	return BPF_CORE_READ_BITFIELD(clamp, value);
}

static __always_inline void see_task(struct raw_task *to, struct task_struct *p)
{
	struct task_struct *last = p->last_wakee;

	to->pid = p->pid;
	to->tgid = p->tgid;
	to->last_wakee = last ? last->pid : 0;
	to->wakee_flips = p->wakee_flips;
	to->flip_decay_at = p->wakee_flip_decay_ts;
	to->recent_cpu = p->recent_used_cpu;
	to->load = load_of(p);
	to->util = util_of(&p->se.avg);
	to->flags = p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1 ? RAW_PERCPU_KTHREAD : 0;
	if (p->policy == SCHED_IDLE)
		to->flags |= RAW_SCHED_IDLE;
	to->uclamp_min = 0;
	to->uclamp_max = 1024;
	if (bpf_core_field_exists(p->uclamp)) {
		to->uclamp_min = clamp_of(&p->uclamp[0]);
		to->uclamp_max = clamp_of(&p->uclamp[1]);
	}
}

static __always_inline void see_cpu(struct raw_cpu *to, __u32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);
	struct sched_domain_shared **llc = bpf_per_cpu_ptr(&sd_llc_shared, cpu);
	struct task_struct *curr;

	if (!rq)
		return;
	curr = rq->curr;
	to->nr_running = rq->cfs.h_nr_queued;
	to->nr_delayed = rq->cfs.h_nr_queued - rq->cfs.h_nr_runnable;
	to->load = rq->cfs.avg.load_avg;
	to->runnable = rq->cfs.avg.runnable_avg;
	to->util = util_of(&rq->cfs.avg);
	to->capacity = rq->cpu_capacity;
	to->idle = curr == rq->idle && !rq->nr_running && !rq->ttwu_pending;
	to->sched_idle = rq->nr_running && rq->nr_running == rq->cfs.h_nr_idle;
	to->curr_load = 0;
	if (curr && curr != rq->idle)
		to->curr_load = load_of(curr);
	to->idle_since_ns = rq->idle_stamp;
	to->idle_exit_ns = 0;
	if (to->idle && bpf_core_field_exists(rq->idle_state) && rq->idle_state)
		to->idle_exit_ns = rq->idle_state->exit_latency_ns;
	to->nr_idle_scan = 0;
	to->idle_cores = 0;
	if (llc && *llc) {
		to->nr_idle_scan = BPF_CORE_READ(*llc, nr_idle_scan);
		to->idle_cores = BPF_CORE_READ(*llc, has_idle_cores);
	}
}

static __always_inline struct raw_wake *place(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&places, &cpu);
}

static __always_inline void begin(struct task_struct *p, int prev_cpu, int wake_flags, __u32 class)
{
	__u64 now = bpf_ktime_get_ns();
	struct raw_wake *raw = place();
	__u32 cpu, words;

	if (!raw)
		return;
	raw->at_ns = now;
	raw->jiffies = bpf_jiffies64();
	raw->class = class;
	raw->wake_flags = wake_flags;
	raw->this_cpu = bpf_get_smp_processor_id();
	raw->prev_cpu = prev_cpu;
	raw->nr_allowed = p->nr_cpus_allowed;
	see_task(&raw->waker, bpf_get_current_task_btf());
	see_task(&raw->wakee, p);
	words = (nr_cpus + 63) / 64;
	if (words <= RAW_WORDS)
		bpf_probe_read_kernel(raw->allowed, words * 8, p->cpus_ptr);
	bpf_for(cpu, 0, nr_cpus)
	{
		if (cpu >= RAW_MAX_CPUS)
			break;
		see_cpu(&raw->cpus[cpu], cpu);
	}
	__sync_fetch_and_add(&counts.cost_ns, bpf_ktime_get_ns() - now);
}

static __always_inline void end(int chosen)
{
	__u64 now = bpf_ktime_get_ns();
	struct raw_wake *raw = place();
	__u32 n = nr_cpus;

	if (!raw || !raw->at_ns || n > RAW_MAX_CPUS)
		return;
	raw->chosen = chosen;
	if (bpf_ringbuf_output(&ring, raw,
			       __builtin_offsetof(struct raw_wake, cpus) +
				       n * sizeof(struct raw_cpu),
			       BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&counts.dropped, 1);
	else
		__sync_fetch_and_add(&counts.recorded, 1);
	raw->at_ns = 0;
	__sync_fetch_and_add(&counts.cost_ns, bpf_ktime_get_ns() - now);
}

SEC("fentry/select_task_rq_fair")
int BPF_PROG(fair_begins, struct task_struct *p, int prev_cpu, int wake_flags)
{
	begin(p, prev_cpu, wake_flags, 0);
	return 0;
}

SEC("fexit/select_task_rq_fair")
int BPF_PROG(fair_ends, struct task_struct *p, int prev_cpu, int wake_flags, int chosen)
{
	end(chosen);
	return 0;
}

SEC("fentry/select_task_rq_rt")
int BPF_PROG(rt_begins, struct task_struct *p, int prev_cpu, int wake_flags)
{
	begin(p, prev_cpu, wake_flags, 1);
	return 0;
}

SEC("fexit/select_task_rq_rt")
int BPF_PROG(rt_ends, struct task_struct *p, int prev_cpu, int wake_flags, int chosen)
{
	end(chosen);
	return 0;
}

/* Two of these tell how many jiffies a second has. */
struct {
	__u64 ns;
	__u64 jiffies;
} clocks SEC(".data.clocks");

SEC("syscall")
int look_at_clocks(void *ctx)
{
	clocks.ns = bpf_ktime_get_ns();
	clocks.jiffies = bpf_jiffies64();
	return 0;
}

char _license[] SEC("license") = "GPL";
