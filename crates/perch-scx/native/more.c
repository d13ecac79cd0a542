/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel functions that schedulers of others call and perch does not, and the
 * names under which their headers ask for a function: a suffix behind ___ is
 * theirs. Of several names for one function a program takes the newest.
 */
#include "kfuncs.c"

/* Another name of a function. */
#define SAME(name, as) __typeof__(as) name __attribute__((alias(#as)))

/* The kernel that is simulated: Linux 7.2 without CONFIG_PREEMPT_RCU. */
int LINUX_KERNEL_VERSION = (7 << 16) + (2 << 8);
_Bool CONFIG_PREEMPT_RCU;
int CONFIG_HZ = 250;
char CONFIG_CC_VERSION_TEXT[64];
char CONFIG_LOCALVERSION[64];

NOTHING(bpf_preempt_disable)
NOTHING(bpf_preempt_enable)

/* Masks of CPUs. The kernel's own are as long as the machine has CPUs. */
static scx_u32 scx_words(void)
{
	return (scx_kernel->nr_cpus + 63) / 64;
}

/* The first CPU of either kind in the words that `word` makes; else the number of CPUs. */
#define SCX_FIRST(word)                                                    \
	({                                                                 \
		scx_u32 at, found = scx_kernel->nr_cpus;                   \
		for (at = 0; at < scx_words(); at++) {                     \
			scx_u64 bits = (word);                             \
			if (!bits)                                         \
				continue;                                  \
			found = at * 64 + __builtin_ctzll(bits);           \
			break;                                             \
		}                                                          \
		found < scx_kernel->nr_cpus ? found : scx_kernel->nr_cpus; \
	})

/* Whether the condition holds for each word; the last word's other bits do not count. */
#define SCX_EACH(word)                                          \
	({                                                      \
		scx_u32 at;                                     \
		_Bool all = 1;                                  \
		for (at = 0; at < scx_words(); at++)            \
			all = all && !((word) & scx_valid(at)); \
		all;                                            \
	})

static scx_u64 scx_valid(scx_u32 word)
{
	scx_u32 left = scx_kernel->nr_cpus - word * 64;

	return left >= 64 ? ~0ULL : (1ULL << left) - 1;
}

KFUNC(void *, bpf_cpumask_create, void)
{
	return KERNEL(mask_create);
}

KFUNC(void *, bpf_cpumask_acquire, void *mask)
{
	KERNEL(mask_hold, mask, 1);
	return mask;
}

KFUNC(void, bpf_cpumask_release, void *mask)
{
	KERNEL(mask_hold, mask, -1);
}

KFUNC(scx_u32, bpf_cpumask_first, const scx_u64 *mask)
{
	return SCX_FIRST(mask[at]);
}

KFUNC(scx_u32, bpf_cpumask_first_zero, const scx_u64 *mask)
{
	return SCX_FIRST(~mask[at]);
}

KFUNC(scx_u32, bpf_cpumask_first_and, const scx_u64 *a, const scx_u64 *b)
{
	return SCX_FIRST(a[at] & b[at]);
}

/* The CPUs take turns. */
KFUNC(scx_u32, bpf_cpumask_any_and_distribute, const scx_u64 *a, const scx_u64 *b)
{
	static scx_u32 last;
	scx_u32 n = scx_kernel->nr_cpus, i;

	for (i = 1; i <= n; i++) {
		scx_u32 cpu = (last + i) % n;

		if ((a[cpu / 64] & b[cpu / 64]) >> (cpu % 64) & 1)
			return last = cpu;
	}
	return n;
}

KFUNC(scx_u32, bpf_cpumask_any_distribute, const scx_u64 *mask)
{
	return bpf_cpumask_any_and_distribute(mask, mask);
}

KFUNC(_Bool, bpf_cpumask_test_cpu, scx_u32 cpu, const scx_u64 *mask)
{
	return cpu < scx_kernel->nr_cpus && (mask[cpu / 64] >> (cpu % 64) & 1);
}

