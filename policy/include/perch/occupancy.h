/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the LLC that a process occupies most and therefore prefers: the first
 * half of cache-aware wake-up (cache.h is the second). Written from
 * docs/mechanisms/cache.md.
 *
 * Runtimes are halved once an epoch of 10 ms. No timer does that: the CPU that
 * next writes a record first applies the halvings that the record has missed,
 * and a reader applies them to the copy that it has read. So only the CPU
 * itself ever writes its records.
 */
#ifndef PERCH_OCCUPANCY_H
#define PERCH_OCCUPANCY_H

#include "sets.h"

#define PERCH_EPOCH_NS 10000000ull
/* The number of epochs without a scan after which a preference is forgotten. */
#define PERCH_EPOCH_OLD 5
/* The share of a CPU that a process has all to itself; Linux counts shares so finely. */
#define PERCH_SHARE_ALL (1ull << 20)

/* The number of epochs that have passed at `now` and that `e` has not counted yet. */
PERCH_INLINE perch_u64 perch_epochs_late(const struct perch_epoch PERCH_AS *e, perch_u64 now_ns)
{
	if (now_ns <= e->next_ns)
		return 0;
	return (now_ns - e->next_ns + PERCH_EPOCH_NS - 1) / PERCH_EPOCH_NS;
}

/* `runtime` after `times` halvings; n halvings at once give the same as n single ones (P9). */
PERCH_INLINE perch_u64 perch_halved(perch_u64 runtime, perch_u64 times)
{
	return times < 64 ? runtime >> times : 0;
}

PERCH_INLINE void perch_epoch_advance(struct perch_epoch PERCH_AS *e, perch_u64 now_ns)
{
	perch_u64 late = perch_epochs_late(e, now_ns);

	if (!late)
		return;
	e->epoch += late;
	e->next_ns += late * PERCH_EPOCH_NS;
	e->runtime_ns = perch_halved(e->runtime_ns, late);
}

PERCH_INLINE void perch_cache_forget(struct perch_process PERCH_AS *process)
{
	process->pref_cpu = PERCH_NONE;
	process->nr_preferred = 0;
}

/*
 * A thread of `process` has run on `cpu` for `delta_ns` up to now. Only that
 * CPU may call this, one slice at a time.
 */
PERCH_INLINE void perch_cache_account(const struct perch_host *h,
				      struct perch_process PERCH_AS *process, perch_u32 cpu,
				      perch_u64 now_ns, perch_u64 delta_ns)
{
	struct perch_epoch PERCH_AS *e = perch_host_epoch(h, cpu);
	struct perch_occupancy PERCH_AS *o = &process->occupancy[cpu];

	perch_epoch_advance(e, now_ns);
	o->runtime_ns = perch_halved(o->runtime_ns, e->epoch - o->epoch) + delta_ns;
	o->epoch = e->epoch;
	e->runtime_ns += delta_ns;
	if (process->pref_cpu != PERCH_NONE &&
	    (process->nr_threads <= 1 ||
	     (perch_s64)(e->epoch - process->scan_epoch) > PERCH_EPOCH_OLD))
		perch_cache_forget(process);
}

/*
 * At a tick on `cpu`, which runs a thread of `process`: returns 1 if the
 * process is due for a scan. The caller must then run perch_cache_scan(), as no
 * other CPU gets a 1 in this epoch.
 */
PERCH_INLINE int perch_cache_due(const struct perch_host *h, const struct perch_policy *pol,
				 struct perch_process PERCH_AS *process, perch_u32 cpu,
				 perch_u64 now_ns)
{
	struct perch_epoch PERCH_AS *e = perch_host_epoch(h, cpu);

	if (pol->modes.cache == PERCH_OFF)
		return 0;
	perch_epoch_advance(e, now_ns);
	if (process->scan_epoch == e->epoch)
		return 0;
	/* A CPU that lags behind does not scan for an epoch that is over. */
	if (pol->modes.cache == PERCH_UPSTREAM && (perch_s64)(process->scan_epoch - e->epoch) > 0)
		return 0;
	process->scan_epoch = e->epoch;
	return 1;
}

/* The share of the time that `cpu` ran lately in which it ran this process, 0 to PERCH_SHARE_ALL. */
PERCH_OUTLINE perch_u32 perch_occupancy(const struct perch_host *h PERCH_GIVEN,
					struct perch_process PERCH_AS *process PERCH_GIVEN_AS,
					perch_u32 cpu, perch_u64 now_ns)
{
	struct perch_epoch PERCH_AS *e = perch_host_epoch(h, cpu);
	struct perch_occupancy PERCH_AS *o = &process->occupancy[cpu];
	perch_u64 late = perch_epochs_late(e, now_ns), own, all;

	own = perch_halved(o->runtime_ns, e->epoch + late - o->epoch);
	all = perch_halved(e->runtime_ns, late);
	own = own * PERCH_SHARE_ALL / (all + 1);
	/* A reader on another CPU may see one sum already updated and the other not yet. */
	return own < PERCH_SHARE_ALL ? own : PERCH_SHARE_ALL;
}

