/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The slow path of fork and exec: from the widest domain downward it chooses
 * the idlest group and in that group the idlest CPU
 * (docs/mechanisms/stock.md#slow-path). A task that starts has nothing in any
 * cache, so looking at every CPU pays. Up to 5.6 wake-ups on asymmetric
 * machines took this path too (docs/mechanisms/capacity.md#before).
 */
#ifndef PERCH_SLOW_H
#define PERCH_SLOW_H

#include "capacity.h"

/* How busy a group is, the lowest the best. */
enum perch_group_type {
	PERCH_GROUP_HAS_SPARE = 0,
	PERCH_GROUP_FULLY_BUSY,
	PERCH_GROUP_MISFIT, /* of unequal CPUs, and the task fits none of these */
	PERCH_GROUP_OVERLOADED,
};

/*
 * The figures by which groups are compared. Sums fit 32 bits up to four million
 * runnable tasks in a group; products of sums are 64 bits wide.
 */
struct perch_group {
	perch_u32 type, running, util;
	perch_u32 allowed; /* CPUs of the group that the task may use */
	/*
	 * The number of idle CPUs in a group with spare capacity, the largest
	 * capacity in a group where the task does not fit, else load per
	 * capacity.
	 */
	perch_u32 rank;
};

/*
 * A group's sums. The caller sets the CPUs, the CPU on which the task itself is
 * not to be counted, and whether capacities differ.
 */
struct perch_group_stats {
	perch_u32 set, imbalance_pct, without_cpu;
	perch_u8 without_running, asym, fits, pad;
	perch_u32 load, runnable, capacity;
	struct perch_group sum;
};

/* Takes a task's part off a sum; at least 0 is left. */
PERCH_INLINE perch_u32 perch_left(perch_u32 sum, perch_u32 part)
{
	return sum > part ? sum - part : 0;
}

PERCH_INLINE perch_u32 perch_classify(const struct perch_group_stats *g, perch_u32 weight)
{
	perch_u64 pct = g->imbalance_pct, capacity = g->capacity;
	perch_u64 util = g->sum.util, runnable = g->runnable;

	if (g->sum.running > weight &&
	    (capacity * 100 < util * pct || capacity * pct < runnable * 100))
		return PERCH_GROUP_OVERLOADED;
	if (!g->fits)
		return PERCH_GROUP_MISFIT;
	if (g->sum.running < weight ||
	    (capacity * pct >= runnable * 100 && capacity * 100 > util * pct))
		return PERCH_GROUP_HAS_SPARE;
	return PERCH_GROUP_FULLY_BUSY;
}

/*
 * Adds a CPU to the statistics of its group as the task would find it. A parent
 * that forks runs on this CPU and is counted. A task that execs is not counted,
 * nor is the load that a sleeper has left on the CPU where it ran.
 */
PERCH_OUTLINE int perch_group_add(const struct perch_host *h PERCH_GIVEN,
				  const struct perch_policy *pol PERCH_GIVEN,
				  const struct perch_task *p PERCH_GIVEN,
				  struct perch_group_stats *g PERCH_GIVEN, perch_u32 cpu)
{
	perch_u32 running = perch_host_nr_running(h, cpu), own;

	if (pol->rules.groups_by_affinity && !perch_allowed(h, p, cpu))
		return 0;
	if (g->asym)
		g->fits |= perch_task_fits(h, pol, p, cpu);
	own = cpu == g->without_cpu;
	running -= own && g->without_running && running;
	g->sum.running += running;
	if (!running && (perch_host_idle(h, cpu) || (own && g->without_running)))
		g->sum.rank++;
	g->load += perch_left(perch_host_load(h, cpu), own ? p->load : 0);
	g->sum.util += perch_left(perch_host_util(h, cpu), own ? p->util : 0);
	if (!pol->rules.early_groups)
		g->runnable += perch_left(perch_host_runnable(h, cpu), own ? p->util : 0);
	return 0;
}

/* Statistics of a group. */
PERCH_OUTLINE int perch_group_stats(const struct perch_host *h PERCH_GIVEN,
				    const struct perch_policy *pol PERCH_GIVEN,
				    const struct perch_task *p PERCH_GIVEN,
				    struct perch_group_stats *g PERCH_GIVEN)
{
	perch_u32 first = perch_host_set_first(h, g->set), k;

	g->load = g->runnable = 0;
	g->capacity = perch_host_group_capacity(h, g->set);
	g->fits = !g->asym;
	g->sum = (struct perch_group){};
	for (k = PERCH_ZERO; k < perch_host_set_words(h, g->set) && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, g->set, first + k);

		g->sum.allowed +=
			__builtin_popcountll(m & perch_host_allowed_word(h, p, first + k));
		while (m && PERCH_MORE) {
			perch_group_add(h, pol, p, g, (first + k) * 64 + __builtin_ctzll(m));
			m &= m - 1;
		}
	}
	g->sum.type = perch_classify(g, perch_host_set_weight(h, g->set));
	if (g->sum.type == PERCH_GROUP_MISFIT)
		g->sum.rank = perch_host_group_max_capacity(h, g->set);
	else if (g->sum.type != PERCH_GROUP_HAS_SPARE)
		g->sum.rank = pol->rules.early_groups || !g->capacity ?
				      0 :
				      g->load * 1024ull / g->capacity;
	/* These kernels had no second criterion. */
	if (pol->rules.early_groups)
		g->sum.util = 0;
	return 0;
}

/* True if group `a` is idler than `b`, the idlest group so far. */
PERCH_INLINE perch_u8 perch_idler(const struct perch_group *a, const struct perch_group *b)
{
	if (a->type != b->type)
		return a->type < b->type;
	if (a->type == PERCH_GROUP_MISFIT)
		return a->rank > b->rank;
	if (a->type != PERCH_GROUP_HAS_SPARE)
		return a->rank < b->rank;
	if (a->rank != b->rank)
		return a->rank > b->rank;
	return a->util < b->util;
}

/* The two tasks of a pair may stay in one node: less than this is not an imbalance. */
#define PERCH_NUMA_IMBALANCE_MIN 2

/* True if the task should leave the local group for the idlest other group. */
PERCH_INLINE perch_u8 perch_worth_leaving(const struct perch_host *h, perch_u32 sd, perch_u32 pct,
					  const struct perch_group *local,
					  const struct perch_group *idlest)
{
	perch_u8 numa = !!(perch_host_domain_flags(h, sd) & PERCH_SD_NUMA);
	perch_u32 limit;
	perch_u64 margin, here = local->rank, there = idlest->rank;
	perch_u32 gap;

	if (local->type != idlest->type)
		return local->type > idlest->type;
	if (local->type == PERCH_GROUP_MISFIT)
		return here < there;
	if (local->type != PERCH_GROUP_HAS_SPARE) {
		margin = 1024 * (perch_u64)(pct - 100) / 100;
		/* The task's memory is here: it stays unless the other node is clearly freer. */
		if (numa && there + margin >= here)
			return 0;
		return there < here + margin && 100 * here > pct * there;
	}
	if (numa) {
		limit = perch_host_domain_imb_numa(h, sd);
		if (local->allowed < limit)
			limit = local->allowed;
		gap = here > there ? here - there : there - here;
		if (local->running + 1 <= limit && gap <= PERCH_NUMA_IMBALANCE_MIN)
			return 0;
	}
	return here < there;
}

/* The place that the descent from the widest domain has reached. */
struct perch_descent {
	perch_u32 sd, cpu;
	perch_u32 without_cpu; /* where the task itself is counted and must not be; PERCH_NONE */
	perch_u32 running;     /* it is running there: exec */
	perch_u32 examined;
};

/*
 * Finds the group of a domain that contains the CPU. The kernel's walk over the
 * ring of groups begins there.
 */
PERCH_INLINE perch_u32 perch_own_group(const struct perch_host *h, perch_u32 sd, perch_u32 cpu)
{
	perch_u32 n = perch_host_domain_groups(h, sd), own;

	for (own = PERCH_ZERO; own + 1 < n && PERCH_MORE; own++)
		if (perch_set_has(h, perch_host_domain_group(h, sd, own), cpu))
			break;
	return own;
}

/*
 * Finds the idlest group of a domain; PERCH_NONE if the task should stay in the
 * group that has `cpu`. Among equal groups the first one after that group wins,
 * not the first of the domain: otherwise all forks of an idle machine would
 * herd in the domain's first group.
 */
PERCH_OUTLINE perch_u32 perch_idlest_group(const struct perch_host *h PERCH_GIVEN,
					   const struct perch_policy *pol PERCH_GIVEN,
					   const struct perch_task *p PERCH_GIVEN,
					   struct perch_descent *d PERCH_GIVEN)
{
	struct perch_group local = {}, best = {};
	struct perch_group_stats g = {};
	perch_u32 sd = d->sd, cpu = d->cpu;
	perch_u32 n = perch_host_domain_groups(h, sd), own, i, idlest = PERCH_NONE;
	perch_u32 pct = perch_imbalance_pct(h, pol, sd);
	perch_u8 local_allowed = 0;

	g.asym = !!(perch_host_domain_flags(h, sd) & PERCH_SD_ASYM);
	d->examined += perch_host_set_weight(h, perch_host_domain_set(h, sd));
	own = perch_own_group(h, sd, cpu);
	for (i = PERCH_ZERO; i < n && PERCH_MORE; i++) {
		perch_u32 at = own + i < n ? own + i : own + i - n;
		perch_u32 set = perch_host_domain_group(h, sd, at);

		g.set = set;
		g.imbalance_pct = pct;
		g.without_cpu = d->without_cpu;
		g.without_running = d->running;
		perch_group_stats(h, pol, p, &g);
		if (!g.sum.allowed)
			continue;
		if (perch_set_has(h, set, cpu)) {
			local = g.sum;
			local_allowed = 1;
		} else if (idlest == PERCH_NONE || perch_idler(&g.sum, &best)) {
			best = g.sum;
			idlest = set;
		}
	}
	if (idlest == PERCH_NONE || !local_allowed)
		return idlest;
	return perch_worth_leaving(h, sd, pct, &local, &best) ? idlest : PERCH_NONE;
}

/*
 * Finds the idlest allowed CPU of a group. The idle CPU that leaves its idle
 * state soonest wins, and among equals the one that went idle last, whose cache
 * is warmest. Without an idle CPU the least loaded one wins.
 */
PERCH_OUTLINE perch_u32 perch_idlest_cpu(const struct perch_host *h PERCH_GIVEN,
					 const struct perch_policy *pol PERCH_GIVEN,
					 const struct perch_task *p PERCH_GIVEN,
					 struct perch_descent *d PERCH_GIVEN, perch_u32 set)
{
	perch_u32 first = perch_host_set_first(h, set), k, weight = perch_host_set_weight(h, set);
	perch_u32 idlest = PERCH_NONE, least = d->cpu, exit_ns = 0xffffffffu, load = 0xffffffffu;
	perch_u64 since = 0;

	/* The only CPU of a group is taken without a look at it. */
	d->examined += weight > 1 ? weight : 0;

	for (k = PERCH_ZERO; k < perch_host_set_words(h, set) && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);

		m &= perch_host_allowed_word(h, p, first + k);
		while (m && PERCH_MORE) {
			perch_u32 c = (first + k) * 64 + __builtin_ctzll(m);

			m &= m - 1;
			if (perch_host_idle(h, c)) {
				perch_u32 e = perch_host_idle_exit_ns(h, c);
				perch_u64 t = perch_host_idle_since_ns(h, c);

				if (e < exit_ns || (e == exit_ns && t > since)) {
					exit_ns = e;
					since = t;
					idlest = c;
				}
			} else if (perch_idle_ok(h, pol, p, c)) {
				return c;
			} else if (idlest == PERCH_NONE && perch_host_load(h, c) < load) {
				load = perch_host_load(h, c);
				least = c;
			}
		}
	}
	return idlest != PERCH_NONE ? idlest : least;
}

