/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policy as the simulator and the replay call it. */
#include "native.h"
#include "question.h"

#include "../include/perch/overload.h"
#include "../include/perch/select.h"

void perch_native_select(struct perch_host *h, const struct perch_policy *pol,
			 const struct perch_wake *wake, struct perch_task *waker,
			 struct perch_task *p, struct perch_verdict *v);

void perch_native_select(struct perch_host *h, const struct perch_policy *pol,
			 const struct perch_wake *wake, struct perch_task *waker,
			 struct perch_task *p, struct perch_verdict *v)
{
	perch_select(h, pol, wake, waker, p, v);
}

void perch_native_account(struct perch_host *h, struct perch_process *process, perch_u32 cpu,
			  perch_u64 now_ns, perch_u64 delta_ns);
int perch_native_due(struct perch_host *h, const struct perch_policy *pol,
		     struct perch_process *process, perch_u32 cpu, perch_u64 now_ns);
void perch_native_scan(struct perch_host *h, const struct perch_policy *pol,
		       struct perch_process *process, perch_u32 cpu, perch_u64 now_ns);
void perch_native_note(struct perch_host *h, perch_u32 llc, perch_u32 util, perch_u32 nr);
perch_u32 perch_native_draws(struct perch_host *h, perch_u32 src, perch_u32 dst);
perch_u32 perch_native_move(struct perch_host *h, const struct perch_policy *pol,
			    const struct perch_task *p, perch_u32 src, perch_u32 dst);

void perch_native_account(struct perch_host *h, struct perch_process *process, perch_u32 cpu,
			  perch_u64 now_ns, perch_u64 delta_ns)
{
	perch_cache_account(h, process, cpu, now_ns, delta_ns);
}

int perch_native_due(struct perch_host *h, const struct perch_policy *pol,
		     struct perch_process *process, perch_u32 cpu, perch_u64 now_ns)
{
	return perch_cache_due(h, pol, process, cpu, now_ns);
}

void perch_native_scan(struct perch_host *h, const struct perch_policy *pol,
		       struct perch_process *process, perch_u32 cpu, perch_u64 now_ns)
{
	perch_cache_scan(h, pol, process, cpu, now_ns);
}

perch_u32 perch_native_draws(struct perch_host *h, perch_u32 src, perch_u32 dst)
{
	return perch_cache_draws(h, src, dst);
}

void perch_native_note(struct perch_host *h, perch_u32 llc, perch_u32 util, perch_u32 nr)
{
	perch_cache_note(h, llc, util, nr);
}

perch_u32 perch_native_move(struct perch_host *h, const struct perch_policy *pol,
			    const struct perch_task *p, perch_u32 src, perch_u32 dst)
{
	return perch_cache_move(h, pol, p, src, dst);
}

int perch_native_overload_init(struct perch_overload *o, const struct perch_overload_memory *m,
			       enum perch_overload_layout layout, perch_u32 exact,
			       const perch_u32 *nodes, perch_u32 nr);
void perch_native_overload_free(struct perch_overload *o, const struct perch_overload_memory *m);
perch_u32 perch_native_overload_home(perch_u32 layout, perch_u32 node, perch_u32 llc);
perch_u32 perch_native_overload_set(const struct perch_overload *o, perch_u32 *mark,
				    perch_u32 home);
perch_u32 perch_native_overload_clear(const struct perch_overload *o, perch_u32 *mark,
				      perch_u32 home);
perch_u32 perch_native_overload_read(const struct perch_overload *o, perch_u32 home,
				     perch_u32 *loads);

int perch_native_overload_init(struct perch_overload *o, const struct perch_overload_memory *m,
			       enum perch_overload_layout layout, perch_u32 exact,
			       const perch_u32 *nodes, perch_u32 nr)
{
	return perch_overload_init(o, m, layout, exact, nodes, nr);
}