/*
 * Sums up the share of one LLC that a process occupies, and finds its hottest
 * CPU there; of equals the one with the lowest number.
 */
PERCH_OUTLINE int perch_cache_seat(const struct perch_host *h PERCH_GIVEN,
				   struct perch_process PERCH_AS *process PERCH_GIVEN_AS,
				   perch_u32 llc, perch_u64 now_ns)
{
	struct perch_seat PERCH_AS *seat = &process->seats[llc];
	perch_u32 set = perch_host_llc_cpus(h, llc), k, most = 0, hot = PERCH_NONE;
	perch_u64 sum = 0;
	perch_u32 first = perch_host_set_first(h, set), words = perch_host_set_words(h, set);

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);

		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m), own;

			m &= m - 1;
			own = perch_occupancy(h, process, cpu, now_ns);
			sum += own;
			if (own > most) {
				most = own;
				hot = cpu;
			}
		}
	}
	seat->occupancy = sum;
	seat->hot_cpu = hot;
	return 0;
}

PERCH_INLINE perch_u32 perch_llc_weight(const struct perch_host *h, perch_u32 llc)
{
	return perch_host_set_weight(h, perch_host_llc_cpus(h, llc));
}

/* Mode posted: the LLC with the highest average wins, and its hottest CPU is the preferred one. */
PERCH_INLINE void perch_cache_prefer_posted(const struct perch_host *h,
					    struct perch_process PERCH_AS *process)
{
	perch_u64 average, best = 0;
	perch_u32 llc, pref = PERCH_NONE;

	for (llc = PERCH_ZERO; llc < perch_host_nr_llcs(h) && PERCH_MORE; llc++) {
		average = process->seats[llc].occupancy / perch_llc_weight(h, llc);
		if (average > best) {
			best = average;
			pref = process->seats[llc].hot_cpu;
		}
	}
	process->pref_cpu = best < PERCH_SHARE_ALL / 32 ? PERCH_NONE : pref;
	process->nr_preferred = process->pref_cpu != PERCH_NONE;
}

/*
 * Mode upstream: true if a process must not gather: it has one thread, runs
 * more threads than the LLC of `cpu` has cores to spare, or touches more memory
 * than that LLC holds. Linux asks wherever it accounts a slice and before each
 * scan. A scan that ends here does not update the average of running threads,
 * so a process that once ran too many is barred for as long as it lives.
 */
PERCH_INLINE perch_u8 perch_cache_barred(const struct perch_host *h,
					 struct perch_process PERCH_AS *process, perch_u32 cpu)
{
	struct perch_llc_load PERCH_AS *load;
	perch_u32 llc = perch_host_llc(h, cpu);

	if (process->nr_threads <= 1 || llc == PERCH_NONE)
		return 1;
	load = perch_host_llc_load(h, llc);
	/* running average x threads a core x 1.25 >= CPUs, the average in 16ths */
	return process->running_avg * 5 >= 16 * 4 * load->cores ||
	       process->footprint_kib > load->size_kib;
}

/* Mode upstream: a thread has run on `cpu`; a process that must not gather loses its preference. */
PERCH_INLINE void perch_cache_check(const struct perch_host *h,
				    struct perch_process PERCH_AS *process, perch_u32 cpu)
{
	if (process->pref_cpu != PERCH_NONE && perch_cache_barred(h, process, cpu))
		perch_cache_forget(process);
}

/*
 * Mode upstream: the LLC with the largest sum wins, but its sum must be more
 * than twice that of the LLC preferred so far, which otherwise stays preferred
 * with the CPU that stands for it.
 */
PERCH_INLINE void perch_cache_prefer_upstream(const struct perch_host *h,
					      struct perch_process PERCH_AS *process)
{
	perch_u64 best = 0, held = 0;
	perch_u32 llc, pref = PERCH_NONE, here = PERCH_NONE;

	if (process->pref_cpu != PERCH_NONE)
		here = perch_host_llc(h, process->pref_cpu);
	for (llc = PERCH_ZERO; llc < perch_host_nr_llcs(h) && PERCH_MORE; llc++) {
		perch_u64 sum = process->seats[llc].occupancy;

		if (sum > best) {
			best = sum;
			pref = process->seats[llc].hot_cpu;
		}
		if (llc == here)
			held = sum;
	}
	if (best > 2 * held)
		process->pref_cpu = pref;
	process->nr_preferred = process->pref_cpu != PERCH_NONE;
}

/*
 * Mode perch: the number of threads that always run which an LLC holds while
 * each has a core of its own: 80 % of its cores, rounded up, so that an LLC of
 * two CPUs still takes a pair and one of four takes four. schbench with 64
 * workers on two LLCs of 60 cores showed the need: gathered in one LLC the
 * workers share cores, and each request loses more time by that than a near
 * cache saves.
 */
