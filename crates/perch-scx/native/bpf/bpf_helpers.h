/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands in for libbpf's header of this name: BPF's helpers, as calls of the
 * simulated kernel. A helper that it lacks is one that no scheduler here calls.
 */
#ifndef PERCH_SCX_BPF_HELPERS_H
#define PERCH_SCX_BPF_HELPERS_H

#define SEC(name)
#define __ksym
#define __kconfig
#define __kptr
#define __kptr_untrusted
#define __percpu_kptr
#define __arg_ctx
#define __arg_nonnull
#define __arg_nullable
#define __arg_trusted
#define __arg_untrusted
#define __arg_arena
#define __hidden __attribute__((visibility("hidden")))
#define __weak __attribute__((weak))
#define __noinline __attribute__((noinline))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))

#ifndef NULL
#define NULL ((void *)0)
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#ifndef container_of
#define container_of(at, type, member) ((type *)((char *)(at) - offsetof(type, member)))
#endif

#define barrier() asm volatile("" : : : "memory")
#define barrier_var(var) asm volatile("" : "+r"(var))

/* A function that the kernel lacks is weak and has no address. */
#define bpf_ksym_exists(symbol) ((void *)&(symbol) != (void *)0)

/*
 * The definition of a map. Its members are pointers that lead nowhere; what
 * they would lead to has the map's sizes and numbers. A size may stand there as
 * a number or as a type, under one name here.
 */
#define __uint(name, value) SCX_UINT_##name(value)
#define __type(name, type) typeof(type) *name
#define __array(name, type) typeof(type) *name[]
#define __ulong(name, value) scx_u64 name

#define SCX_UINT_type(value) int(*type)[value]
#define SCX_UINT_max_entries(value) int(*max_entries)[value]
#define SCX_UINT_map_flags(value) int(*map_flags)[value]
#define SCX_UINT_map_extra(value) int(*map_extra)[value]
#define SCX_UINT_numa_node(value) int(*numa_node)[value]
#define SCX_UINT_pinning(value) int(*pinning)[value]
#define SCX_UINT_key_size(size) char(*key)[size]
#define SCX_UINT_value_size(size) char(*value)[size]

#define SCX_NUMBER(map, name) (sizeof(*(map)->name) / sizeof(int))
#define SCX_MAP(map, entries, key_bytes)             \
	(&(struct scx_map){                          \
		.type = SCX_NUMBER(map, type),       \
		.max_entries = (entries),            \
		.key_size = (key_bytes),             \
		.value_size = sizeof(*(map)->value), \
	})
#define SCX_KEYED(map) SCX_MAP(map, SCX_NUMBER(map, max_entries), sizeof(*(map)->key))
#define SCX_KEYLESS(map) SCX_MAP(map, SCX_NUMBER(map, max_entries), 0)
#define SCX_STORAGE(map) SCX_MAP(map, 0, sizeof(*(map)->key))

#define bpf_map_lookup_percpu_elem(map, key, cpu) \
	scx_kernel->map_lookup(scx_kernel->of, map, SCX_KEYED(map), key, cpu)
#define bpf_map_lookup_elem(map, key) bpf_map_lookup_percpu_elem(map, key, -1)
#define bpf_map_update_elem(map, key, value, flags) \
	scx_kernel->map_update(scx_kernel->of, map, SCX_KEYED(map), key, value, flags)
#define bpf_map_delete_elem(map, key) \
	scx_kernel->map_delete(scx_kernel->of, map, SCX_KEYED(map), key)
#define bpf_map_push_elem(map, value, flags) \
	scx_kernel->map_push(scx_kernel->of, map, SCX_KEYLESS(map), value)
#define bpf_map_pop_elem(map, value) \
	scx_kernel->map_pop(scx_kernel->of, map, SCX_KEYLESS(map), value)

#define bpf_task_storage_get(map, task, first, flags) \
	scx_kernel->storage_get(scx_kernel->of, map, SCX_STORAGE(map), task, first, flags)
#define bpf_task_storage_delete(map, task) scx_kernel->storage_delete(scx_kernel->of, map, task)
#define bpf_cgrp_storage_get bpf_task_storage_get
#define bpf_cgrp_storage_delete bpf_task_storage_delete

#define bpf_timer_init(timer, map, flags) scx_timer_init(timer, map)
#define bpf_timer_set_callback(timer, callback) scx_timer_set_callback(timer, (void *)(callback))
#define bpf_timer_start(timer, ns, flags) scx_timer_start(timer, ns, flags)
#define bpf_timer_cancel(timer) scx_timer_cancel(timer)

/*
 * The run queues are the only variables of the kernel that each CPU has its own
 * of. Another one is weak, and has no address.
 */
#define bpf_per_cpu_ptr(variable, cpu) ((typeof(variable))scx_per_cpu((void *)(variable), cpu))
#define bpf_this_cpu_ptr(variable) bpf_per_cpu_ptr(variable, bpf_get_smp_processor_id())

#define bpf_probe_read_kernel_str(to, size, from) scx_read_string(to, size, from)
#define bpf_probe_read_kernel(to, size, from) scx_read_bytes(to, size, (void *)(from))

#define bpf_printk(format, ...) 0

#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))

