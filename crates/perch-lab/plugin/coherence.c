/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU plugin that counts the cache lines that move between a guest's CPUs, from one mark in the
 * guest's code to the next (code.h), and writes what it counted when counting ends.
 *
 * Arguments: out=FILE, memory=BYTES (the guest's), cpus=N, distance=DIGITS (Distance of each pair of
 * CPUs, row by row). Nothing is counted before the first mark, and the guest's code is only watched
 * from then on; its caches are empty at that moment.
 *
 * The file has a line for each thing that was counted; src/coherence/record.rs reads it:
 *   slot SLOT rounds N accesses N
 *   cpu CPU user INSNS kernel INSNS
 *   moved CPU KERNEL KIND DISTANCE COUNT
 *   code ADDRESS KIND DISTANCE COUNT
 *   line PHYSICAL VIRTUAL MOVES READER WRITER
 *   end SLOT
 */
#include "code.h"
#include "lines.h"
#include "qemu.h"
#include "table.h"

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

/* Instructions that a CPU executed, users' and the kernel's. */
struct executed {
	uint64_t insns[2];
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

static struct lines lines;
static struct qemu_plugin_scoreboard *scores;
static const char *out;
static bool watching;

/* The counts of the open slot, if there is one. */
static int slot = -1;
static uint64_t rounds;
static uint64_t accesses;
static uint64_t moved[LINES_MAX_CPUS][2][KINDS][DISTANCES];
static struct executed executed_before[LINES_MAX_CPUS];
static struct table place_table;
static struct place **place_blocks;
static uint32_t place_blocks_room;
static struct table line_table;
static struct moving *moving;
static uint64_t moving_room;

static struct place *place_at(uint32_t position)
{
	return &place_blocks[position / PLACES_OF_A_BLOCK][position % PLACES_OF_A_BLOCK];
}

/*
 * Programs with different code at the same address share an entry, as long as both instructions
 * lock their line or both don't: users' code is not told apart by address.
 */
static struct place *place_of(uint64_t vaddr, bool locked)
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

static void count(unsigned int cpu, struct place *place, uint64_t line, uint64_t vaddr,
		  struct access access)
{
	struct moving *m;

	moved[cpu][place->kernel][access.kind][access.distance]++;
	place->moved[access.kind][access.distance]++;
	if (access.kind == KIND_COLD)
		return;
	m = moving_of(line);
	m->moves++;
	m->vaddr = vaddr;
	if (access.kind == KIND_LOAD_DIRTY || access.kind == KIND_LOAD_CLEAN)
		m->reader = place->vaddr;
	else
		m->writer = place->vaddr;
}

static void memory_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	struct place *place = data;
	struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);
	struct access access;
	uint64_t line;

	if (!address || qemu_plugin_hwaddr_is_io(address))
		return;
	line = qemu_plugin_hwaddr_phys_addr(address) >> LINE_SHIFT;
	if (line >= lines.count)
		return;
	access = lines_touch(&lines, line, cpu, place->locked || qemu_plugin_mem_is_store(info));
	if (slot < 0)
		return;
	accesses++;
	if (access.kind != KIND_HIT)
		count(cpu, place, line, vaddr, access);
}

static struct executed executed_by(unsigned int cpu)
{
	return *(struct executed *)qemu_plugin_scoreboard_find(scores, cpu);
}

static void begin(int number)
{
	slot = number;
	rounds = 0;
	accesses = 0;
	memset(moved, 0, sizeof(moved));
	for (uint32_t i = 0; i < place_table.used; i++)
		memset(place_at(i)->moved, 0, sizeof(place_at(i)->moved));
	for (uint32_t i = 0; i < line_table.used; i++)
		moving[i].moves = 0;
	for (unsigned int cpu = 0; cpu < lines.cpus; cpu++)
		executed_before[cpu] = executed_by(cpu);
}