KFUNC(_Bool, bpf_cpumask_test_and_set_cpu, scx_u32 cpu, scx_u64 *mask)
{
	_Bool was = bpf_cpumask_test_cpu(cpu, mask);

	if (cpu < scx_kernel->nr_cpus)
		mask[cpu / 64] |= 1ULL << (cpu % 64);
	return was;
}

KFUNC(_Bool, bpf_cpumask_test_and_clear_cpu, scx_u32 cpu, scx_u64 *mask)
{
	_Bool was = bpf_cpumask_test_cpu(cpu, mask);

	if (was)
		mask[cpu / 64] &= ~(1ULL << (cpu % 64));
	return was;
}

KFUNC(void, bpf_cpumask_set_cpu, scx_u32 cpu, scx_u64 *mask)
{
	bpf_cpumask_test_and_set_cpu(cpu, mask);
}

KFUNC(void, bpf_cpumask_clear_cpu, scx_u32 cpu, scx_u64 *mask)
{
	bpf_cpumask_test_and_clear_cpu(cpu, mask);
}

KFUNC(void, bpf_cpumask_setall, scx_u64 *mask)
{
	scx_u32 at;

	for (at = 0; at < scx_words(); at++)
		mask[at] = scx_valid(at);
}

KFUNC(void, bpf_cpumask_clear, scx_u64 *mask)
{
	scx_u32 at;

	for (at = 0; at < scx_words(); at++)
		mask[at] = 0;
}

KFUNC(_Bool, bpf_cpumask_and, scx_u64 *to, const scx_u64 *a, const scx_u64 *b)
{
	scx_u64 any = 0;
	scx_u32 at;

	for (at = 0; at < scx_words(); at++)
		any |= to[at] = a[at] & b[at];
	return any != 0;
}

KFUNC(void, bpf_cpumask_or, scx_u64 *to, const scx_u64 *a, const scx_u64 *b)
{
	scx_u32 at;

	for (at = 0; at < scx_words(); at++)
		to[at] = a[at] | b[at];
}

KFUNC(void, bpf_cpumask_xor, scx_u64 *to, const scx_u64 *a, const scx_u64 *b)
{
	scx_u32 at;

	for (at = 0; at < scx_words(); at++)
		to[at] = a[at] ^ b[at];
}

KFUNC(void, bpf_cpumask_copy, scx_u64 *to, const scx_u64 *from)
{
	scx_u32 at;

	for (at = 0; at < scx_words(); at++)
		to[at] = from[at];
}

KFUNC(_Bool, bpf_cpumask_equal, const scx_u64 *a, const scx_u64 *b)
{
	return SCX_EACH(a[at] ^ b[at]);
}

KFUNC(_Bool, bpf_cpumask_intersects, const scx_u64 *a, const scx_u64 *b)
{
	return !SCX_EACH(a[at] & b[at]);
}

KFUNC(_Bool, bpf_cpumask_subset, const scx_u64 *a, const scx_u64 *b)
{
	return SCX_EACH(a[at] & ~b[at]);
}

KFUNC(_Bool, bpf_cpumask_empty, const scx_u64 *mask)
{
	return SCX_EACH(mask[at]);
}

KFUNC(_Bool, bpf_cpumask_full, const scx_u64 *mask)
{
	return SCX_EACH(~mask[at]);
}

KFUNC(scx_u32, bpf_cpumask_weight, const scx_u64 *mask)
{
	scx_u32 at, weight = 0;
	scx_u64 bits;

	for (at = 0; at < scx_words(); at++)
		for (bits = mask[at] & scx_valid(at); bits; bits &= bits - 1)
			weight++;
	return weight;
}

