/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the guest's tasks do between two marks: how often each of them runs, and on which CPUs, what
 * it executes and moves, and how many lines it uses in a run, from the switch to it to the switch
 * away from it.
 *
 * A plugin cannot ask a kernel which task runs. But every x86-64 kernel switches by one instruction,
 * the load of the next task's stack pointer, and the address that it loads from is the task's.
 */
#ifndef PERCH_PLUGIN_TASKS_H
#define PERCH_PLUGIN_TASKS_H

#include <stdio.h>

#include "lines.h"
#include "machine.h"
#include "qemu.h"

/* Instructions that a CPU has executed so far, users' and the kernel's. */
struct executed {
	uint64_t insns[2];
};

void tasks_start(const struct machine *machine, struct executed (*executed_by)(unsigned int cpu));
void tasks_begin(void);
void tasks_write(FILE *file);

/* Watches an instruction by which the kernel switches tasks or halts. */
void tasks_watch(struct qemu_plugin_insn *insn, const uint8_t *code, size_t size);
/* The task that `cpu` runs accessed a line of data; only while a slot is open. */
void tasks_access(unsigned int cpu, uint64_t line, struct access access);
/* It used a line of code. `*stamp` is the run in which `cpu` used that line last, 0 at first. */
void tasks_code(unsigned int cpu, uint32_t *stamp);

#endif