static void write_cpu(FILE *file, unsigned int cpu)
{
	struct executed now = executed_by(cpu);

	fprintf(file, "cpu %u user %lu kernel %lu\n", cpu,
		now.insns[0] - executed_before[cpu].insns[0],
		now.insns[1] - executed_before[cpu].insns[1]);
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
static void finish(void)
{
	FILE *file = fopen(out, "a");

	if (!file) {
		fprintf(stderr, "perch: the plugin cannot write to %s\n", out);
		exit(1);
	}
	fprintf(file, "slot %d rounds %lu accesses %lu\n", slot, rounds, accesses);
	for (unsigned int cpu = 0; cpu < lines.cpus; cpu++)
		write_cpu(file, cpu);
	for (uint32_t i = 0; i < place_table.used; i++)
		write_place(file, place_at(i));
	for (uint32_t i = 0; i < line_table.used; i++)
		if (moving[i].moves)
			fprintf(file, "line %lx %lx %lu %lx %lx\n", moving[i].line << LINE_SHIFT,
				moving[i].vaddr, moving[i].moves, moving[i].reader,
				moving[i].writer);
	fprintf(file, "end %d\n", slot);
	if (fclose(file)) {
		fprintf(stderr, "perch: the plugin cannot write to %s\n", out);
		exit(1);
	}
	slot = -1;
}

static void at_mark(unsigned int cpu, void *data)
{
	uint64_t mark = (uint64_t)(uintptr_t)data;

	if (!watching) {
		/* All code is translated again, now with the callbacks. */
		watching = true;
		tb_flush(qemu_get_cpu((int)cpu));
	}
	switch (mark >> 8) {
	case MARK_START:
		/* A mark inside of what is counted already belongs to that. */
		if (slot < 0)
			begin(mark & 255);
		break;
	case MARK_ROUND:
		rounds++;
		break;
	case MARK_STOP:
		if (slot == (int)(mark & 255))
			finish();
		break;
	}
}

static void watch_memory(struct qemu_plugin_insn *insn, const uint8_t *code, size_t size)
{
	struct place *place = place_of(qemu_plugin_insn_vaddr(insn), is_locked(code, size));

	qemu_plugin_register_vcpu_mem_cb(insn, memory_access, PLUGIN_NO_REGS, PLUGIN_MEM_RW, place);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);
	bool kernel = is_kernel(qemu_plugin_tb_vaddr(tb));

	(void)id;
	if (watching) {
		qemu_plugin_u64 entry = {scores, kernel * sizeof(uint64_t)};

		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, PLUGIN_INLINE_ADD, entry,
								  insns);
	}
	for (size_t i = 0; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t code[16];
		size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));
		struct mark_code m = kernel ? (struct mark_code){0} : mark_of(code, size);

		if (m.mark != MARK_NONE)
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, at_mark, PLUGIN_NO_REGS,
				(void *)(uintptr_t)((unsigned int)m.mark << 8 | m.slot));
		if (watching)
			watch_memory(insn, code, size);
	}
}

static void cpu_starts(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	number_cpu_truly(cpu);
}

/* The guest ends: a program may have begun to count and never said stop. */
static void guest_ends(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	if (slot >= 0)
		finish();
}

static const char *argument(int argc, char **argv, const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			return argv[i] + length + 1;
	fprintf(stderr, "perch: the plugin lacks its argument %s\n", name);
	return NULL;
}

static bool read_distances(const char *digits)
{
	size_t pairs = (size_t)lines.cpus * lines.cpus;

	if (strlen(digits) != pairs)
		return false;
	for (size_t i = 0; i < pairs; i++) {
		if (digits[i] < '0' || digits[i] >= '0' + DISTANCES)
			return false;
		lines.distance[i] = (uint8_t)(digits[i] - '0');
	}
	return true;
}

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_VERSION;

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				      char **argv)
{
	const char *memory = argument(argc, argv, "memory");
	const char *cpus = argument(argc, argv, "cpus");
	const char *distances = argument(argc, argv, "distance");

	out = argument(argc, argv, "out");
	if (!memory || !cpus || !distances || !out)
		return 1;
	out = must(strdup(out));
	lines.cpus = (unsigned int)strtoul(cpus, NULL, 10);
	lines.count = strtoull(memory, NULL, 10) >> LINE_SHIFT;
	if (!lines.cpus || lines.cpus > LINES_MAX_CPUS ||
	    (int)lines.cpus != info->system.smp_vcpus || !read_distances(distances)) {
		fprintf(stderr, "perch: the plugin's arguments are not the guest's shape\n");
		return 1;
	}
	lines.state = must(calloc(lines.count, sizeof(*lines.state)));
	scores = qemu_plugin_scoreboard_new(sizeof(struct executed));
	qemu_plugin_register_vcpu_init_cb(id, cpu_starts);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, guest_ends, NULL);
	return 0;
}