/* Fills a mask from memory of the program's. */
KFUNC(int, bpf_cpumask_populate, scx_u64 *to, const char *from, unsigned long size)
{
	scx_u32 at;

	if (size < (scx_kernel->nr_cpus + 7) / 8)
		return -13; /* -EACCES */
	for (at = 0; at < scx_words(); at++)
		to[at] = 0;
	for (at = 0; at < size && at < scx_words() * 8; at++)
		((char *)to)[at] = from[at];
	return 0;
}

/* A walk over the bits of some words: the program's struct bpf_iter_bits, of two words. */
struct scx_bits {
	const scx_u64 *words;
	scx_s32 bit;
	scx_u32 nr_bits;
};

KFUNC(int, bpf_iter_bits_new, struct scx_bits *it, const scx_u64 *words, scx_u32 nr_words)
{
	/* A whole mask is no longer than the machine has CPUs. */
	if (nr_words * 8 == scx_layout.cpumask_size)
		nr_words = scx_words();
	*it = (struct scx_bits){words, -1, words ? nr_words * 64 : 0};
	return words ? 0 : -22; /* -EINVAL */
}

KFUNC(int *, bpf_iter_bits_next, struct scx_bits *it)
{
	scx_u32 bit;

	for (bit = it->bit + 1; bit < it->nr_bits; bit++) {
		if (!(it->words[bit / 64] >> (bit % 64) & 1))
			continue;
		it->bit = bit;
		return &it->bit;
	}
	it->nr_bits = 0;
	return 0;
}

NOTHING(bpf_iter_bits_destroy)

/* Tasks and cgroups, which nobody frees while a program may look at them: */
KFUNC(void *, bpf_task_from_pid, scx_s32 pid)
{
	return KERNEL(task_of_pid, pid);
}

SAME(bpf_task_from_vpid, bpf_task_from_pid);

KFUNC(void *, bpf_task_acquire, void *task)
{
	return task;
}

NOTHING(bpf_task_release)

KFUNC(void *, bpf_cgroup_from_id, scx_u64 id)
{
	return KERNEL(cgroup_of_id, id);
}

KFUNC(void *, scx_bpf_cpu_rq, scx_s32 cpu)
{
	if ((scx_u32)cpu >= scx_kernel->nr_cpus)
		return 0;
	return (char *)scx_kernel->rqs + (scx_u64)cpu * scx_layout.rq_size;
}

KFUNC(void *, scx_bpf_locked_rq, void)
{
	return scx_bpf_cpu_rq(KERNEL(this_cpu));
}

KFUNC(void *, scx_bpf_cpu_curr, scx_s32 cpu)
{
	char *rq = scx_bpf_cpu_rq(cpu);

	return rq ? *(void **)(rq + scx_layout.curr) : 0;
}

KFUNC(_Bool, scx_bpf_task_running, const void *task)
{
	return scx_bpf_cpu_curr(KERNEL(task_cpu, task)) == task;
}

/* CPUs: */
KFUNC(scx_u32, scx_bpf_cpuperf_cap, scx_s32 cpu)
{
	return KERNEL(cpu_capacity, cpu);
}

/* The simulated CPUs keep their speed, whatever a program asks for. */
KFUNC(scx_u32, scx_bpf_cpuperf_cur, scx_s32 cpu)
{
	return 1024;
}

NOTHING(scx_bpf_cpuperf_set)

KFUNC(scx_u32, scx_bpf_nr_node_ids, void)
{
	return KERNEL(nr_nodes);
}

KFUNC(int, scx_bpf_cpu_node, scx_s32 cpu)
{
	return KERNEL(cpu_node, cpu);
}

KFUNC(const void *, scx_bpf_get_possible_cpumask, void)
{
	return KERNEL(mask_of_all);
}

SAME(scx_bpf_get_online_cpumask, scx_bpf_get_possible_cpumask);

NOTHING(scx_bpf_put_cpumask)

KFUNC(const void *, scx_bpf_get_idle_cpumask_node, int node)
{
	return KERNEL(idle_mask_of_node, 0, node);
}

