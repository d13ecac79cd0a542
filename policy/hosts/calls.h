/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The policy as functions that another language calls; native.c has them.
 * scripts/mirrors has bindgen write crates/perch-policy/src/ffi/generated.rs
 * from this header and from what it includes.
 */
#ifndef PERCH_HOSTS_CALLS_H
#define PERCH_HOSTS_CALLS_H

#include "native.h"
#include "question.h"

#include "../include/perch/cache.h"
#include "../include/perch/overload.h"

void perch_native_select(struct perch_host *h, const struct perch_policy *pol,
			 const struct perch_wake *wake, struct perch_task *waker,
			 struct perch_task *p, struct perch_verdict *v);

void perch_native_account(struct perch_host *h, struct perch_process *process, perch_u32 cpu,
			  perch_u64 now_ns, perch_u64 delta_ns);
void perch_native_check(struct perch_host *h, struct perch_process *process, perch_u32 cpu);
int perch_native_due(struct perch_host *h, const struct perch_policy *pol,
		     struct perch_process *process, perch_u32 cpu, perch_u64 now_ns);
void perch_native_scan(struct perch_host *h, const struct perch_policy *pol,
		       struct perch_process *process, perch_u32 cpu, perch_u64 now_ns);
void perch_native_note(struct perch_host *h, perch_u32 llc, perch_u32 util, perch_u32 capacity_left,
		       perch_u32 nr);
/* An LLC is so busy: perch_spread_level(). */
void perch_native_level(struct perch_host *h, perch_u32 llc, perch_u32 busy);

/* perch_turn(). */
perch_u32 perch_native_turn(perch_u32 known, perch_u64 ns);

perch_u32 perch_native_draws(struct perch_host *h, perch_u32 src, perch_u32 dst);
perch_u32 perch_native_move(struct perch_host *h, const struct perch_policy *pol,
			    const struct perch_task *p, perch_u32 src, perch_u32 dst);

int perch_native_overload_init(struct perch_overload *o, const struct perch_overload_memory *m,
			       perch_u32 layout, perch_u32 exact, const perch_u32 *nodes,
			       perch_u32 nr);
void perch_native_overload_free(struct perch_overload *o, const struct perch_overload_memory *m);
perch_u32 perch_native_overload_home(perch_u32 layout, perch_u32 node, perch_u32 llc);
perch_u32 perch_native_overload_set(const struct perch_overload *o, perch_u32 *mark,
				    perch_u32 home);
perch_u32 perch_native_overload_clear(const struct perch_overload *o, perch_u32 *mark,
				      perch_u32 home);
perch_u32 perch_native_overload_read(const struct perch_overload *o, perch_u32 home,
				     perch_u32 *loads);

#endif
