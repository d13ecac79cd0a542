// SPDX-License-Identifier: GPL-2.0-only
/*
 * A test: the policy as BPF, over the native host's arrays in an arena. It
 * answers questions that the native policy answers too; the two must agree
 * (src/decide.rs). It schedules nothing and leaves the kernel as it was.
 */
#include "verify.h"

#include "../../../policy/hosts/question.h"
#include "../../../policy/include/perch/select.h"

/* What the loader asks by BPF_PROG_TEST_RUN. */
struct perch_batch {
	__u64 questions; /* address of an array of struct perch_question */
	__u32 first, count;
};

/* The question being answered: the stack is short, and the policy's pointers are no arena's. */
static struct perch_question asked;

PERCH_OUTLINE int answer(struct perch_question *q PERCH_GIVEN)
{
	perch_select(&q->host, &q->policy, &q->wake, &q->waker, &q->wakee, &q->verdict);
	return 0;
}

/* Answers questions `first` to `count` - 1; the number of the first that it had no time for. */
SEC("syscall")
int perch_decide(struct perch_batch *batch)
{
	struct perch_question __arena *questions = (void __arena *)batch->questions;
	perch_u32 count = batch->count, i;

	use_arena();
	for (i = batch->first; i < count && can_loop; i++) {
		struct perch_question __arena *q = &questions[i];

		asked.host = q->host;
		asked.policy = q->policy;
		asked.wake = q->wake;
		asked.waker = q->waker;
		asked.wakee = q->wakee;
		asked.verdict = q->verdict;
		answer(&asked);
		q->waker = asked.waker;
		q->wakee = asked.wakee;
		q->verdict = asked.verdict;
	}
	return i;
}

char _license[] SEC("license") = "GPL";