void perch_native_overload_free(struct perch_overload *o, const struct perch_overload_memory *m)
{
	perch_overload_free(o, m);
}

perch_u32 perch_native_overload_home(perch_u32 layout, perch_u32 node, perch_u32 llc)
{
	return perch_overload_home(layout, node, llc);
}

perch_u32 perch_native_overload_set(const struct perch_overload *o, perch_u32 *mark, perch_u32 home)
{
	return perch_overload_set(o, mark, home);
}

perch_u32 perch_native_overload_clear(const struct perch_overload *o, perch_u32 *mark,
				      perch_u32 home)
{
	return perch_overload_clear(o, mark, home);
}

perch_u32 perch_native_overload_read(const struct perch_overload *o, perch_u32 home,
				     perch_u32 *loads)
{
	return perch_overload_read(o, home, loads);
}

/*
 * What crates/perch-policy mirrors by hand, for its tests to compare: where
 * each field lies and how long it is, and the numbers that both sides name.
 */
struct perch_layout {
	const char *name;
	perch_u64 offset, size; /* of a number: 0 and its value */
};

const struct perch_layout *perch_native_layout(perch_u64 *count);

#define PERCH_WHOLE(s) {#s, 0, sizeof(struct s)}
#define PERCH_FIELD(s, f) {#s "." #f, __builtin_offsetof(struct s, f), sizeof(((struct s *)0)->f)}
#define PERCH_VALUE(v) {#v, 0, v}

