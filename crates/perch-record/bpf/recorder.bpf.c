// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The recorder looks at all that the choice may read at the entry of select_task_rq_fair, and again
 * at its exit, together with the verdict. A value that the function changes on its way (the waker's
 * flips, the wakee's recent CPU) is recorded as it was before; a value that the function works out
 * on its way (the hierarchical load, the wakee's utilisation as of now), as the function left it.
 *
 * Each CPU fills a place of its own, which no other CPU touches: the function runs with interrupts
 * off and does not nest.
 */
#include "kernel.h"
#include "raw.h"

/*
 * The loader sets these: nr_cpus is one more than the highest CPU number, unequal says whether the
 * CPUs differ in capacity, nr_groups is the number of entries in groups, and hears says whether
 * kernel_asks() is at work.
 */
const volatile struct {
	__u32 nr_cpus;
	__u32 unequal;
	__u32 nr_groups;
	__u32 hears;
} config = {1, 0, 0, 0};

#define nr_cpus config.nr_cpus

#define NR_WORDS ((nr_cpus + 63) / 64)
#define SETS_SIZE (RAW_SETS * NR_WORDS * 8)
#define CAPACITIES_SIZE ((nr_cpus * 2 + 7) / 8 * 8)
#define ROWS_AT (sizeof(struct raw_wake) + SETS_SIZE + CAPACITIES_SIZE)

/* The recorder times one in so many of every CPU's wake-ups. */
#define TIMED 16

/*
 * For one in so many, the recorder looks at every CPU though the choice does not: these samples
 * show how busy all CPUs are.
 */
#define WHOLE 64

/* The reasons for wake-ups that no scheduling class is asked about. */
enum undecided {
	ITSELF,
	QUEUED,
	PINNED,
	HELD,
	ASKED, /* the other wake-ups, for which a class is asked */
	WAKINGS,
};

/* Where a choice is that the recorder hears: see see_compared(). */
enum compared {
	NOT_COMPARED,
	COMPARES, /* the kernel's next step is to compare the loads of both CPUs */
	COMPARED,
};

struct counts {
	__u64 recorded;
	__u64 dropped;
	__u64 tried; /* wake-ups of a task that is not new and does not exec */
	__u64 timed;
	__u64 timed_ns; /* the time of both programs, without the calls to them */
	__u64 wakings[WAKINGS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets one per CPU */
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct raw_wake)); /* the loader adds sets and rows */
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets one per CPU */
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets one per CPU: the CPUs of its LLC */
	__uint(key_size, 4);
	__uint(value_size, 8); /* the loader sets it */
	__uint(map_flags, BPF_F_RDONLY_PROG);
} llcs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets one per group of several CPUs */
	__type(key, __u32);
	__type(value, struct raw_group_place);
	__uint(map_flags, BPF_F_RDONLY_PROG);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24); /* the loader sets it */
} ring SEC(".maps");

#include "look.h"

static __always_inline struct raw_wake *place(__u32 cpu)
{
	return bpf_map_lookup_elem(&places, &cpu);
}

static __always_inline void begin(struct task_struct *p, int prev_cpu, int wake_flags, __u32 class,
				  __u32 timed)
{
	struct task_struct *current = bpf_get_current_task_btf(), *last;
	__u32 cpu = bpf_get_smp_processor_id(), w;
	struct raw_wake *raw = place(cpu);

	if (!raw)
		return;
	raw->at_ns = bpf_ktime_get_ns();
	raw->jiffies = bpf_jiffies64();
	raw->class = class;
	raw->timed = timed;
	raw->compared = NOT_COMPARED;
	raw->scans = 0;
	raw->queue = (__u64)p->se.cfs_rq;
	raw->wake_flags = wake_flags;
	raw->this_cpu = cpu;
	raw->prev_cpu = prev_cpu;
	raw->nr_allowed = p->nr_cpus_allowed;
	raw->context = context(current);
	raw->rows = 0;
	if (wake_flags & WF_SLOW)
		raw->rows = 2;
	else if (config.unequal || raw->turn % WHOLE == 0)
		raw->rows = 1;
	/* The slow path adds up what many CPUs do, and asks in other ways besides. */
	if (config.hears && !class && raw->rows != 2)
		raw->context |= RAW_HEARD;
	raw->turn++;
	see_task(&raw->waker, current);
	last = current->last_wakee;
	raw->waker.last_wakee = last ? last->pid : 0;
	see_task(&raw->wakee, p);
	last = p->last_wakee;
	raw->wakee.last_wakee = last ? last->pid : 0;
	see_near(&raw->near[0], cpu);
	see_shared(&raw->shared[0], cpu);
	raw->near[1] = raw->near[0];
	raw->shared[1] = raw->shared[0];
	if (cpu != prev_cpu) {
		see_near(&raw->near[1], prev_cpu);
		see_shared(&raw->shared[1], prev_cpu);
	}
	for (w = 0; w < NR_WORDS && can_loop; w++) {
		set_of(raw, RAW_SEEN)[w] = raw->rows ? ~0ull : 0;
		set_of(raw, RAW_ASKED)[w] = 0;
	}
	if (!raw->rows) {
		add_llc(set_of(raw, RAW_SEEN), cpu);
		if (cpu != prev_cpu)
			add_llc(set_of(raw, RAW_SEEN), prev_cpu);
	}
	look(raw, 0);
	if (raw->rows)
		see_rows(raw, 0);
	if (raw->rows == 2)
		see_groups(raw);
	if (NR_WORDS == 1)
		*set_of(raw, RAW_ALLOWED) = p->cpus_ptr->bits[0];
	else
		bpf_probe_read_kernel(set_of(raw, RAW_ALLOWED), NR_WORDS * 8, p->cpus_ptr);
}

