/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of what happens between two marks of the guest, and the file that they are written to.
 *
 * The file has a line for each thing that was counted; src/coherence/record.rs reads it:
 *   slot SLOT rounds N accesses N
 *   cpu CPU user INSNS kernel INSNS
 *   touched CPU data LINES code LINES
 *   moved CPU KERNEL KIND DISTANCE COUNT
 *   time CPU instructions PS smt PS queue PS stores PS exit PS
 *   waited CPU KIND DISTANCE PS
 *   aside CPU KIND DISTANCE COUNT
 *   code ADDRESS KIND DISTANCE COUNT
 *   line PHYSICAL VIRTUAL MOVES READER WRITER
 *   task ID runs N halts N user INSNS kernel INSNS data LINES own LINES code LINES
 *   ran CPU RUNS
 *   carried KIND DISTANCE COUNT
 *   end SLOT
 * `time`, `waited` and `aside` are there where time is modelled, `code LINES` and tasks only where it
 * is not. `ran` and `carried` are the last task's: its runs by CPU, and the lines that it moved.
 */
#include "count.h"

#include <stddef.h>

#include "clock.h"
#include "code.h"
#include "table.h"
#include "tasks.h"

/* A line of code, the CPUs that ran it, and the run of a task in which each of them last did. */
struct code_line {
	uint64_t cpus;
	uint32_t runs[MAX_CPUS];
};

/* A line that moved. */
struct moving {
	uint64_t line;
	uint64_t vaddr;
	uint64_t moves;
	uint64_t reader;
	uint64_t writer;
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
static struct table line_table;
static struct moving *moving;
static uint64_t moving_room;

/* The CPUs that used a line of data, by line, as bits; and the lines that have any. */
static uint64_t *users;
static uint32_t *used;
static uint64_t used_count;
static uint64_t used_room;
/* The same of code, by virtual address, since user's code is not told apart. */
static struct table code_table;
static struct code_line **code_lines;
static uint64_t code_lines_room;

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

static struct moving *moving_of(uint64_t line)
{
	uint32_t position = table_find(&line_table, line);

	if (position >= moving_room) {
		uint64_t room = moving_room ? 2 * moving_room : 4096;

		moving = must(realloc(moving, room * sizeof(*moving)));
		memset(moving + moving_room, 0, (room - moving_room) * sizeof(*moving));
		moving_room = room;
	}
	moving[position].line = line;
	return &moving[position];
}

static void move(unsigned int cpu, struct place *place, uint64_t line, uint64_t vaddr,
		 struct access access)
{
	struct moving *m;

	moved[cpu][place->kernel][access.kind][access.distance]++;
	place->moved[access.kind][access.distance]++;
	if (access.kind == KIND_COLD || access.kind == KIND_LLC)
		return;
	m = moving_of(line);
	m->moves++;
	m->vaddr = vaddr;
	if (access.kind == KIND_LOAD_DIRTY || access.kind == KIND_LOAD_CLEAN)
		m->reader = place->vaddr;
	else
		m->writer = place->vaddr;
}

/* Notes the line among those that the slot has used. */
static void use(uint64_t line, uint64_t bit)
{
	if (!users[line]) {
		if (used_count == used_room) {
			used_room = used_room ? 2 * used_room : 4096;
			used = must(realloc(used, used_room * sizeof(*used)));
		}
		used[used_count++] = (uint32_t)line;
	}
	users[line] |= bit;
}

void count_access(unsigned int cpu, struct place *place, uint64_t line, uint64_t vaddr,
		  struct access access)
{
	accesses++;
	if (!(users[line] >> cpu & 1))
		use(line, 1ull << cpu);
	if (access.kind != KIND_HIT)
		move(cpu, place, line, vaddr, access);
	if (!machine->timed)
		tasks_access(cpu, line, access);
}

static struct code_line *code_line_of(uint64_t vaddr)
{
	uint32_t before = code_table.used;
	uint32_t position = table_find(&code_table, vaddr >> LINE_SHIFT);

	if (position >= code_lines_room) {
		code_lines_room = code_lines_room ? 2 * code_lines_room : 4096;
		code_lines = must(realloc(code_lines, code_lines_room * sizeof(*code_lines)));
	}
	if (position == before)
		code_lines[position] = must(calloc(1, sizeof(struct code_line)));
	return code_lines[position];
}

static void code_runs(unsigned int cpu, void *data)
{
	struct code_line *line = data;

	if (count_slot < 0)
		return;
	line->cpus |= 1ull << cpu;
	tasks_code(cpu, &line->runs[cpu]);
}

/*
 * While time is modelled, neither the lines of code nor the tasks are looked at: that costs a call
 * for each of the lines.
 */
static void watch_code(struct qemu_plugin_tb *tb, size_t insns)
{
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < insns; i++) {
		uint64_t vaddr = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));

		if (vaddr >> LINE_SHIFT == last)
			continue;
		last = vaddr >> LINE_SHIFT;
		qemu_plugin_register_vcpu_tb_exec_cb(tb, code_runs, PLUGIN_NO_REGS,
						     code_line_of(vaddr));
	}
}

void count_translate(struct qemu_plugin_tb *tb, size_t insns)
{
	bool kernel = is_kernel(qemu_plugin_tb_vaddr(tb));
	qemu_plugin_u64 entry = {scores, kernel * sizeof(uint64_t)};

	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, PLUGIN_INLINE_ADD, entry, insns);
	if (!machine->timed)
		watch_code(tb, insns);
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
	for (uint32_t i = 0; i < line_table.used; i++)
		moving[i].moves = 0;
	for (uint64_t i = 0; i < used_count; i++)
		users[used[i]] = 0;
	used_count = 0;
	for (uint32_t i = 0; i < code_table.used; i++)
		code_lines[i]->cpus = 0;
	for (unsigned int cpu = 0; cpu < machine->cpus; cpu++) {
		executed_before[cpu] = executed_by(cpu);
		if (machine->timed)
			spent_before[cpu] = clock_spent(cpu);
	}
	if (!machine->timed)
		tasks_begin();
}

void count_round(void)
{
	rounds++;
}

static void write_touched(FILE *file, unsigned int cpu)
{
	uint64_t data = 0, code = 0;

	for (uint64_t i = 0; i < used_count; i++)
		data += users[used[i]] >> cpu & 1;
	for (uint32_t i = 0; i < code_table.used; i++)
		code += code_lines[i]->cpus >> cpu & 1;
	fprintf(file, "touched %u data %lu code %lu\n", cpu, data, code);
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
	write_touched(file, cpu);
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
	for (uint32_t i = 0; i < line_table.used; i++)
		if (moving[i].moves)
			fprintf(file, "line %lx %lx %lu %lx %lx\n", moving[i].line << LINE_SHIFT,
				moving[i].vaddr, moving[i].moves, moving[i].reader,
				moving[i].writer);
	if (!machine->timed)
		tasks_write(file);
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
	users = must(calloc(m->lines, sizeof(*users)));
	scores = qemu_plugin_scoreboard_new(sizeof(struct executed));
	if (!m->timed)
		tasks_start(m, executed_by);
}