static const struct perch_layout perch_layout[] = {
	PERCH_WHOLE(perch_modes),
	PERCH_FIELD(perch_modes, cluster),
	PERCH_FIELD(perch_modes, capacity),
	PERCH_FIELD(perch_modes, cache),
	PERCH_FIELD(perch_modes, overload),
	PERCH_FIELD(perch_modes, overload_layout),
	PERCH_FIELD(perch_modes, steer),
	PERCH_FIELD(perch_modes, pad),
	PERCH_WHOLE(perch_overload),
	PERCH_FIELD(perch_overload, counters),
	PERCH_FIELD(perch_overload, nr),
	PERCH_FIELD(perch_overload, layout),
	PERCH_FIELD(perch_overload, exact),
	PERCH_FIELD(perch_overload, pad),
	PERCH_WHOLE(perch_overload_memory),
	PERCH_FIELD(perch_overload_memory, alloc),
	PERCH_FIELD(perch_overload_memory, free),
	PERCH_FIELD(perch_overload_memory, context),
	PERCH_WHOLE(perch_rules),
	PERCH_FIELD(perch_rules, flip_decay_ns),
	PERCH_FIELD(perch_rules, idle_sees_policy),
	PERCH_FIELD(perch_rules, empty_mask_fails_early),
	PERCH_FIELD(perch_rules, groups_by_affinity),
	PERCH_FIELD(perch_rules, wake_cap),
	PERCH_FIELD(perch_rules, early_groups),
	PERCH_FIELD(perch_rules, recent_when_taken),
	PERCH_FIELD(perch_rules, far_imbalance_pct),
	PERCH_FIELD(perch_rules, near_imbalance_pct),
	PERCH_FIELD(perch_rules, early_path),
	PERCH_FIELD(perch_rules, pad),
	PERCH_WHOLE(perch_policy),
	PERCH_FIELD(perch_policy, modes),
	PERCH_FIELD(perch_policy, rules),
	PERCH_WHOLE(perch_wake),
	PERCH_FIELD(perch_wake, now_ns),
	PERCH_FIELD(perch_wake, this_cpu),
	PERCH_FIELD(perch_wake, prev_cpu),
	PERCH_FIELD(perch_wake, flags),
	PERCH_FIELD(perch_wake, pad),
	PERCH_WHOLE(perch_task),
	PERCH_FIELD(perch_task, allowed),
	PERCH_FIELD(perch_task, flip_decay_at_ns),
	PERCH_FIELD(perch_task, id),
	PERCH_FIELD(perch_task, last_wakee),
	PERCH_FIELD(perch_task, wakee_flips),
	PERCH_FIELD(perch_task, recent_cpu),
	PERCH_FIELD(perch_task, nr_allowed),
	PERCH_FIELD(perch_task, flags),
	PERCH_FIELD(perch_task, load),
	PERCH_FIELD(perch_task, util),
	PERCH_FIELD(perch_task, uclamp_min),
	PERCH_FIELD(perch_task, uclamp_max),
	PERCH_FIELD(perch_task, process),
	PERCH_FIELD(perch_task, process_id),
	PERCH_FIELD(perch_task, group_id),
	PERCH_FIELD(perch_task, queued),
	PERCH_FIELD(perch_task, load_shift),
	PERCH_FIELD(perch_task, pad),
	PERCH_WHOLE(perch_occupancy),
	PERCH_FIELD(perch_occupancy, runtime_ns),
	PERCH_FIELD(perch_occupancy, epoch),
	PERCH_WHOLE(perch_epoch),
	PERCH_FIELD(perch_epoch, runtime_ns),
	PERCH_FIELD(perch_epoch, epoch),
	PERCH_FIELD(perch_epoch, next_ns),
	PERCH_FIELD(perch_epoch, pad),
	PERCH_WHOLE(perch_seat),
	PERCH_FIELD(perch_seat, hot_cpu),
	PERCH_FIELD(perch_seat, occupancy),
	PERCH_FIELD(perch_seat, preferred),
	PERCH_FIELD(perch_seat, pad),
	PERCH_WHOLE(perch_process),
	PERCH_FIELD(perch_process, occupancy),
	PERCH_FIELD(perch_process, seats),
	PERCH_FIELD(perch_process, scan_epoch),
	PERCH_FIELD(perch_process, pref_cpu),
	PERCH_FIELD(perch_process, nr_preferred),
	PERCH_FIELD(perch_process, nr_threads),
	PERCH_FIELD(perch_process, nr_running),
	PERCH_FIELD(perch_process, running_avg),
	PERCH_FIELD(perch_process, footprint_kib),
	PERCH_WHOLE(perch_llc_load),
	PERCH_FIELD(perch_llc_load, util),
	PERCH_FIELD(perch_llc_load, nr),
	PERCH_FIELD(perch_llc_load, known),
	PERCH_FIELD(perch_llc_load, capacity),
	PERCH_FIELD(perch_llc_load, cores),
	PERCH_FIELD(perch_llc_load, size_kib),
	PERCH_FIELD(perch_llc_load, pad),
	PERCH_WHOLE(perch_verdict),
	PERCH_FIELD(perch_verdict, cpu),
	PERCH_FIELD(perch_verdict, reason),
	PERCH_FIELD(perch_verdict, examined),
	PERCH_FIELD(perch_verdict, target),
	PERCH_FIELD(perch_verdict, cache),
	PERCH_FIELD(perch_verdict, pad),
	PERCH_WHOLE(perch_native_set),
	PERCH_FIELD(perch_native_set, first),
	PERCH_FIELD(perch_native_set, words),
	PERCH_FIELD(perch_native_set, offset),
	PERCH_FIELD(perch_native_set, weight),
	PERCH_WHOLE(perch_native_domain),
	PERCH_FIELD(perch_native_domain, flags),
	PERCH_FIELD(perch_native_domain, set),
	PERCH_FIELD(perch_native_domain, imbalance_pct),
	PERCH_FIELD(perch_native_domain, imb_numa_nr),
	PERCH_FIELD(perch_native_domain, groups),
	PERCH_FIELD(perch_native_domain, first_group),
	PERCH_FIELD(perch_native_domain, level),
	PERCH_FIELD(perch_native_domain, pad),
	PERCH_WHOLE(perch_native_place),
	PERCH_FIELD(perch_native_place, core_set),
	PERCH_FIELD(perch_native_place, cluster_set),
	PERCH_FIELD(perch_native_place, llc_set),
	PERCH_FIELD(perch_native_place, llc),
	PERCH_FIELD(perch_native_place, asym_set),
	PERCH_FIELD(perch_native_place, capacity),
	PERCH_FIELD(perch_native_place, domains),
	PERCH_WHOLE(perch_native_cpu),
	PERCH_FIELD(perch_native_cpu, idle_since_ns),
	PERCH_FIELD(perch_native_cpu, nr_running),
	PERCH_FIELD(perch_native_cpu, nr_delayed),
	PERCH_FIELD(perch_native_cpu, load),
	PERCH_FIELD(perch_native_cpu, runnable),
	PERCH_FIELD(perch_native_cpu, util),
	PERCH_FIELD(perch_native_cpu, capacity),
	PERCH_FIELD(perch_native_cpu, curr_load),
	PERCH_FIELD(perch_native_cpu, idle_exit_ns),
	PERCH_WHOLE(perch_native_llc),
	PERCH_FIELD(perch_native_llc, set),
	PERCH_FIELD(perch_native_llc, nr_idle_scan),
	PERCH_FIELD(perch_native_llc, idle_cores),
	PERCH_FIELD(perch_native_llc, pad),
	PERCH_WHOLE(perch_topology),
	PERCH_FIELD(perch_topology, pool),
	PERCH_FIELD(perch_topology, sets),
	PERCH_FIELD(perch_topology, domains),
	PERCH_FIELD(perch_topology, group_sets),
	PERCH_FIELD(perch_topology, places),
	PERCH_FIELD(perch_topology, llc_of_set),
	PERCH_FIELD(perch_topology, llc_sets),
	PERCH_FIELD(perch_topology, nr_cpus),
	PERCH_FIELD(perch_topology, nr_llcs),
	PERCH_FIELD(perch_topology, has_clusters),
	PERCH_FIELD(perch_topology, has_smt),
	PERCH_FIELD(perch_topology, max_capacity),
	PERCH_FIELD(perch_topology, pad),
	PERCH_WHOLE(perch_host),
	PERCH_FIELD(perch_host, topology),
	PERCH_FIELD(perch_host, idle),
	PERCH_FIELD(perch_host, sched_idle),
	PERCH_FIELD(perch_host, cpus),
	PERCH_FIELD(perch_host, llcs),
	PERCH_FIELD(perch_host, epochs),
	PERCH_FIELD(perch_host, loads),
	PERCH_WHOLE(perch_question),
	PERCH_FIELD(perch_question, host),
	PERCH_FIELD(perch_question, policy),
	PERCH_FIELD(perch_question, wake),
	PERCH_FIELD(perch_question, waker),
	PERCH_FIELD(perch_question, wakee),
	PERCH_FIELD(perch_question, verdict),
	PERCH_VALUE(PERCH_NONE),
	PERCH_VALUE(PERCH_MAX_LEVELS),
	PERCH_VALUE(PERCH_OFF),
	PERCH_VALUE(PERCH_POSTED),
	PERCH_VALUE(PERCH_UPSTREAM),
	PERCH_VALUE(PERCH_PERCH),
	PERCH_VALUE(PERCH_WAKE_SYNC),
	PERCH_VALUE(PERCH_WAKE_FORK),
	PERCH_VALUE(PERCH_WAKE_EXEC),
	PERCH_VALUE(PERCH_WAKE_CURRENT),
	PERCH_VALUE(PERCH_WAKE_IN_TASK),
	PERCH_VALUE(PERCH_TASK_PERCPU_KTHREAD),
	PERCH_VALUE(PERCH_TASK_SCHED_IDLE),
	PERCH_VALUE(PERCH_SD_SMT),
	PERCH_VALUE(PERCH_SD_CLUSTER),
	PERCH_VALUE(PERCH_SD_LLC),
	PERCH_VALUE(PERCH_SD_NUMA),
	PERCH_VALUE(PERCH_SD_BALANCE_FORK),
	PERCH_VALUE(PERCH_SD_WAKE_AFFINE),
	PERCH_VALUE(PERCH_SD_PREFER_SIBLING),
	PERCH_VALUE(PERCH_SD_ASYM),
	PERCH_VALUE(PERCH_BY_NOTHING),
	PERCH_VALUE(PERCH_BY_AFFINITY),
	PERCH_VALUE(PERCH_BY_HINT),
	PERCH_VALUE(PERCH_BY_TARGET_IDLE),
	PERCH_VALUE(PERCH_BY_PREV_IDLE),
	PERCH_VALUE(PERCH_BY_KTHREAD),
	PERCH_VALUE(PERCH_BY_RECENT_IDLE),
	PERCH_VALUE(PERCH_BY_SIBLING_IDLE),
	PERCH_VALUE(PERCH_BY_CLUSTER_CORE),
	PERCH_VALUE(PERCH_BY_CLUSTER_SCAN),
	PERCH_VALUE(PERCH_BY_LLC_CORE),
	PERCH_VALUE(PERCH_BY_LLC_THREAD),
	PERCH_VALUE(PERCH_BY_LLC_SCAN),
	PERCH_VALUE(PERCH_BY_CLUSTER_PREV),
	PERCH_VALUE(PERCH_BY_CLUSTER_RECENT),
	PERCH_VALUE(PERCH_BY_TARGET_BUSY),
	PERCH_VALUE(PERCH_BY_NO_LLC),
	PERCH_VALUE(PERCH_BY_SLOW_PATH),
	PERCH_VALUE(PERCH_BY_FALLBACK),
	PERCH_VALUE(PERCH_BY_CAPACITY_FIT),
	PERCH_VALUE(PERCH_BY_CAPACITY_BEST),
	PERCH_VALUE(PERCH_BY_CAPACITY_SPARE),
	PERCH_VALUE(PERCH_BY_WAKE_BALANCE),
	PERCH_VALUE(PERCH_BY_IDLE_GROUP),
	PERCH_VALUE(PERCH_BY_UNSEARCHED),
	PERCH_VALUE(PERCH_BY_EMPTY_QUEUE),
	PERCH_VALUE(PERCH_NR_REASONS),
	PERCH_VALUE(PERCH_CACHE_NONE),
	PERCH_VALUE(PERCH_CACHE_REDIRECTED),
	PERCH_VALUE(PERCH_CACHE_FULL_UTIL),
	PERCH_VALUE(PERCH_CACHE_FULL_RUNNABLE),
	PERCH_VALUE(PERCH_CACHE_UNFIT),
	PERCH_VALUE(PERCH_CACHE_RETURNED),
	PERCH_VALUE(PERCH_NR_CACHE_STEPS),
	PERCH_VALUE(PERCH_OVERLOAD_SHARED),
	PERCH_VALUE(PERCH_OVERLOAD_NODE),
	PERCH_VALUE(PERCH_OVERLOAD_NODE_PADDED),
	PERCH_VALUE(PERCH_OVERLOAD_LLC_PADDED),
	PERCH_VALUE(PERCH_OVERLOAD_NONE),
	PERCH_VALUE(PERCH_OVERLOAD_ONE),
	PERCH_VALUE(PERCH_OVERLOAD_MORE),
	PERCH_VALUE(PERCH_MOVE_FREE),
	PERCH_VALUE(PERCH_MOVE_STAY),
	PERCH_VALUE(PERCH_MOVE_GO),
};

const struct perch_layout *perch_native_layout(perch_u64 *count)
{
	*count = sizeof(perch_layout) / sizeof(perch_layout[0]);
	return perch_layout;
}