/*
 * Looks at the tasks and loads of the waker's CPU and of the wakee's last one shortly before and
 * after the kernel compares them. The kernel asks whether the former is idle, counts its tasks, asks
 * whether the latter is idle, compares the loads, and then asks about one of the two again.
 */
static __always_inline void see_compared(struct raw_wake *raw, __u32 cpu)
{
	const struct cfs_rq *queue;
	const struct rq *rq;

	if (raw->compared == COMPARED)
		return;
	if (raw->compared == COMPARES) {
		see_near(&raw->later[0], raw->this_cpu);
		see_near(&raw->later[1], raw->prev_cpu);
		raw->compared = COMPARED;
		return;
	}
	if (cpu == raw->this_cpu)
		see_near(&raw->near[0], cpu);
	if (cpu != raw->prev_cpu)
		return;
	rq = bpf_per_cpu_ptr(&runqueues, raw->this_cpu);
	if (rq)
		raw->near[0].load = rq->cfs.avg.load_avg;
	see_near(&raw->near[1], cpu);
	queue = bpf_get_current_task_btf()->se.cfs_rq;
	raw->queue_load[0] = queue->avg.load_avg;
	queue = (const struct cfs_rq *)raw->queue;
	raw->queue_load[1] = BPF_CORE_READ(queue, avg.load_avg);
	raw->compared = COMPARES;
}

/*
 * Looks at the budget and the hint of a scan when the scan begins, with the first CPU that is none of
 * those of which the kernel asks before.
 */
static __always_inline void see_scan(struct raw_wake *raw, __u32 cpu)
{
	if (raw->scans || cpu == raw->this_cpu || cpu == raw->prev_cpu ||
	    cpu == raw->wakee.recent_cpu)
		return;
	see_shared(&raw->shared[0], raw->this_cpu);
	see_shared(&raw->shared[1], raw->prev_cpu);
	raw->scans = 1;
}

/* A kernel that did not scan may have found the budget spent: the budget is that of the end. */
static __always_inline void see_budget(struct raw_shared *to, __u32 cpu)
{
	struct raw_shared now;

	see_shared(&now, cpu);
	to->llc_idle_scan = now.llc_idle_scan;
	to->asym_idle_scan = now.asym_idle_scan;
}

/*
 * Notes what the kernel was told when it asked whether a CPU is idle. From then on that is the CPU's
 * state in the record: at first what the kernel was told first, and at the end what it was told last.
 */
static __always_inline void hear(struct raw_wake *raw, __u32 cpu, int is_idle)
{
	__u32 w = cpu / 64, running;
	const struct rq *rq;
	__u64 bit, idle, sched_idle = 0;

	if (!(raw->context & RAW_HEARD) || w >= NR_WORDS)
		return;
	see_compared(raw, cpu);
	see_scan(raw, cpu);
	bit = 1ull << (cpu % 64);
	idle = is_idle ? bit : 0;
	if (!is_idle) {
		/* Of a CPU that is not idle the kernel asks this next. */
		rq = bpf_per_cpu_ptr(&runqueues, cpu);
		if (!rq)
			return;
		running = rq->nr_running;
		if (running && running == idle_policy_of(rq))
			sched_idle = bit;
	}
	if (!(set_of(raw, RAW_ASKED)[w] & bit)) {
		set_of(raw, RAW_ASKED)[w] |= bit;
		set_in(set_of(raw, RAW_IDLE), w, bit, idle);
		set_in(set_of(raw, RAW_SCHED_IDLE_ONLY), w, bit, sched_idle);
	}
	set_in(set_of(raw, RAW_IDLE_LATER), w, bit, idle);
	set_in(set_of(raw, RAW_SCHED_IDLE_ONLY_LATER), w, bit, sched_idle);
}