KFUNC(const void *, scx_bpf_get_idle_smtmask_node, int node)
{
	return KERNEL(idle_mask_of_node, 1, node);
}

KFUNC(scx_s32, scx_bpf_pick_idle_cpu_node, const void *mask, int node, scx_u64 flags)
{
	return KERNEL(pick_idle_cpu_node, mask, node, flags);
}

KFUNC(scx_s32, scx_bpf_pick_any_cpu_node, const void *mask, int node, scx_u64 flags)
{
	scx_s32 cpu = KERNEL(pick_idle_cpu_node, mask, node, flags);

	return cpu >= 0 ? cpu : KERNEL(pick_any_cpu, mask, flags);
}

/* Queues: */
KFUNC(scx_u32, scx_bpf_dispatch_nr_slots, void)
{
	return KERNEL(dispatch_slots);
}

KFUNC(void, scx_bpf_dispatch_cancel, void)
{
	KERNEL(dispatch_cancel);
}

KFUNC(void *, scx_bpf_dsq_peek, scx_u64 dsq)
{
	scx_u64 it[6];

	return KERNEL(iter_new, it, dsq, 0) ? 0 : KERNEL(iter_next, it);
}

/* The names of Linux 6.13 to 6.18: */
KFUNC(void, scx_bpf_dsq_insert, void *task, scx_u64 dsq, scx_u64 slice, scx_u64 enq_flags)
{
	KERNEL(dsq_insert, task, dsq, slice, enq_flags);
}

KFUNC(void, scx_bpf_dsq_insert_vtime, void *task, scx_u64 dsq, scx_u64 slice, scx_u64 vtime,
      scx_u64 enq_flags)
{
	KERNEL(dsq_insert_vtime, task, dsq, slice, vtime, enq_flags);
}

KFUNC(_Bool, scx_bpf_dsq_move_to_local, scx_u64 dsq)
{
	return KERNEL(dsq_move_to_local, dsq, 0);
}

KFUNC(scx_s32, scx_bpf_select_cpu_and, void *task, scx_s32 prev_cpu, scx_u64 wake_flags,
      const void *mask, scx_u64 flags)
{
	return KERNEL(select_cpu, task, prev_cpu, wake_flags, mask, flags);
}

/* Those of scx's headers: */
SAME(scx_bpf_dsq_insert___v2___compat, scx_bpf_dsq_insert___v2___new);
SAME(scx_bpf_dsq_insert___compat, scx_bpf_dsq_insert);
SAME(scx_bpf_dsq_insert_vtime___compat, scx_bpf_dsq_insert_vtime);
SAME(scx_bpf_dsq_move_to_local___v2, scx_bpf_dsq_move_to_local___v2___new);
SAME(scx_bpf_dsq_move_to_local___new, scx_bpf_dsq_move_to_local);
SAME(scx_bpf_dsq_move_set_slice___new, scx_bpf_dsq_move_set_slice);
SAME(scx_bpf_dsq_move_set_vtime___new, scx_bpf_dsq_move_set_vtime);
SAME(scx_bpf_dsq_move___new, scx_bpf_dsq_move);
SAME(scx_bpf_dsq_move_vtime___new, scx_bpf_dsq_move_vtime);
SAME(scx_bpf_select_cpu_and___compat, scx_bpf_select_cpu_and);
SAME(scx_bpf_task_set_slice___new, scx_bpf_task_set_slice);
SAME(scx_bpf_task_set_dsq_vtime___new, scx_bpf_task_set_dsq_vtime);
SAME(scx_bpf_task_cgroup___new, scx_bpf_task_cgroup);

/* Of ops.cpu_release() only; the newer one, for every place, is not there. */
SAME(scx_bpf_reenqueue_local___v1, scx_bpf_reenqueue_local);

/* Nobody reads what a scheduler dumps. */
NOTHING(scx_bpf_dump_bstr)
