/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policy as the simulator and the replay call it. */
#include "calls.h"

#include "../include/perch/select.h"

void perch_native_select(struct perch_host *h, const struct perch_policy *pol,
			 const struct perch_wake *wake, struct perch_task *waker,
			 struct perch_task *p, struct perch_verdict *v)
{
	perch_select(h, pol, wake, waker, p, v);
}

void perch_native_account(struct perch_host *h, struct perch_process *process, perch_u32 cpu,
			  perch_u64 now_ns, perch_u64 delta_ns)
{
	perch_cache_account(h, process, cpu, now_ns, delta_ns);
}

void perch_native_check(struct perch_host *h, struct perch_process *process, perch_u32 cpu)
{
	perch_cache_check(h, process, cpu);
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

void perch_native_level(struct perch_host *h, perch_u32 llc, perch_u32 busy)
{
	perch_host_llc_load(h, llc)->busy = busy;
	perch_spread_level(h, llc, perch_least_busy(h));
}

perch_u32 perch_native_turn(perch_u32 known, perch_u64 ns)
{
	return perch_turn(known, ns);
}

perch_u32 perch_native_draws(struct perch_host *h, perch_u32 src, perch_u32 dst)
{
	return perch_cache_draws(h, src, dst);
}

void perch_native_note(struct perch_host *h, perch_u32 llc, perch_u32 util, perch_u32 capacity_left,
		       perch_u32 nr)
{
	perch_cache_note(h, llc, util, capacity_left, nr);
}

perch_u32 perch_native_move(struct perch_host *h, const struct perch_policy *pol,
			    const struct perch_task *p, perch_u32 src, perch_u32 dst)
{
	return perch_cache_move(h, pol, p, src, dst);
}

int perch_native_overload_init(struct perch_overload *o, const struct perch_overload_memory *m,
			       perch_u32 layout, perch_u32 exact, const perch_u32 *nodes,
			       perch_u32 nr)
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
