// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A test: the policy as BPF, over the native host's arrays in an arena. It
 * answers questions that the native policy answers too; the two must agree
 * (src/decide.rs). It schedules nothing and leaves the kernel as it was.
 */
#include "base/verify.h"

#include "../../../policy/hosts/native.h"
#include "../../../policy/hosts/question.h"
#include "../../../policy/include/perch/select.h"

/* The argument of the loader's BPF_PROG_TEST_RUN. */
struct perch_batch {
	__u64 questions; /* address of an array of struct perch_question */
	__u32 first, count;
};

/*
 * The question that is being answered. The stack is too short for it, and the
 * policy's pointers do not lead into the arena.
 */
static struct perch_question asked;

#define WORDS (sizeof(struct perch_question) / sizeof(perch_u64))

/*
 * Copies word by word through a volatile pointer: clang loses the address space
 * when it copies a whole structure.
 */
static inline void fetch(const volatile perch_u64 __arena *from)
{
	perch_u64 *to = (perch_u64 *)&asked;
	perch_u32 k;

#pragma unroll
	for (k = 0; k < WORDS; k++)
		to[k] = from[k];
}

static inline void store(volatile perch_u64 __arena *to)
{
	const perch_u64 *from = (const perch_u64 *)&asked;
	perch_u32 k;

#pragma unroll
	for (k = 0; k < WORDS; k++)
		to[k] = from[k];
}

PERCH_OUTLINE int answer(struct perch_question *q PERCH_GIVEN)
{
	perch_select(&q->host, &q->policy, &q->wake, &q->waker, &q->wakee, &q->verdict);
	return 0;
}

/*
 * Answers questions `first` to `count` - 1; returns the number of the first one
 * for which it had no time.
 */
SEC("syscall")
int perch_decide(struct perch_batch *batch)
{
	perch_u64 questions = batch->questions;
	perch_u32 count = batch->count, i;

	use_arena();
	for (i = batch->first; i < count && can_loop; i++) {
		/*
		 * The address stays a number until it is used: up to Linux 6.19
		 * the verifier lets no arena pointer be added to a number.
		 */
		perch_u64 at = questions + i * sizeof(struct perch_question);

		fetch((const volatile perch_u64 __arena *)at);
		answer(&asked);
		store((volatile perch_u64 __arena *)at);
	}
	return i;
}

char _license[] SEC("license") = "GPL";
