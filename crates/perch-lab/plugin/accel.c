/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of the accelerator's functions (accel.h). */
#include "accel.h"

#include <stdio.h>
#include <stdlib.h>

#include "qemu.h"

/* The table is longer by little. */
#define OPS 40

static void unknown(void)
{
	fputs("perch: this QEMU's clock is not what the plugin knows: use Debian's 10.0\n", stderr);
	exit(1);
}

void accel_replace(void *old, void *const *by, int count)
{
	void **ops = cpus_get_accel();

	for (int i = 0; i < OPS && count; i++)
		if (ops[i] == old) {
			ops[i] = *by++;
			count--;
		}
	if (count)
		unknown();
}

void accel_fill(void *before, void *function)
{
	void **ops = cpus_get_accel();
	int at = 0;

	while (at < OPS && ops[at] != before)
		at++;
	if (at == OPS || ops[at + 1])
		unknown();
	ops[at + 1] = function;
}