PERCH_INLINE perch_u32 perch_llc_holds(const struct perch_llc_load PERCH_AS *load)
{
	return (load->cores * 4 + 4) / 5;
}

/*
 * Mode perch: an LLC's claim. A preferred LLC's occupancy counts double, so
 * that the process does not alternate between two equal LLCs.
 */
PERCH_INLINE perch_u64 perch_seat_claim(const struct perch_seat PERCH_AS *seat)
{
	return seat->preferred ? 2 * seat->occupancy : seat->occupancy;
}

/*
 * Mode perch: marks (2) the LLC with the largest claim among those not yet
 * marked, the first of equals; PERCH_NONE when all are marked.
 */
PERCH_OUTLINE perch_u32 perch_cache_next_seat(const struct perch_host *h PERCH_GIVEN,
					      struct perch_process PERCH_AS *process PERCH_GIVEN_AS)
{
	perch_u64 claim, most = PERCH_ZERO;
	perch_u32 llc, best = PERCH_NONE;

	for (llc = PERCH_ZERO; llc < perch_host_nr_llcs(h) && PERCH_MORE; llc++) {
		if (process->seats[llc].preferred & 2)
			continue;
		claim = perch_seat_claim(&process->seats[llc]);
		if (best == PERCH_NONE || claim > most) {
			most = claim;
			best = llc;
		}
	}
	if (best != PERCH_NONE)
		process->seats[best].preferred |= 2;
	return best;
}

/*
 * Mode perch: the process prefers as many LLCs as its running threads fill,
 * those with the largest claim first, and all LLCs if need be. It takes a
 * further LLC when its threads fill the preferred ones completely, and drops
 * the last one again when its threads fit into four fifths of the room of the
 * others.
 */
PERCH_INLINE void perch_cache_prefer_most(const struct perch_host *h,
					  struct perch_process PERCH_AS *process)
{
	perch_u32 nr_llcs = perch_host_nr_llcs(h), llc, nr = PERCH_ZERO;
	perch_u32 first = PERCH_NONE, room = PERCH_ZERO, held = process->nr_preferred;

	for (llc = PERCH_ZERO; llc < nr_llcs && PERCH_MORE; llc++) {
		perch_u32 seat = perch_cache_next_seat(h, process), holds;

		if (seat == PERCH_NONE)
			break;
		if (first == PERCH_NONE)
			first = seat;
		nr++;
		holds = 16 * perch_llc_holds(perch_host_llc_load(h, seat));
		/* A process gives up an LLC only when it needs clearly less room. */
		room += nr < held ? holds * 4 / 5 : holds;
		if (process->running_avg < room)
			break;
	}
	for (llc = PERCH_ZERO; llc < nr_llcs && PERCH_MORE; llc++)
		process->seats[llc].preferred >>= 1;
	process->nr_preferred = nr;
	process->pref_cpu = first == PERCH_NONE ? PERCH_NONE : process->seats[first].hot_cpu;
}

/*
 * Looks at every LLC and settles which of them the process prefers; takes as
 * many steps as there are CPUs.
 */
PERCH_OUTLINE int perch_cache_scan(const struct perch_host *h PERCH_GIVEN,
				   const struct perch_policy *pol PERCH_GIVEN,
				   struct perch_process PERCH_AS *process PERCH_GIVEN_AS,
				   perch_u32 cpu, perch_u64 now_ns)
{
	perch_u32 llc = perch_host_llc(h, cpu), weight, div;
	perch_s32 diff = 16 * process->nr_running - process->running_avg, part;
	perch_u8 upstream = pol->modes.cache == PERCH_UPSTREAM;

	/*
	 * The average over a large LLC spans a longer time. It counts in 16ths,
	 * so that it does not get stuck in a small one; Linux counts whole
	 * threads.
	 */
	weight = llc == PERCH_NONE ? 1 : perch_llc_weight(h, llc);
	div = weight / 4 < 2 ? 2 : weight / 4 > 8 ? 8 : weight / 4;
	part = upstream ? diff / 16 / (perch_s32)div * 16 : diff / (perch_s32)div;
	if (upstream && perch_cache_barred(h, process, cpu)) {
		perch_cache_forget(process);
		return 0;
	}
	process->running_avg += part;
	if (process->nr_threads <= 1) {
		perch_cache_forget(process);
		return 0;
	}
	for (llc = PERCH_ZERO; llc < perch_host_nr_llcs(h) && PERCH_MORE; llc++)
		perch_cache_seat(h, process, llc, now_ns);
	if (pol->modes.cache == PERCH_POSTED)
		perch_cache_prefer_posted(h, process);
	else if (pol->modes.cache == PERCH_UPSTREAM)
		perch_cache_prefer_upstream(h, process);
	else
		perch_cache_prefer_most(h, process);
	return 0;
}

#endif
