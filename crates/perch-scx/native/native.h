/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The compiler reads this file before a scheduler's BPF C, which it compiles
 * natively (-include). The program takes libbpf's part from bpf/ beside it.
 */
#ifndef PERCH_SCX_NATIVE_H
#define PERCH_SCX_NATIVE_H

#include "abi.h"

/* The kernel that the program is bound to (kfuncs.c). */
extern const struct scx_kernel *scx_kernel;

long scx_read_string(void *to, scx_u32 size, const void *from);
long scx_timer_init(void *timer, const void *map);
long scx_timer_set_callback(void *timer, void *callback);
long scx_timer_start(void *timer, scx_u64 ns, scx_u64 flags);
long scx_timer_cancel(void *timer);

#define PERCH_READS(at) scx_kernel->line(scx_kernel->of, (const void *)(at), 0)
#define PERCH_WRITES(at) scx_kernel->line(scx_kernel->of, (const void *)(at), 1)
#define PERCH_CLAIM_LOST scx_kernel->claim_lost(scx_kernel->of)

/* Here an arena is memory like any other, and no verifier asks whether a loop ends. */
#define __arena
#define can_loop 1

/*
 * A scheduler calls `const volatile` what its loader writes before it runs.
 * Such a variable would lie in a page that nobody may write; so the program has
 * no constants.
 */
#define const

#endif