/*
 * The number of the arguments, up to eight, and their values as an array of
 * words: programs make the call of scx_bpf_error_bstr() of these two.
 */
#define ___bpf_narg(...) SCX_COUNT(0, ##__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define SCX_COUNT(zero, a, b, c, d, e, f, g, h, count, ...) count
#define ___bpf_fill(to, ...) SCX_FILL(___bpf_narg(__VA_ARGS__), to, ##__VA_ARGS__)
#define SCX_FILL(count, ...) SCX_FILL_BY(count, __VA_ARGS__)
#define SCX_FILL_BY(count, ...) SCX_FILL_##count(__VA_ARGS__)
#define SCX_FILL_0(to, ...) (void)(to)
#define SCX_FILL_1(to, a) *(to) = (scx_u64)(a)
#define SCX_FILL_2(to, a, ...) (SCX_FILL_1(to, a), SCX_FILL_1((to) + 1, __VA_ARGS__))
#define SCX_FILL_3(to, a, ...) (SCX_FILL_1(to, a), SCX_FILL_2((to) + 1, __VA_ARGS__))
#define SCX_FILL_4(to, a, ...) (SCX_FILL_1(to, a), SCX_FILL_3((to) + 1, __VA_ARGS__))
#define SCX_FILL_5(to, a, ...) (SCX_FILL_1(to, a), SCX_FILL_4((to) + 1, __VA_ARGS__))
#define SCX_FILL_6(to, a, ...) (SCX_FILL_1(to, a), SCX_FILL_5((to) + 1, __VA_ARGS__))
#define SCX_FILL_7(to, a, ...) (SCX_FILL_1(to, a), SCX_FILL_6((to) + 1, __VA_ARGS__))
#define SCX_FILL_8(to, a, ...) (SCX_FILL_1(to, a), SCX_FILL_7((to) + 1, __VA_ARGS__))

static inline void *scx_per_cpu(void *variable, scx_u32 cpu)
{
	if (!variable || cpu >= scx_kernel->nr_cpus)
		return NULL;
	return (char *)scx_kernel->rqs + (scx_u64)cpu * scx_layout.rq_size;
}

static inline long scx_read_bytes(void *to, scx_u32 size, void *from)
{
	if (!from) {
		__builtin_memset(to, 0, size);
		return -14; /* -EFAULT */
	}
	__builtin_memcpy(to, from, size);
	return 0;
}

/* Returns what was there. */
static inline void *scx_swap(void **at, void *with)
{
	void *was = *at;

	*at = with;
	return was;
}
#define bpf_kptr_xchg(at, with) scx_swap((void **)(at), (void *)(with))

/* One CPU executes the program at a time. */
#define bpf_spin_lock(lock) (void)(lock)
#define bpf_spin_unlock(lock) (void)(lock)

/* Nobody reads the ring, and it is always full; nobody has opened a counter. */
#define bpf_ringbuf_reserve(map, size, flags) NULL
#define bpf_ringbuf_submit(data, flags) (void)(data)
#define bpf_ringbuf_discard(data, flags) (void)(data)
#define bpf_ringbuf_output(map, data, size, flags) (-11)
#define bpf_perf_event_read_value(map, cpu, value, size) (-2)

/* Loops: */
#define bpf_for(i, start, end)                                             \
	for (struct { int scx_at, scx_end; } scx_range = {(start), (end)}; \
	     scx_range.scx_at < scx_range.scx_end && ((i) = scx_range.scx_at++, 1);)
#define bpf_repeat(times) for (int scx_left = (times); scx_left-- > 0;)
#define bpf_for_each(type, at, ...)                                                             \
	for (struct bpf_iter_##type ___it __attribute__((cleanup(bpf_iter_##type##_destroy))),  \
	     *scx_begun                                                                         \
	     __attribute__((unused)) = (bpf_iter_##type##_new(&___it, __VA_ARGS__), (void *)0); \
	     ((at) = bpf_iter_##type##_next(&___it));)

static inline long scx_loop(scx_u32 times, long (*each)(scx_u32 i, void *context), void *context)
{
	scx_u32 i;

	for (i = 0; i < times; i++)
		if (each(i, context))
			return i + 1;
	return times;
}
#define bpf_loop(times, each, context, flags) scx_loop(times, (void *)(each), context)

static inline scx_u32 bpf_get_smp_processor_id(void)
{
	return scx_kernel->this_cpu(scx_kernel->of);
}

static inline void *bpf_get_current_task_btf(void)
{
	return scx_kernel->current(scx_kernel->of);
}

#define bpf_get_current_task() ((scx_u64)bpf_get_current_task_btf())

static inline scx_u32 bpf_get_prandom_u32(void)
{
	return scx_kernel->random(scx_kernel->of);
}

static inline scx_u64 bpf_ktime_get_ns(void)
{
	return scx_kernel->now(scx_kernel->of);
}

#define bpf_ktime_get_boot_ns bpf_ktime_get_ns
#define bpf_ktime_get_coarse_ns bpf_ktime_get_ns

/* The simulated kernel has 250 ticks a second (CONFIG_HZ). */
static inline scx_u64 bpf_jiffies64(void)
{
	return bpf_ktime_get_ns() / 4000000;
}

#endif
