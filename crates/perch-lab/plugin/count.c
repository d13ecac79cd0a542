/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of what happens between two marks of the guest, and the file that they are written to.
 *
 * The file has a line for each thing that was counted; src/coherence/record.rs reads it:
 *   slot SLOT rounds N accesses N
 *   cpu CPU user INSNS kernel INSNS
 *   moved CPU KERNEL KIND DISTANCE COUNT
 *   time CPU instructions PS smt PS queue PS stores PS exit PS
 *   waited CPU KIND DISTANCE PS
 *   aside CPU KIND DISTANCE COUNT
 *   code ADDRESS KIND DISTANCE COUNT
 *   end SLOT
 * `time`, `waited` and `aside` are there where time is modelled.
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
static uint64_t moved[MAX_CPUS][2][KINDS][DISTANCES];
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

void count_access(unsigned int cpu, struct place *place, struct access access)
{
	accesses++;
	if (access.kind == KIND_HIT)
		return;
	moved[cpu][place->kernel][access.kind][access.distance]++;
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

static void write_time(FILE *file, unsigned int cpu)
{
	struct spent spent = clock_spent(cpu);
	const struct spent *before = &spent_before[cpu];
	uint64_t other[CAUSES];

	for (int cause = 0; cause < CAUSES; cause++)
		other[cause] = spent.other[cause] - before->other[cause];
	fprintf(file, "time %u instructions %lu smt %lu queue %lu stores %lu exit %lu\n", cpu,
		spent.instructions - before->instructions, other[CAUSE_SMT], other[CAUSE_QUEUE],
		other[CAUSE_STORES], other[CAUSE_EXIT]);
	for (int kind = 1; kind < KINDS; kind++)
		for (int d = 0; d < DISTANCES; d++) {
			uint64_t waited = spent.lines[kind][d] - before->lines[kind][d];
			uint64_t aside = spent.aside[kind][d] - before->aside[kind][d];

			if (waited)
				fprintf(file, "waited %u %d %d %lu\n", cpu, kind, d, waited);
			if (aside)
				fprintf(file, "aside %u %d %d %lu\n", cpu, kind, d, aside);
		}
}

static void write_cpu(FILE *file, unsigned int cpu)
{
	struct executed now = executed_by(cpu);

	fprintf(file, "cpu %u user %lu kernel %lu\n", cpu,
		now.insns[0] - executed_before[cpu].insns[0],
		now.insns[1] - executed_before[cpu].insns[1]);
	if (machine->timed)
		write_time(file, cpu);
	for (int kernel = 0; kernel < 2; kernel++)
		for (int kind = 1; kind < KINDS; kind++)
			for (int d = 0; d < DISTANCES; d++)
				if (moved[cpu][kernel][kind][d])
					fprintf(file, "moved %u %d %d %d %lu\n", cpu, kernel, kind,
						d, moved[cpu][kernel][kind][d]);
}

static void write_place(FILE *file, const struct place *place)
{
	for (int kind = 1; kind < KINDS; kind++)
		for (int d = 0; d < DISTANCES; d++)
			if (place->moved[kind][d])
				fprintf(file, "code %lx %d %d %lu\n", place->vaddr, kind, d,
					place->moved[kind][d]);
}

/* Counting ends: everything that was counted goes to the file. */
void count_finish(void)
{
	FILE *file = fopen(out, "a");

	if (!file) {
		fprintf(stderr, "perch: the plugin cannot write to %s\n", out);
		exit(1);
	}
	fprintf(file, "slot %d rounds %lu accesses %lu\n", count_slot, rounds, accesses);
	for (unsigned int cpu = 0; cpu < machine->cpus; cpu++)
		write_cpu(file, cpu);
	for (uint32_t i = 0; i < place_table.used; i++)
		write_place(file, place_at(i));
	fprintf(file, "end %d\n", count_slot);
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
