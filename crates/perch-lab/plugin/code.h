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
	MARK_WATCH = 4, /* caches and, where it is modelled, time begin */
	MARK_LEAVE = 5, /* lines are not followed any more; time goes on */
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
	if (code[5] < MARK_START || code[5] > MARK_LEAVE)
		return none;
	return (struct mark_code){(enum mark)code[5], code[4]};
}

static inline bool is_pause(const uint8_t *code, size_t size)
{
	return size == 2 && code[0] == 0xf3 && code[1] == 0x90;
}

static inline bool is_halt(const uint8_t *code, size_t size)
{
	return size == 1 && code[0] == 0xf4;
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

/* The number of prefixes before the opcode. */
static inline size_t prefixes(const uint8_t *code, size_t size)
{
	size_t count = 0;

	while (count < size && is_prefix(code[count]))
		count++;
	return count;
}

/*
 * Returns whether the instruction owns the line that it loads from before it stores to it: one with
 * a lock prefix, and every xchg with memory.
 */
static inline bool is_locked(const uint8_t *code, size_t size)
{
	size_t at = prefixes(code, size);

	if (memchr(code, 0xf0, at))
		return true;
	return at + 1 < size && (code[at] == 0x86 || code[at] == 0x87) && code[at + 1] < 0xc0;
}

/*
 * Returns whether the instruction flushes translations from its CPU's TLB: a write to a control
 * register, invlpg and invpcid.
 */
static inline bool is_flush(const uint8_t *code, size_t size)
{
	size_t at = prefixes(code, size);

	if (at + 2 >= size || code[at] != 0x0f)
		return false;
	if (code[at + 1] == 0x01)
		return code[at + 2] < 0xc0 && (code[at + 2] >> 3 & 7) == 7;
	return code[at + 1] == 0x22 || (code[at + 1] == 0x38 && code[at + 2] == 0x82);
}

#endif
