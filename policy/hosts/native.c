/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy as the simulator and the replay call it. */
#include "native.h"

#include "../include/perch/select.h"

void perch_native_select(struct perch_host *h, const struct perch_policy *pol,
			 const struct perch_wake *wake, struct perch_task *waker,
			 struct perch_task *p, struct perch_verdict *v);

void perch_native_select(struct perch_host *h, const struct perch_policy *pol,
			 const struct perch_wake *wake, struct perch_task *waker,
			 struct perch_task *p, struct perch_verdict *v)
{
	perch_select(h, pol, wake, waker, p, v);
}
