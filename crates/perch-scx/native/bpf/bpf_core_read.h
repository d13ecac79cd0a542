/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands in for libbpf's header of this name. The simulated kernel's structures
 * are the program's own, so every field and every value exists where the
 * program says.
 */
#ifndef PERCH_SCX_BPF_CORE_READ_H
#define PERCH_SCX_BPF_CORE_READ_H

extern char scx_zeros[4096];

#define bpf_core_type_exists(type) 1
#define bpf_core_type_matches(type) 1
#define bpf_core_type_id_local(type) sizeof(type)
#define bpf_core_type_id_kernel(type) 0
#define bpf_core_type_size(type) sizeof(type)
#define bpf_core_field_exists(...) 1
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)
#define bpf_core_field_size(type, field) sizeof(((type *)0)->field)
#define bpf_core_enum_value_exists(type, value) 1
#define bpf_core_enum_value(type, value) ((scx_u64)(value))
#define bpf_core_cast(at, type) ((typeof(type) *)(at))

#define BPF_CORE_READ_BITFIELD(at, field) ((at)->field)
#define BPF_CORE_READ_BITFIELD_PROBED(at, field) ((at)->field)

/*
 * BPF_CORE_READ(p, a, b) is p->a->b, up to four fields; zeros where a pointer on
 * the way is null.
 */
#define SCX_READ(known, field) (*(typeof(&(field)))((known) ? (void *)&(field) : (void *)scx_zeros))
#define SCX_READ_1(at, a) SCX_READ(at, (at)->a)
#define SCX_READ_2(at, a, b) SCX_READ((at) && (at)->a, (at)->a->b)
#define SCX_READ_3(at, a, b, c) SCX_READ((at) && (at)->a && (at)->a->b, (at)->a->b->c)
#define SCX_READ_4(at, a, b, c, d) \
	SCX_READ((at) && (at)->a && (at)->a->b && (at)->a->b->c, (at)->a->b->c->d)
#define SCX_READ_BY(a, b, c, d, name, ...) name
#define BPF_CORE_READ(at, ...) \
	SCX_READ_BY(__VA_ARGS__, SCX_READ_4, SCX_READ_3, SCX_READ_2, SCX_READ_1)(at, __VA_ARGS__)

#endif
