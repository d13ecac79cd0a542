/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of what happens between two marks of the guest, and the file that they are written to.
 *
 * The file has a line of JSON for each slot; src/coherence/record.rs reads it. Times are in picoseconds,
 * and a move is a list of its kind, its distance and how much of it there was.
 */
#include "count.h"

#include <stddef.h>

#include "clock.h"
#include "code.h"
#include "table.h"

/* Instructions that a CPU has executed so far, users' and the kernel's. */
struct executed {
	uint64_t insns[2];
};

#define PLACES_OF_A_BLOCK 1024

static const struct machine *machine;
static struct qemu_plugin_scoreboard *scores;
static const char *out;

/* The counts of the open slot, if there is one. */
int count_slot = -1;
static uint64_t rounds;
static uint64_t accesses;
static uint64_t moved[2][KINDS][DISTANCES];
static struct executed executed_before[MAX_CPUS];
static struct spent spent_before[MAX_CPUS];
static struct table place_table;
static struct place **place_blocks;
static uint32_t place_blocks_room;

static struct place *place_at(uint32_t position)
{
	return &place_blocks[position / PLACES_OF_A_BLOCK][position % PLACES_OF_A_BLOCK];
}

/*
 * Programs with different code at the same address share an entry, as long as both instructions
 * lock their line or both don't: users' code is not told apart by address.
 */
struct place *count_place(uint64_t vaddr, bool locked)
{
	uint32_t before = place_table.used;
	uint32_t position = table_find(&place_table, vaddr << 1 | locked);
	uint32_t block = position / PLACES_OF_A_BLOCK;

	if (block >= place_blocks_room) {
		place_blocks_room = 2 * block + 16;
		place_blocks =
			must(realloc(place_blocks, place_blocks_room * sizeof(*place_blocks)));
	}
	if (position == before && position % PLACES_OF_A_BLOCK == 0)
		place_blocks[block] = must(calloc(PLACES_OF_A_BLOCK, sizeof(struct place)));
	if (position == before) {
		place_at(position)->vaddr = vaddr;
		place_at(position)->kernel = is_kernel(vaddr);
		place_at(position)->locked = locked;
	}
	return place_at(position);
}

void count_access(struct place *place, struct access access)
{
	accesses++;
	if (access.kind == KIND_HIT)
		return;
	moved[place->kernel][access.kind][access.distance]++;
	place->moved[access.kind][access.distance]++;
}

void count_translate(struct qemu_plugin_tb *tb, size_t insns)
{
	bool kernel = is_kernel(qemu_plugin_tb_vaddr(tb));
	qemu_plugin_u64 entry = {scores, kernel * sizeof(uint64_t)};

	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, PLUGIN_INLINE_ADD, entry, insns);
}

static struct executed executed_by(unsigned int cpu)
{
	return *(struct executed *)qemu_plugin_scoreboard_find(scores, cpu);
}

void count_begin(int number)
{
	count_slot = number;
	rounds = 0;
	accesses = 0;
	memset(moved, 0, sizeof(moved));
	for (uint32_t i = 0; i < place_table.used; i++)
		memset(place_at(i)->moved, 0, sizeof(place_at(i)->moved));
	for (unsigned int cpu = 0; cpu < machine->cpus; cpu++) {
		executed_before[cpu] = executed_by(cpu);
		if (machine->timed)
			spent_before[cpu] = clock_spent(cpu);
	}
}

void count_round(void)
{
	rounds++;
}

/* What comes before an item of a list. */
static const char *comma(bool first)
{
	return first ? "" : ",";
}

/* A list of the moves that were not among those `before`. */
static void write_moves(FILE *file, uint64_t (*moves)[DISTANCES], uint64_t (*before)[DISTANCES])
{
	bool first = true;

	fputc('[', file);
	for (int kind = 1; kind < KINDS; kind++)
		for (int d = 0; d < DISTANCES; d++) {
			uint64_t more = moves[kind][d] - (before ? before[kind][d] : 0);

			if (!more)
				continue;
			fprintf(file, "%s[%d,%d,%lu]", comma(first), kind, d, more);
			first = false;
		}
	fputc(']', file);
}

static void write_time(FILE *file, unsigned int cpu)
{
	struct spent spent = clock_spent(cpu);
	struct spent *before = &spent_before[cpu];
	uint64_t other[CAUSES];

	for (int cause = 0; cause < CAUSES; cause++)
		other[cause] = spent.other[cause] - before->other[cause];
	fprintf(file,
		"%s{\"instructions\":%lu,\"smt\":%lu,\"queue\":%lu,\"stores\":%lu,\"exit\":%lu",
		comma(cpu == 0), spent.instructions - before->instructions, other[CAUSE_SMT],
		other[CAUSE_QUEUE], other[CAUSE_STORES], other[CAUSE_EXIT]);
	fputs(",\"lines\":", file);
	write_moves(file, spent.lines, before->lines);
	fputs(",\"aside\":", file);
	write_moves(file, spent.aside, before->aside);
	fputc('}', file);
}

static void write_executed(FILE *file, unsigned int cpu)
{
	struct executed now = executed_by(cpu);

	fprintf(file, "%s[%lu,%lu]", comma(cpu == 0), now.insns[0] - executed_before[cpu].insns[0],
		now.insns[1] - executed_before[cpu].insns[1]);
}

/* A list of the moves by instruction: the address, and then as a move. */
static void write_code(FILE *file)
{
	bool first = true;

	for (uint32_t i = 0; i < place_table.used; i++)
		for (int kind = 1; kind < KINDS; kind++)
			for (int d = 0; d < DISTANCES; d++) {
				const struct place *place = place_at(i);

				if (!place->moved[kind][d])
					continue;
				fprintf(file, "%s[%lu,%d,%d,%lu]", comma(first), place->vaddr, kind,
					d, place->moved[kind][d]);
				first = false;
			}
}

static void write_slot(FILE *file)
{
	fprintf(file, "{\"number\":%d,\"rounds\":%lu,\"accesses\":%lu", count_slot, rounds,
		accesses);
	fputs(",\"instructions\":[", file);
	for (unsigned int cpu = 0; cpu < machine->cpus; cpu++)
		write_executed(file, cpu);
	fputs("],\"spent\":[", file);
	for (unsigned int cpu = 0; machine->timed && cpu < machine->cpus; cpu++)
		write_time(file, cpu);
	fputs("],\"moved\":[", file);
	write_moves(file, moved[0], NULL);
	fputc(',', file);
	write_moves(file, moved[1], NULL);
	fputs("],\"code\":[", file);
	write_code(file);
	fputs("]}\n", file);
}

/* Counting ends: everything that was counted goes to the file. */
void count_finish(void)
{
	FILE *file = fopen(out, "a");

	if (!file) {
		fprintf(stderr, "perch: the plugin cannot write to %s\n", out);
		exit(1);
	}
	write_slot(file);
	if (fclose(file)) {
		fprintf(stderr, "perch: the plugin cannot write to %s\n", out);
		exit(1);
	}
	count_slot = -1;
}

void count_start(const struct machine *m, const char *to)
{
	machine = m;
	out = must(strdup(to));
	scores = qemu_plugin_scoreboard_new(sizeof(struct executed));
}
