/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The macros by which the policy suits the verifier, and the arena that holds
 * the arrays. A program includes this before the host and the policy.
 */
#ifndef PERCH_VERIFY_H
#define PERCH_VERIFY_H

#include "base/kernel.h"

/* Natively (crates/perch-scx) the policy's own macros do. */
#ifdef __bpf__
#define PERCH_AS __arena
#define PERCH_MORE can_loop
/* Global functions are verified once each, not at every call on every path. */
#define PERCH_OUTLINE __attribute__((noinline, weak))
#define PERCH_RARE PERCH_OUTLINE
/* A global function has five arguments at the most. */
#define PERCH_APART PERCH_INLINE
#define PERCH_ZERO perch_zero
#define PERCH_GIVEN __attribute__((btf_decl_tag("arg:nonnull")))
#define PERCH_GIVEN_AS __attribute__((btf_decl_tag("arg:arena")))
/* The simulated kernel charges for cache lines that CPUs take from each other, and injects faults. */
#define PERCH_READS(at)
#define PERCH_WRITES(at)
#define PERCH_CLAIM_LOST 0
#endif

/* This variable is always 0, which the verifier cannot know. */
unsigned int perch_zero;

/*
 * A zero of its own for each of a loop's several counters. If two counters
 * began from one read, the verifier would follow their difference, and never
 * see the loop's end.
 */
static inline unsigned int another_zero(void)
{
	return *(volatile unsigned int *)&perch_zero;
}

#include "interface.h"

struct perch_arena {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* pages; the loader knows how many */
	__ulong(map_extra, PERCH_ARENA_BASE);
} arena SEC(".maps");

/* The verifier looks for a program's arena among the maps that it names. */
static inline void use_arena(void)
{
	asm volatile("" : : "r"(&arena));
}

#endif
