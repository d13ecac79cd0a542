// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A meter of the time that another BPF program takes, run by run. The loader
 * (src/cost/) attaches a pair of programs to the beginning and the end of each
 * program of a scheduler, and to one that does nothing, whose cost is the
 * pair's own.
 */
#include "base/kernel.h"
#include "histogram.h"

#define MAX_CPUS 1024

struct cost_meter {
	struct time_bucket buckets[NR_BUCKETS];
	__u64 unmatched; /* ends without a beginning on the same CPU */
	__u64 on;
};

struct cost_meter meter SEC(".data.meter");
__u64 wakeups SEC(".data.wakeups");

/* When the run on each CPU began; 0: there is none. */
static __u64 began[MAX_CPUS];

SEC("?fentry")
int cost_begin(void *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id() % MAX_CPUS;

	/* This line comes last: the time from here on is charged to the run. */
	began[cpu] = bpf_ktime_get_ns();
	return 0;
}

SEC("?fexit")
int cost_end(void *ctx)
{
	__u64 now = bpf_ktime_get_ns(), ns;
	__u32 cpu = bpf_get_smp_processor_id() % MAX_CPUS, at;

	if (!meter.on)
		return 0;
	if (!began[cpu]) {
		__sync_fetch_and_add(&meter.unmatched, 1);
		return 0;
	}
	ns = now - began[cpu];
	began[cpu] = 0;
	at = bucket_of(ns);
	__sync_fetch_and_add(&meter.buckets[at].count, 1);
	__sync_fetch_and_add(&meter.buckets[at].ns, ns);
	return 0;
}

SEC("?syscall")
int cost_nothing(void *ctx)
{
	return 0;
}

/* The same for every scheduler: a task became runnable and was not so before. */
SEC("?raw_tp/sched_wakeup")
int cost_wakeup(void *ctx)
{
	__sync_fetch_and_add(&wakeups, 1);
	return 0;
}

char _license[] SEC("license") = "GPL";
