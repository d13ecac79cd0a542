/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's functions that a scheduler calls by name, as calls of the
 * simulated kernel. They are compiled apart from the program: each program
 * declares them with its own structures, and of those no function here needs
 * more than the layout.
 *
 * Of a function that Linux replaced by a newer one only the newer exists.
 * Nothing here needs a libc, so the shared object loads wherever it is mapped.
 */
#include "native.h"
#undef const

#include "format.h"

const struct scx_kernel *scx_kernel;

/* What a pointer to nothing leads to where BPF would read zeros (bpf_core_read.h). */
char scx_zeros[4096];

void scx_bind(const struct scx_kernel *kernel)
{
	scx_kernel = kernel;
}

/* What the compiler calls to copy and to fill; it must not make a call of the loops. */
#define SCX_BY_COMPILER __attribute__((visibility("hidden")))
void *memcpy(void *to, const void *from, unsigned long size);
void *memmove(void *to, const void *from, unsigned long size);
void *memset(void *to, int byte, unsigned long size);
int memcmp(const void *a, const void *b, unsigned long size);

SCX_BY_COMPILER void *memcpy(void *to, const void *from, unsigned long size)
{
	unsigned long i;

	for (i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

SCX_BY_COMPILER void *memmove(void *to, const void *from, unsigned long size)
{
	if ((unsigned long)to - (unsigned long)from >= size)
		return memcpy(to, from, size);
	while (size--)
		((char *)to)[size] = ((const char *)from)[size];
	return to;
}

SCX_BY_COMPILER void *memset(void *to, int byte, unsigned long size)
{
	unsigned long i;

	for (i = 0; i < size; i++)
		((char *)to)[i] = byte;
	return to;
}

SCX_BY_COMPILER int memcmp(const void *a, const void *b, unsigned long size)
{
	const unsigned char *x = a, *y = b;

	for (; size; size--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

/* Copies a string that ends within `size`, or its beginning; returns the bytes with the 0. */
long scx_read_string(void *to, scx_u32 size, const void *from)
{
	const char *text = from;
	char *out = to;
	scx_u32 i;

	if (!size)
		return 0;
	if (!text) {
		out[0] = 0;
		return -14; /* -EFAULT */
	}
	for (i = 0; i + 1 < size && text[i]; i++)
		out[i] = text[i];
	out[i] = 0;
	return i + 1;
}

/* A struct bpf_timer, two words that are the kernel's. */
struct scx_timer {
	void *callback;
	void *map;
};

long scx_timer_init(void *timer, const void *map)
{
	struct scx_timer *t = timer;

	if (t->map)
		return -16; /* -EBUSY */
	t->map = (void *)map;
	return 0;
}

long scx_timer_set_callback(void *timer, void *callback)
{
	struct scx_timer *t = timer;

	if (!t->map)
		return -22; /* -EINVAL */
	t->callback = callback;
	return 0;
}

long scx_timer_start(void *timer, scx_u64 ns, scx_u64 flags)
{
	struct scx_timer *t = timer;

	if (!t->callback)
		return -22; /* -EINVAL */
	return scx_kernel->timer_start(scx_kernel->of, timer, ns, flags);
}

long scx_timer_cancel(void *timer)
{
	struct scx_timer *t = timer;

	if (!t->map)
		return -22; /* -EINVAL */
	return scx_kernel->timer_cancel(scx_kernel->of, timer);
}

/* The callback gets the value that holds the timer, and its key. */
void scx_timer_expired(void *timer)
{
	struct scx_timer *t = timer;
	int (*callback)(void *map, void *key, void *value) = t->callback;
	scx_u64 key[8] = {};
	void *value = scx_kernel->map_key(scx_kernel->of, t->map, timer, key);

	callback(t->map, key, value ? value : timer);
}

/*
 * The kfuncs, by the numbers and pointers that they take. A program's own
 * structures are void here.
 */
#define KFUNC(returns, name, ...)  \
	returns name(__VA_ARGS__); \
	returns name(__VA_ARGS__)
#define KERNEL(function, ...) scx_kernel->function(scx_kernel->of, ##__VA_ARGS__)

/* A function that does nothing, whatever it is given. */
#define NOTHING(name)    \
	void name(void); \
	void name(void)  \
	{                \
	}

KFUNC(scx_u64, scx_bpf_now, void)
{
	return KERNEL(now);
}

KFUNC(void, scx_bpf_error_bstr, const char *format, const scx_u64 *data, scx_u32 size)
{
	char message[1024];

	scx_format(message, sizeof(message), format, data, size / sizeof(*data));
	KERNEL(error, message);
}

/* An end that the program wants is one, too. */
KFUNC(void, scx_bpf_exit_bstr, long long code, const char *format, const scx_u64 *data,
      scx_u32 size)
{
	scx_bpf_error_bstr(format, data, size);
}

/* No verifier asks for the type of what an address leads to. */
KFUNC(void *, bpf_rdonly_cast, const void *at, scx_u32 type)
{
	return (void *)at;
}

KFUNC(scx_u32, scx_bpf_nr_cpu_ids, void)
{
	return scx_kernel->nr_cpus;
}

KFUNC(void, scx_bpf_kick_cpu, scx_s32 cpu, scx_u64 flags)
{
	KERNEL(kick_cpu, cpu, flags);
}

/* Tasks: */
KFUNC(scx_s32, scx_bpf_task_cpu, const void *task)
{
	return KERNEL(task_cpu, task);
}

KFUNC(_Bool, scx_bpf_task_set_slice, void *task, scx_u64 slice)
{
	*(scx_u64 *)((char *)task + scx_layout.scx_slice) = slice;
	return 1;
}

KFUNC(_Bool, scx_bpf_task_set_dsq_vtime, void *task, scx_u64 vtime)
{
	*(scx_u64 *)((char *)task + scx_layout.scx_dsq_vtime) = vtime;
	return 1;
}

/* Cgroups, which nobody frees while a program may look at them: */
KFUNC(void *, scx_bpf_task_cgroup, void *task)
{
	return KERNEL(task_cgroup, task);
}

KFUNC(void *, bpf_cgroup_ancestor, void *cgroup, int level)
{
	return KERNEL(cgroup_ancestor, cgroup, level);
}

KFUNC(void *, bpf_cgroup_acquire, void *cgroup)
{
	return cgroup;
}

NOTHING(bpf_cgroup_release)

/* Idle CPUs: */
KFUNC(const void *, scx_bpf_get_idle_cpumask, void)
{
	return KERNEL(idle_mask, 0);
}

KFUNC(const void *, scx_bpf_get_idle_smtmask, void)
{
	return KERNEL(idle_mask, 1);
}

NOTHING(scx_bpf_put_idle_cpumask)

KFUNC(_Bool, scx_bpf_test_and_clear_cpu_idle, scx_s32 cpu)
{
	return KERNEL(test_and_clear_cpu_idle, cpu);
}

KFUNC(scx_s32, scx_bpf_pick_idle_cpu, const void *mask, scx_u64 flags)
{
	return KERNEL(pick_idle_cpu, mask, flags);
}

KFUNC(scx_s32, scx_bpf_pick_any_cpu, const void *mask, scx_u64 flags)
{
	return KERNEL(pick_any_cpu, mask, flags);
}

KFUNC(scx_s32, scx_bpf_select_cpu_dfl, void *task, scx_s32 prev_cpu, scx_u64 wake_flags,
      _Bool *is_idle)
{
	scx_s32 cpu = KERNEL(select_cpu, task, prev_cpu, wake_flags, 0, 0);

	*is_idle = cpu >= 0;
	return cpu >= 0 ? cpu : prev_cpu;
}

/* The kernel's structure of the arguments of scx_bpf_select_cpu_and(). */
struct scx_select {
	scx_s32 prev_cpu;
	scx_u64 wake_flags;
	scx_u64 flags;
};

KFUNC(scx_s32, __scx_bpf_select_cpu_and, void *task, const void *mask, struct scx_select *args)
{
	return KERNEL(select_cpu, task, args->prev_cpu, args->wake_flags, mask, args->flags);
}

/* Queues: */
KFUNC(scx_s32, scx_bpf_create_dsq, scx_u64 dsq, scx_s32 node)
{
	return KERNEL(create_dsq, dsq, node);
}

KFUNC(void, scx_bpf_destroy_dsq, scx_u64 dsq)
{
	KERNEL(destroy_dsq, dsq);
}

KFUNC(scx_s32, scx_bpf_dsq_nr_queued, scx_u64 dsq)
{
	return KERNEL(dsq_nr_queued, dsq);
}

KFUNC(_Bool, scx_bpf_dsq_insert___v2___new, void *task, scx_u64 dsq, scx_u64 slice,
      scx_u64 enq_flags)
{
	return KERNEL(dsq_insert, task, dsq, slice, enq_flags);
}

/* The kernel's structure of the arguments of scx_bpf_dsq_insert_vtime(). */
struct scx_insert {
	scx_u64 dsq;
	scx_u64 slice;
	scx_u64 vtime;
	scx_u64 enq_flags;
};

KFUNC(_Bool, __scx_bpf_dsq_insert_vtime, void *task, struct scx_insert *args)
{
	return KERNEL(dsq_insert_vtime, task, args->dsq, args->slice, args->vtime, args->enq_flags);
}

KFUNC(_Bool, scx_bpf_dsq_move_to_local___v2___new, scx_u64 dsq, scx_u64 enq_flags)
{
	return KERNEL(dsq_move_to_local, dsq, enq_flags);
}

KFUNC(scx_u32, scx_bpf_reenqueue_local, void)
{
	return KERNEL(reenqueue_local);
}

NOTHING(bpf_rcu_read_lock)
NOTHING(bpf_rcu_read_unlock)

/* A walk through a queue. The iterator is the program's struct bpf_iter_scx_dsq. */
KFUNC(int, bpf_iter_scx_dsq_new, scx_u64 *it, scx_u64 dsq, scx_u64 flags)
{
	return KERNEL(iter_new, it, dsq, flags);
}

KFUNC(void *, bpf_iter_scx_dsq_next, scx_u64 *it)
{
	return KERNEL(iter_next, it);
}

KFUNC(void, bpf_iter_scx_dsq_destroy, scx_u64 *it)
{
	KERNEL(iter_destroy, it);
}

KFUNC(void, scx_bpf_dsq_move_set_slice, scx_u64 *it, scx_u64 slice)
{
	KERNEL(move_set_slice, it, slice);
}

KFUNC(void, scx_bpf_dsq_move_set_vtime, scx_u64 *it, scx_u64 vtime)
{
	KERNEL(move_set_vtime, it, vtime);
}

KFUNC(_Bool, scx_bpf_dsq_move, scx_u64 *it, void *task, scx_u64 dsq, scx_u64 enq_flags)
{
	return KERNEL(dsq_move, it, task, dsq, enq_flags, 0);
}

KFUNC(_Bool, scx_bpf_dsq_move_vtime, scx_u64 *it, void *task, scx_u64 dsq, scx_u64 enq_flags)
{
	return KERNEL(dsq_move, it, task, dsq, enq_flags, 1);
}
