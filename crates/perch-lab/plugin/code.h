/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a plugin reads from the guest's x86-64 instructions when they are translated: marks, and
 * whether an instruction locks its line.
 */
#ifndef PERCH_PLUGIN_CODE_H
#define PERCH_PLUGIN_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A mark is `nopl 0x7065XXSS(%rax,%rax,1)`, an instruction of eight bytes that needs no privilege,
 * touches no memory and has no effect on any machine. XX says what the mark means, SS is the slot.
 */
enum mark {
	MARK_NONE = 0,
	MARK_START = 1, /* counting into the slot begins */
	MARK_STOP = 2,	/* counting ends */
	MARK_ROUND = 3, /* an operation of the benchmark is done */
};

struct mark_code {
	enum mark mark;
	unsigned int slot;
};

static inline struct mark_code mark_of(const uint8_t *code, size_t size)
{
	static const uint8_t nopl[] = {0x0f, 0x1f, 0x84, 0x00};
	struct mark_code none = {MARK_NONE, 0};

	if (size != 8 || memcmp(code, nopl, sizeof(nopl)) || code[6] != 0x65 || code[7] != 0x70)
		return none;
	if (code[5] < MARK_START || code[5] > MARK_ROUND)
		return none;
	return (struct mark_code){(enum mark)code[5], code[4]};
}

/* The kernel's addresses are the upper half. */
static inline bool is_kernel(uint64_t vaddr)
{
	return vaddr >> 63;
}

static inline bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0xf0: /* lock */
	case 0xf2:
	case 0xf3:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x26:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
		return true;
	default:
		return (byte & 0xf0) == 0x40; /* REX */
	}
}

/*
 * Returns whether the instruction owns the line that it loads from before it stores to it: one with
 * a lock prefix, and every xchg with memory.
 */
static inline bool is_locked(const uint8_t *code, size_t size)
{
	size_t at = 0;

	while (at < size && is_prefix(code[at])) {
		if (code[at] == 0xf0)
			return true;
		at++;
	}
	return at + 1 < size && (code[at] == 0x86 || code[at] == 0x87) && code[at + 1] < 0xc0;
}

#endif