static __always_inline void end(struct task_struct *p, int chosen)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct raw_wake *raw = place(cpu);
	struct counts *count = bpf_map_lookup_elem(&counts, &cpu);
	__u64 size = ROWS_AT;
	long lost;

	if (!raw || !raw->at_ns || !count)
		return;
	raw->chosen = chosen;
	/* On the slow path the kernel brings the wakee's averages up to now before it reads any. */
	raw->wakee.load = load_of(p, raw->rows == 2 ? p->se.avg.load_avg : raw->wakee.load, raw, 1);
	raw->waker.load = load_of(current, raw->waker.load, raw, 0);
	raw->wakee.util_avg = p->se.avg.util_avg;
	raw->wakee.util_est = util_est_of(&p->se.avg);
	raw->wakee.runnable = p->se.avg.runnable_avg;
	raw->waker.util_avg = current->se.avg.util_avg;
	raw->waker.util_est = util_est_of(&current->se.avg);
	if (raw->context & RAW_HEARD) {
		keep_unasked(raw);
		if (raw->compared != COMPARED) {
			raw->later[0] = raw->near[0];
			raw->later[1] = raw->near[1];
		}
		if (!raw->scans) {
			see_budget(&raw->shared[0], cpu);
			see_budget(&raw->shared[1], raw->prev_cpu);
		}
	} else {
		see_near(&raw->later[0], cpu);
		raw->later[1] = raw->later[0];
		if (cpu != raw->prev_cpu)
			see_near(&raw->later[1], raw->prev_cpu);
		look(raw, 1);
	}
	if (raw->rows == 2) {
		see_rows(raw, 1);
		size += 2 * nr_cpus * sizeof(struct raw_cpu);
		size += config.nr_groups * sizeof(struct raw_group);
	} else if (raw->rows == 1) {
		size += nr_cpus * sizeof(struct raw_cpu);
	}
	lost = bpf_ringbuf_output(&ring, raw, size, BPF_RB_NO_WAKEUP);
	if (lost)
		count->dropped++;
	else
		count->recorded++;
	if (!(raw->wake_flags & WF_SLOW))
		count->tried++;
	raw->at_ns = 0;
}

/*
 * Returns the counters where this wake-up is to be timed, which one in TIMED is: the others then do
 * not pay for reading clocks.
 */
static __always_inline struct counts *timed(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct counts *count = bpf_map_lookup_elem(&counts, &cpu);

	/* The first wake-ups of every CPU are forks, so they are not timed. */
	return count && (count->recorded + count->dropped + cpu) % TIMED == TIMED - 1 ? count : 0;
}

static __always_inline void begin_timed(struct task_struct *p, int prev_cpu, int wake_flags,
					__u32 class)
{
	struct counts *count = timed();
	__u64 from = 0;

	if (count)
		from = bpf_ktime_get_ns();
	begin(p, prev_cpu, wake_flags, class, count != 0);
	if (count)
		count->timed_ns += bpf_ktime_get_ns() - from;
}

static __always_inline void end_timed(struct task_struct *p, int chosen)
{
	struct counts *count = timed();
	__u64 from = 0;

	if (count)
		from = bpf_ktime_get_ns();
	end(p, chosen);
	if (count) {
		count->timed_ns += bpf_ktime_get_ns() - from;
		count->timed++;
	}
}

SEC("fentry/select_task_rq_fair")
int BPF_PROG(fair_begins, struct task_struct *p, int prev_cpu, int wake_flags)
{
	begin_timed(p, prev_cpu, wake_flags, 0);
	return 0;
}

SEC("fexit/select_task_rq_fair")
int BPF_PROG(fair_ends, struct task_struct *p, int prev_cpu, int wake_flags, int chosen)
{
	end_timed(p, chosen);
	return 0;
}

/*
 * The kernel asks whether a CPU is idle, and is told. The state of a CPU can change and change back
 * between two looks, and what the kernel was told is all that counts. The loader leaves this program
 * out where the compiler made the function part of others.
 */
SEC("fexit/available_idle_cpu")
int BPF_PROG(kernel_asks, int cpu, int is_idle)
{
	__u32 here = bpf_get_smp_processor_id();
	struct raw_wake *raw = place(here);
	struct counts *count;
	__u64 from = 0;

	if (!raw || !raw->at_ns)
		return 0;
	if (raw->timed)
		from = bpf_ktime_get_ns();
	hear(raw, cpu, is_idle);
	if (raw->timed) {
		count = bpf_map_lookup_elem(&counts, &here);
		if (count)
			count->timed_ns += bpf_ktime_get_ns() - from;
	}
	return 0;
}

SEC("fentry/select_task_rq_rt")
int BPF_PROG(rt_begins, struct task_struct *p, int prev_cpu, int wake_flags)
{
	begin_timed(p, prev_cpu, wake_flags, 1);
	return 0;
}

SEC("fexit/select_task_rq_rt")
int BPF_PROG(rt_ends, struct task_struct *p, int prev_cpu, int wake_flags, int chosen)
{
	end_timed(p, chosen);
	return 0;
}

/*
 * Counts every wake-up of a task that is not new, whether or not a scheduling class is asked where
 * the task goes.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(wakes, struct task_struct *p)
{
	__u32 cpu = bpf_get_smp_processor_id(), why = ASKED;
	struct counts *count = bpf_map_lookup_elem(&counts, &cpu);

	if (!count)
		return 0;
	if (p == bpf_get_current_task_btf())
		why = ITSELF;
	else if (p->on_rq)
		why = QUEUED;
	else if (p->nr_cpus_allowed == 1)
		why = PINNED;
	else if (bpf_core_field_exists(p->migration_disabled) && p->migration_disabled)
		why = HELD;
	count->wakings[why]++;
	return 0;
}

/* Two of these readings tell how many jiffies a second has. */
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