/*
 * True if this domain of `cpu` balances such wake-ups. Fork and exec are
 * balanced over near nodes; up to 5.6 other wake-ups were balanced in the
 * lowest domain that has every capacity, and in the domains below it
 * (SD_BALANCE_WAKE).
 */
PERCH_INLINE perch_u8 perch_descends(const struct perch_host *h, const struct perch_wake *wake,
				     perch_u32 sd, perch_u32 cpu)
{
	perch_u32 asym;

	if (wake->flags & (PERCH_WAKE_FORK | PERCH_WAKE_EXEC))
		return !!(perch_host_domain_flags(h, sd) & PERCH_SD_BALANCE_FORK);
	asym = perch_host_asym_set(h, cpu);
	return asym != PERCH_NONE && perch_host_set_weight(h, perch_host_domain_set(h, sd)) <=
					     perch_host_set_weight(h, asym);
}

/*
 * Descends from the widest domain of this CPU that balances forks to one CPU. A
 * group that is chosen in another branch changes `cpu`, and the descent goes on
 * among those domains of the new CPU that are narrower than the last domain.
 */
PERCH_RARE perch_u32 perch_slow_path(const struct perch_host *h PERCH_GIVEN,
				     const struct perch_policy *pol PERCH_GIVEN,
				     const struct perch_task *p PERCH_GIVEN,
				     const struct perch_wake *wake PERCH_GIVEN,
				     struct perch_verdict *v PERCH_GIVEN)
{
	struct perch_descent d = {
		.without_cpu = wake->flags & PERCH_WAKE_FORK ? PERCH_NONE : wake->prev_cpu,
		.running = !!(wake->flags & PERCH_WAKE_EXEC),
	};
	perch_u32 cpu = wake->this_cpu, level = 0, i, sd, set = PERCH_NONE;

