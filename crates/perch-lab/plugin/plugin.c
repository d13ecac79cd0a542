/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QEMU plugin of a deterministic guest. It sees to it that the host's speed does not decide when
 * the guest's clock jumps (jump.c). With arguments, which src/coherence/arguments.rs writes, it
 * follows the guest's cache lines: it counts those that move between CPUs, from one mark in the
 * guest's code to the next (count.c), and, where time is modelled, charges the clocks of CPUs with
 * what they cost (clock.c). No line is followed before the first mark; the caches are empty at that
 * moment.
 */
#include "boot.h"
#include "clock.h"
#include "code.h"
#include "cost.h"
#include "count.h"
#include "jump.h"
#include "lines.h"
#include "machine.h"
#include "pages.h"
#include "qemu.h"

static struct machine machine; /* without CPUs: no lines are followed */
static struct lines lines;
static struct pages pages;
static bool counting;
static bool watching;
static bool left;

static inline void memory_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
				 struct place *place, bool store)
{
	struct access access = {KIND_HIT, 0};
	uint64_t number = pages_physical(&pages, cpu, vaddr, info) >> LINE_SHIFT;
	struct line *line;

	/* The flash of the firmware is no memory either. */
	if (number >= machine.lines)
		return;
	line = &lines.line[number];
	if (!line_is_here(line, cpu, store))
		access = lines_move(&lines, number, cpu, store);
	if (clock_runs()) {
		if (access.kind != KIND_HIT)
			cost_moved(cpu, line, access, store, place->locked);
		else if (place->locked)
			cost_locked(cpu);
		if (store)
			clock_written(cpu, line);
	}
	if (count_slot >= 0)
		count_access(place, access);
}

static void store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *place)
{
	memory_access(cpu, info, vaddr, place, true);
}

static void load(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *place)
{
	memory_access(cpu, info, vaddr, place, false);
}

/* A locked instruction owns the line before it loads. */
static void watch_memory(struct qemu_plugin_insn *insn, bool locked)
{
	struct place *place = count_place(qemu_plugin_insn_vaddr(insn), locked);

	qemu_plugin_register_vcpu_mem_cb(insn, locked ? store : load, PLUGIN_NO_REGS, PLUGIN_MEM_R,
					 place);
	qemu_plugin_register_vcpu_mem_cb(insn, store, PLUGIN_NO_REGS, PLUGIN_MEM_W, place);
}

static void flush(unsigned int cpu, void *data)
{
	(void)data;
	pages_flush(&pages, cpu);
}

static void watch(unsigned int cpu)
{
	if (watching)
		return;
	/* All code is translated again, now with the callbacks. */
	watching = true;
	tb_flush(qemu_get_cpu((int)cpu));
	if (machine.timed)
		clock_begin(cpu);
}

static void leave(unsigned int cpu)
{
	if (counting && count_slot >= 0)
		count_finish();
	left = true;
	tb_flush(qemu_get_cpu((int)cpu));
}

static void at_mark(unsigned int cpu, void *data)
{
	uint64_t mark = (uint64_t)(uintptr_t)data;

	if (left)
		return;
	if (mark >> 8 == MARK_LEAVE) {
		leave(cpu);
		return;
	}
	watch(cpu);
	if (!counting)
		return;
	switch (mark >> 8) {
	case MARK_START:
		/* A mark inside of what is counted already belongs to that. */
		if (count_slot < 0)
			count_begin(mark & 255);
		break;
	case MARK_ROUND:
		count_round();
		break;
	case MARK_STOP:
		if (count_slot == (int)(mark & 255))
			count_finish();
		break;
	}
}

static void watch_block(struct qemu_plugin_tb *tb, size_t insns)
{
	uint64_t beyond = 0;

	for (size_t i = 0; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t code[16];
		size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));
		bool locked = is_locked(code, size);

		if (!left) {
			watch_memory(insn, locked);
			if (is_flush(code, size))
				qemu_plugin_register_vcpu_insn_exec_cb(insn, flush, PLUGIN_NO_REGS,
								       NULL);
		}
		if (!machine.timed)
			continue;
		if (locked)
			beyond += machine.costs.atomic;
		if (is_pause(code, size))
			beyond += machine.costs.pause;
		if (is_halt(code, size))
			clock_halts_at(insn);
	}
	if (machine.timed)
		clock_translate(tb, insns, beyond);
	if (counting && !left)
		count_translate(tb, insns);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);

	(void)id;
	boot_translate(tb, insns);
	if (watching)
		watch_block(tb, insns);
	if (is_kernel(qemu_plugin_tb_vaddr(tb)))
		return;
	for (size_t i = 0; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t code[16];
		size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));
		struct mark_code m = mark_of(code, size);

		if (m.mark != MARK_NONE)
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, at_mark, PLUGIN_NO_REGS,
				(void *)(uintptr_t)((unsigned int)m.mark << 8 | m.slot));
	}
}

static void cpu_starts(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	boot_cpu_starts();
	jump_cpu_starts(cpu);
	if (!machine.cpus)
		return;
	number_cpu_truly(cpu);
	if (machine.timed)
		clock_cpu_starts(cpu);
}

/* The guest ends: a program may have begun to count and never said stop. */
static void guest_ends(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	if (count_slot >= 0)
		count_finish();
}

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_VERSION;

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
				      char **argv)
{
	const char *out = argument(argc, argv, "out");

	qemu_plugin_register_vcpu_init_cb(id, cpu_starts);
	if (!argc)
		return 0;
	if (!machine_read(&machine, argc, argv))
		return 1;
	if ((int)machine.cpus != info->system.smp_vcpus) {
		fprintf(stderr, "perch: the plugin's arguments are not the guest's shape\n");
		return 1;
	}
	pages_start(&pages);
	lines_start(&lines, &machine);
	counting = out != NULL;
	if (counting)
		count_start(&machine, out);
	if (machine.timed)
		clock_start(&machine);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, guest_ends, NULL);
	return 0;
}
