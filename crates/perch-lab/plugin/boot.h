/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's clock until its second CPU starts.
 *
 * The kernel calibrates the timer of the boot CPU's APIC against the TSC: for 0.2 s it reads the clock
 * and pauses. QEMU ends the CPU's turn at each pause and asks every CPU of the machine, all of which
 * are halted, whether it has something to do; that was two thirds of a boot of eight CPUs. So the
 * clock goes on by a while at such a pause, and the kernel reads it less often.
 */
#ifndef PERCH_BOOT_H
#define PERCH_BOOT_H

#include <stdint.h>

#include "qemu.h"

/* When a CPU starts. The first one's start hands the guest's clock to the plugin. */
void boot_cpu_starts(void);

/* Looks at a block that is translated. */
void boot_translate(struct qemu_plugin_tb *tb, size_t insns);

/* The guest's clock, ns: icount's, and what pauses have added to it. */
int64_t boot_clock(void);

#endif
