/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The compiler reads this file, behind native.h, before the BPF C of a scheduler
 * that was written against scx's headers and vmlinux.h.
 */
#ifndef PERCH_SCX_FOREIGN_H
#define PERCH_SCX_FOREIGN_H

/* vmlinux.h: no attributes of fields, which are where they are, and no prototypes. */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#define BPF_NO_KFUNC_PROTOTYPES

/* Headers make these of BPF's instructions unless they are there. */
#define MEMBER_VPTR(base, member)                                                      \
	((typeof((base)member) *)scx_within((char *)&((base)member) - (char *)&(base), \
					    sizeof(base) - sizeof((base)member), (void *)&(base)))
#define ARRAY_ELEM_PTR(array, i, n) \
	((scx_u64)(i) < (scx_u64)(n) ? (typeof((array)[i]) *)&(array)[i] : (typeof((array)[i]) *)0)

static inline void *scx_within(scx_u64 offset, scx_u64 most, void *base)
{
	return offset <= most ? (char *)base + offset : 0;
}

#endif
