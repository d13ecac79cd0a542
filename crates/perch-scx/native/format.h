/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A message as a BPF program gives it to the kernel: printf's format, and the
 * values as an array of 64-bit words, whatever their types.
 */
#ifndef PERCH_SCX_FORMAT_H
#define PERCH_SCX_FORMAT_H

#include "abi.h"

/* Where the text goes; what does not fit is dropped. */
struct scx_text {
	char *at;
	scx_u32 length, room;
};

/* One conversion. */
struct scx_field {
	scx_u32 width, bits; /* bits: of the integer */
	scx_u32 most;	     /* of a string: bytes at the most */
	_Bool left, zeros, plus, prefix;
	char kind;
};

static void scx_put(struct scx_text *text, char c)
{
	if (text->length < text->room)
		text->at[text->length++] = c;
}

/* Puts `prefix` and the characters, padded to the field's width. */
static void scx_put_field(struct scx_text *text, const struct scx_field *field, const char *prefix,
			  const char *chars, scx_u32 count)
{
	scx_u32 used = count, i;

	for (i = 0; prefix[i]; i++)
		used++;
	for (i = used; i < field->width && !field->left && !field->zeros; i++)
		scx_put(text, ' ');
	for (i = 0; prefix[i]; i++)
		scx_put(text, prefix[i]);
	for (i = used; i < field->width && !field->left && field->zeros; i++)
		scx_put(text, '0');
	for (i = 0; i < count; i++)
		scx_put(text, chars[i]);
	for (i = used; i < field->width && field->left; i++)
		scx_put(text, ' ');
}

static void scx_put_number(struct scx_text *text, const struct scx_field *field, scx_u64 value)
{
	const char *digits = field->kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	scx_u32 base = 10, unused = 64 - field->bits, count = 0;
	const char *prefix = "";
	char chars[64];

	value = value << unused >> unused;
	if (field->kind == 'd') {
		if (value >> (field->bits - 1)) {
			prefix = "-";
			value = -value << unused >> unused;
		} else if (field->plus) {
			prefix = "+";
		}
	} else if (field->kind == 'o') {
		base = 8;
	} else if (field->kind != 'u') {
		base = 16;
		if (field->kind == 'p' || field->prefix)
			prefix = field->kind == 'X' ? "0X" : "0x";
	}
	do {
		chars[sizeof(chars) - ++count] = digits[value % base];
		value /= base;
	} while (value);
	scx_put_field(text, field, prefix, chars + sizeof(chars) - count, count);
}

static void scx_put_string(struct scx_text *text, struct scx_field *field, const char *string)
{
	scx_u32 count = 0;

	if (!string)
		string = "(null)";
	while (count < field->most && string[count])
		count++;
	field->zeros = 0;
	scx_put_field(text, field, "", string, count);
}

/* Reads what stands behind a %; returns what comes next. */
static const char *scx_read_field(const char *at, struct scx_field *field)
{
	*field = (struct scx_field){.bits = 32, .most = ~0u};
	for (;; at++) {
		if (*at == '-')
			field->left = 1;
		else if (*at == '0')
			field->zeros = 1;
		else if (*at == '+')
			field->plus = 1;
		else if (*at == '#')
			field->prefix = 1;
		else if (*at != ' ')
			break;
	}
	for (; *at >= '0' && *at <= '9'; at++)
		field->width = field->width * 10 + (*at - '0');
	if (*at == '.')
		for (at++, field->most = 0; *at >= '0' && *at <= '9'; at++)
			field->most = field->most * 10 + (*at - '0');
	for (;; at++) {
		if (*at == 'h')
			field->bits /= 2;
		else if (*at == 'l' || *at == 'z' || *at == 't' || *at == 'j')
			field->bits = 64;
		else
			break;
	}
	field->kind = *at == 'i' ? 'd' : *at;
	if (field->kind == 'p')
		field->bits = 64;
	return *at ? at + 1 : at;
}

/* Formats into `size` bytes, the 0 included. A value that was not given counts as 0. */
static void scx_format(char *to, scx_u32 size, const char *format, const scx_u64 *values,
		       scx_u32 nr_values)
{
	struct scx_text text = {.at = to, .room = size - 1};
	struct scx_field field;
	scx_u32 next = 0;

	while (*format) {
		scx_u64 value = 0;
		char c = *format++;

		if (c == '%')
			format = scx_read_field(format, &field);
		if (c != '%' || field.kind == '%' || !field.kind) {
			scx_put(&text, c);
			continue;
		}
		if (next < nr_values)
			value = values[next++];
		if (field.kind == 's') {
			scx_put_string(&text, &field, (const char *)value);
		} else if (field.kind == 'c') {
			c = value;
			scx_put_field(&text, &field, "", &c, 1);
		} else {
			scx_put_number(&text, &field, value);
		}
	}
	to[text.length] = 0;
}

#endif