	for (i = PERCH_ZERO; PERCH_MORE; i++) {
		sd = perch_host_domain(h, cpu, i);
		if (sd == PERCH_NONE)
			break;
		if (perch_descends(h, wake, sd, cpu)) {
			level = i + 1;
			set = perch_host_domain_set(h, sd);
		}
	}
	/* No domain offers a CPU: the task stays where it is. */
	if (set == PERCH_NONE || !perch_set_meets(h, p, set))
		return wake->prev_cpu;
	while (level && PERCH_MORE) {
		perch_u32 next = cpu, weight = 0, l;

		sd = perch_host_domain(h, cpu, --level);
		if (!perch_descends(h, wake, sd, cpu))
			continue;
		d.sd = sd;
		d.cpu = cpu;
		set = perch_idlest_group(h, pol, p, &d);
		if (set == PERCH_NONE)
			continue;
		next = perch_idlest_cpu(h, pol, p, &d, set);
		if (next == cpu)
			continue;
		/*
		 * The CPU is in another branch: go on with its domains that are
		 * narrower than this one.
		 */
		weight = perch_host_set_weight(h, perch_host_domain_set(h, sd));
		cpu = next;
		level = 0;
		for (l = PERCH_ZERO; PERCH_MORE; l++) {
			sd = perch_host_domain(h, cpu, l);
			if (sd == PERCH_NONE ||
			    perch_host_set_weight(h, perch_host_domain_set(h, sd)) >= weight)
				break;
			level = l + 1;
		}
	}
	v->examined += d.examined;
	return cpu;
}

#endif
