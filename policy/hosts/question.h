/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One wake-up with everything that the policy may look at, and room for the
 * verdict. A policy that was compiled for another address space is asked the
 * native policy's questions by it. crates/perch-policy lays questions out
 * (Batch). The file that includes this one has defined struct perch_host before.
 */
#ifndef PERCH_HOSTS_QUESTION_H
#define PERCH_HOSTS_QUESTION_H

#include "../include/perch/host.h"

struct perch_question {
	struct perch_host host;
	struct perch_policy policy;
	struct perch_wake wake;
	struct perch_task waker, wakee; /* the policy's memory of them: also an answer */
	struct perch_verdict verdict;
};

#endif
