/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names that followers.def gives its followers, for those that mention one. */
#ifndef PERCH_LIST_H
#define PERCH_LIST_H

#include "base/hooks.h"

/* The value of `follows` in followers.def, where a function has no variable of that name. */
enum {
	follows = 1
};

/* The followers' numbers, in the order of the list. */
enum perch_follower_number {
#define FOLLOWER(name, on) PERCH_FOLLOWER_##name,
#include "followers.def"
};

/* util_is_on() and the like: a follower asks by these functions if another one is on. */
#define FOLLOWER(name, on)                    \
	static inline bool name##_is_on(void) \
	{                                     \
		return on;                    \
	}
#include "followers.def"

#endif
