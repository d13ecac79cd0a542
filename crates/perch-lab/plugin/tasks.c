/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of the guest's tasks between two marks (tasks.h). */
#include "tasks.h"

#include <string.h>

#include "code.h"
#include "count.h"
#include "table.h"

struct task {
	uint64_t id;
	uint64_t runs;
	uint64_t halts;
	uint64_t insns[2];
	/* Lines used in each run, added up: of data, of code, and of data that no other task had used
	 * since this one's last run. */
	uint64_t data;
	uint64_t code;
	uint64_t own;
	uint64_t moved[KINDS][DISTANCES];
	uint64_t ran[MAX_CPUS];
};

/* The task that a CPU runs. */
struct running {
	/* Its position, and the number of the run: every run of any CPU has another number. */
	uint32_t task;
	uint32_t run;
	struct executed before;
	/* The run in which this CPU used a line last, by line. The pages of lines that it never uses
	 * stay unmapped. */
	uint32_t *used;
};

static const struct machine *machine;
static struct executed (*executed)(unsigned int cpu);
static struct table task_table;
static struct task *tasks;
static uint64_t tasks_room;
static struct running running[MAX_CPUS];
static uint32_t last_run;
/* The position, plus 1, of the task that used a line last, by line. */
static uint32_t *last_user;

/* The position of a task, which is 0 for what runs before the first switch. */
static uint32_t task_of(uint64_t id)
{
	uint32_t position = table_find(&task_table, id);

	if (position >= tasks_room) {
		uint64_t room = tasks_room ? 2 * tasks_room : 256;

		tasks = must(realloc(tasks, room * sizeof(*tasks)));
		memset(tasks + tasks_room, 0, (room - tasks_room) * sizeof(*tasks));
		tasks_room = room;
	}
	tasks[position].id = id;
	return position;
}

/* Gives the task that a CPU runs the instructions since it was asked last. */
static void settle(unsigned int cpu)
{
	struct running *r = &running[cpu];
	struct executed now = executed(cpu);

	for (int kernel = 0; kernel < 2; kernel++)
		tasks[r->task].insns[kernel] += now.insns[kernel] - r->before.insns[kernel];
	r->before = now;
}

static void switches(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	struct running *r = &running[cpu];

	(void)info;
	(void)data;
	settle(cpu);
	r->task = task_of(vaddr);
	r->run = ++last_run;
	tasks[r->task].runs++;
	tasks[r->task].ran[cpu]++;
}

static void halts(unsigned int cpu, void *data)
{
	(void)data;
	tasks[running[cpu].task].halts++;
}

void tasks_watch(struct qemu_plugin_insn *insn, const uint8_t *code, size_t size)
{
	if (is_switch(code, size))
		qemu_plugin_register_vcpu_mem_cb(insn, switches, PLUGIN_NO_REGS, PLUGIN_MEM_R,
						 NULL);
	if (is_halt(code, size))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, halts, PLUGIN_NO_REGS, NULL);
}

void tasks_access(unsigned int cpu, uint64_t line, struct access access)
{
	struct running *r = &running[cpu];
	struct task *task = &tasks[r->task];

	if (access.kind != KIND_HIT)
		task->moved[access.kind][access.distance]++;
	if (r->used[line] == r->run)
		return;
	r->used[line] = r->run;
	task->data++;
	task->own += last_user[line] == r->task + 1;
	last_user[line] = r->task + 1;
}

void tasks_code(unsigned int cpu, uint32_t *stamp)
{
	struct running *r = &running[cpu];

	if (*stamp == r->run)
		return;
	*stamp = r->run;
	tasks[r->task].code++;
}

/* The tasks that run go on as new runs, which are not counted as such: they began before. */
void tasks_begin(void)
{
	for (unsigned int cpu = 0; cpu < machine->cpus; cpu++) {
		running[cpu].before = executed(cpu);
		running[cpu].run = ++last_run;
	}
	for (uint32_t i = 0; i < task_table.used; i++)
		tasks[i] = (struct task){.id = tasks[i].id};
	/* Fresh pages are cheaper than clearing a word for each line of the guest's memory. */
	free(last_user);
	last_user = must(calloc(machine->lines, sizeof(*last_user)));
}

static void write_task(FILE *file, const struct task *task)
{
	fprintf(file, "task %lx runs %lu halts %lu user %lu kernel %lu data %lu own %lu code %lu\n",
		task->id, task->runs, task->halts, task->insns[0], task->insns[1], task->data,
		task->own, task->code);
	for (unsigned int cpu = 0; cpu < machine->cpus; cpu++)
		if (task->ran[cpu])
			fprintf(file, "ran %u %lu\n", cpu, task->ran[cpu]);
	for (int kind = 1; kind < KINDS; kind++)
		for (int d = 0; d < DISTANCES; d++)
			if (task->moved[kind][d])
				fprintf(file, "carried %d %d %lu\n", kind, d, task->moved[kind][d]);
}

void tasks_write(FILE *file)
{
	for (unsigned int cpu = 0; cpu < machine->cpus; cpu++)
		settle(cpu);
	for (uint32_t i = 0; i < task_table.used; i++)
		if (tasks[i].insns[0] + tasks[i].insns[1])
			write_task(file, &tasks[i]);
}

void tasks_start(const struct machine *m, struct executed (*executed_by)(unsigned int cpu))
{
	machine = m;
	executed = executed_by;
	last_user = must(calloc(m->lines, sizeof(*last_user)));
	for (unsigned int cpu = 0; cpu < m->cpus; cpu++)
		running[cpu].used = must(calloc(m->lines, sizeof(*running[cpu].used)));
	task_of(0);
}
