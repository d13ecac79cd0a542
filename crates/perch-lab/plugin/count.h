/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of what happens between two marks of the guest. */
#ifndef PERCH_PLUGIN_COUNT_H
#define PERCH_PLUGIN_COUNT_H

#include "lines.h"
#include "machine.h"
#include "qemu.h"

/*
 * An instruction of the guest that touches memory, and the lines that it moved. QEMU translates the
 * same instruction again and again, so each has one entry, which stays where it is.
 */
struct place {
	uint64_t vaddr;
	bool kernel;
	bool locked;
	uint64_t moved[KINDS][DISTANCES];
};

/* The slot that is open, -1 if none is. */
extern int count_slot;

/* `out`: the file that counts are written to. */
void count_start(const struct machine *machine, const char *out);

void count_begin(int slot);
void count_round(void);
void count_finish(void);

/* The entry of an instruction that accesses memory. */
struct place *count_place(uint64_t vaddr, bool locked);
/* Has a block count its instructions. */
void count_translate(struct qemu_plugin_tb *tb, size_t insns);
/* The instruction accessed a line; only while a slot is open. */
void count_access(struct place *place, struct access access);

#endif
