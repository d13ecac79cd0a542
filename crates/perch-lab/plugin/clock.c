/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Time that the guest's clocks show. For `-accel tcg,thread=single -icount shift=0,sleep=off`.
 *
 * The plugin interface's own control of time does nothing under TCG in QEMU 10.0, so that three
 * functions of the accelerator are replaced: the virtual clock, the ticks behind the TSC, and the
 * delivery of interrupts. Debian's QEMU exports what is needed for it; they are found in the
 * accelerator's table by the functions that icount, and boot.c, put there.
 */
#include "clock.h"

#include <stddef.h>

#include "accel.h"
#include "boot.h"
#include "cost.h"
#include "jump.h"

struct cpu {
	void *state;
	bool running;
	bool away; /* it was told to end its turn */
	bool gone; /* and has ended it */
	bool has_run;
	bool has_woken; /* another CPU, since it runs */
	uint64_t halted_at;
	/* An interrupt of another CPU on its way. */
	bool is_called;
	uint64_t called_at;
	/* Charges of all causes, and where this CPU's SMT slowdown has been reckoned up to. */
	uint64_t charged;
	uint64_t settled;
	uint64_t settled_charged;
};

struct clocks clocks;
static const struct machine *machine;
static struct cpu cpus[MAX_CPUS];
static bool runs;
static uint64_t now;   /* no running CPU is behind this */
static int64_t jumped; /* icount's jumps that `now` has taken in, ns */
static void (*deliver)(void *cpu, int mask);

bool clock_runs(void)
{
	return runs;
}

void clock_add(unsigned int cpu, uint64_t ps)
{
	clocks.entry[cpu]->ahead += ps;
	cpus[cpu].charged += ps;
}

void clock_charge(unsigned int cpu, enum cause cause, uint64_t ps)
{
	clock_add(cpu, ps);
	clocks.spent[cpu].other[cause] += ps;
}

static unsigned int busy_siblings(unsigned int cpu)
{
	unsigned int busy = 0;

	for (uint64_t s = machine->siblings[cpu]; s; s &= s - 1)
		busy += cpus[__builtin_ctzll(s)].running;
	return busy;
}

/* Reckons up the instructions since the last time: they took longer while siblings ran. */
static void settle(unsigned int cpu)
{
	struct cpu *c = &cpus[cpu];
	uint64_t local = clock_local(cpu);
	uint64_t insns = local - c->settled - (c->charged - c->settled_charged);
	unsigned int busy = busy_siblings(cpu);

	clocks.spent[cpu].instructions += insns;
	if (busy) {
		uint64_t speed = machine->costs.smt_1024;

		/* A third and a fourth thread share the throughput that two would have. */
		if (busy > 1)
			speed = speed * 2 / (busy + 1);
		if (speed && speed < 1024)
			clock_charge(cpu, CAUSE_SMT, insns * (1024 - speed) / speed);
	}
	c->settled = clock_local(cpu);
	c->settled_charged = c->charged;
}

struct spent clock_spent(unsigned int cpu)
{
	if (runs && cpus[cpu].running)
		settle(cpu);
	return clocks.spent[cpu];
}

uint64_t clock_executed(unsigned int cpu)
{
	return clock_local(cpu) - cpus[cpu].charged;
}

bool clock_has_woken(unsigned int cpu)
{
	return cpus[cpu].has_woken;
}

static int index_of(const void *state)
{
	for (unsigned int cpu = 0; cpu < machine->cpus; cpu++)
		if (cpus[cpu].state == state)
			return (int)cpu;
	return -1;
}

/* The CPU whose code runs now; -1 in the main thread and between the turns of CPUs. */
static int current(void)
{
	int cpu = current_cpu ? index_of(current_cpu) : -1;

	return cpu >= 0 && cpus[cpu].running && !cpus[cpu].gone ? cpu : -1;
}

/*
 * While every CPU is halted, icount jumps to the next timer. Only the main thread may look, as it is
 * the one that jumps.
 */
static void take_jump(void)
{
	int64_t jumps = icount_get() - icount_to_ns(icount_get_raw());

	/* Without a jump CPUs may run, whose thread writes to `now`. */
	if (jumps == jumped)
		return;
	now += (uint64_t)(jumps - jumped) * 1000;
	jumped = jumps;
}

/* The virtual clock, by which devices and timers go. After a CPU's turn QEMU asks for it first. */
static int64_t virtual_clock(void)
{
	int cpu = current();
	uint64_t local;

	jump_clock_is_read();
	if (cpu >= 0 && cpus[cpu].away) {
		cpus[cpu].gone = true;
		cpu = -1;
	}

	if (!current_cpu)
		take_jump();
	if (cpu < 0)
		return (int64_t)(now / 1000);
	local = clock_local((unsigned int)cpu);
	return (int64_t)((local > now ? local : now) / 1000);
}

/* The ticks of the TSC, which code reads: those of its CPU, even at the end of the CPU's turn. */
static int64_t elapsed_ticks(void)
{
	int cpu = current_cpu ? index_of(current_cpu) : -1;

	if (cpu < 0 || !cpus[cpu].running)
		return virtual_clock();
	settle((unsigned int)cpu);
	return (int64_t)(clock_local((unsigned int)cpu) / 1000);
}

/* The time at which a halted CPU that was called runs on. */
static uint64_t resumes_at(const struct cpu *c)
{
	return c->called_at > c->halted_at ? c->called_at : c->halted_at;
}

/*
 * The slowest running CPU's time becomes everybody's. A CPU that was called counts, although QEMU
 * runs it later: who called it must not run on beyond the window meanwhile, or the called CPU would
 * find lines as they are only written in its future.
 */
static void advance(void)
{
	uint64_t slowest = UINT64_MAX;

	for (unsigned int cpu = 0; cpu < machine->cpus; cpu++) {
		const struct cpu *c = &cpus[cpu];
		uint64_t at = c->running   ? clock_local(cpu) :
			      c->is_called ? resumes_at(c) :
					     UINT64_MAX;

		if (at < slowest)
			slowest = at;
	}
	if (slowest != UINT64_MAX && slowest > now)
		now = slowest;
}

/* The CPU is looked at next when its clock is at `end`. */
static void look_at(unsigned int cpu, uint64_t end)
{
	uint64_t local = clock_local(cpu);

	clocks.end[cpu] = end;
	clocks.entry[cpu]->ahead = CLOCK_LIMIT + local - end;
	if (cpus[cpu].away)
		clocks.entry[cpu]->ahead += CLOCK_AWAY;
}

/* The time that it takes to leave the idle state that a governor which predicts well had chosen. */
static uint64_t idle_exit(uint64_t idle)
{
	const struct costs *c = &machine->costs;
	uint64_t exit = c->idle[0].exit;

	for (unsigned int i = 0; i < c->idle_states; i++)
		if (c->idle[i].residency <= idle)
			exit = c->idle[i].exit;
	return exit;
}

/* A halted CPU runs on. */
static void resume(unsigned int cpu)
{
	struct cpu *c = &cpus[cpu];
	uint64_t at = c->is_called ? resumes_at(c) : now > c->halted_at ? now : c->halted_at;
	uint64_t exit;

	exit = c->has_run ? idle_exit(at - c->halted_at) : 0;
	c->is_called = c->has_woken = false;
	c->running = c->has_run = true;
	c->settled = at + exit;
	c->settled_charged = c->charged;
	clocks.spent[cpu].other[CAUSE_EXIT] += exit;
	clocks.end[cpu] = at + exit;
	clocks.entry[cpu]->ahead = CLOCK_LIMIT;
}

/* The CPU may have taken the interrupt before its time, together with one of its own timer: QEMU asks
 * the APIC, as an interrupt that is not there any more would be delivered with a vector of -1. */
static void interrupt_arrives(unsigned int cpu)
{
	struct cpu *c = &cpus[cpu];

	c->is_called = false;
	bql_lock_impl(__FILE__, __LINE__);
	tcg_handle_interrupt(c->state, INTERRUPT_POLL);
	bql_unlock();
}

/* The CPU's clock is at its end, or the CPU has a turn again. */
static void at_end(unsigned int cpu, void *data)
{
	struct cpu *c = &cpus[cpu];
	uint64_t local, end, due;
	int64_t left;

	(void)data;
	if (!c->running)
		resume(cpu);
	clocks.entry[cpu]->ahead &= CLOCK_AWAY - 1;
	c->away = c->gone = false;
	settle(cpu);
	local = clock_local(cpu);
	if (c->is_called && local >= c->called_at)
		interrupt_arrives(cpu);
	advance();
	end = now + machine->costs.window;
	left = qemu_clock_deadline_ns_all(CLOCK_VIRTUAL, CLOCK_ALL_TIMERS);
	/* The deadline is counted from what the virtual clock shows to this CPU. */
	due = left < 0 ? UINT64_MAX :
			 (local > now ? local : now) / 1000 * 1000 + (uint64_t)left * 1000;
	if (due < end)
		end = due;
	if (c->is_called && c->called_at < end)
		end = c->called_at;
	look_at(cpu, end);
	if (local >= end) {
		c->away = true;
		clocks.entry[cpu]->ahead |= CLOCK_AWAY;
		cpu_exit(c->state);
	}
}

static void halts(unsigned int cpu, void *data)
{
	struct cpu *c = &cpus[cpu];

	(void)data;
	if (!runs || !c->running)
		return;
	settle(cpu);
	c->halted_at = clock_local(cpu);
	c->away = c->gone = false;
	if (c->is_called) {
		/* The interrupt would find the CPU halted. It goes to QEMU now, and ends the halt at
		 * its time. */
		uint64_t called_at = c->called_at;

		interrupt_arrives(cpu);
		c->is_called = true;
		c->called_at = called_at;
	}
	c->running = false;
	clocks.entry[cpu]->ahead |= CLOCK_AWAY;
	advance();
}

/* QEMU interrupts a CPU. If another CPU's code does, the interrupt needs its time. */
static void handle_interrupt(void *state, int mask)
{
	int from = current();
	int to = index_of(state);
	uint64_t at;
	struct cpu *c;

	if (from < 0 || to < 0 || from == to || !(mask & INTERRUPT_HARD)) {
		deliver(state, mask);
		return;
	}
	c = &cpus[to];
	at = clock_local((unsigned int)from) +
	     machine->costs.ipi[distance_of(machine, (unsigned int)from, (unsigned int)to)];
	if (!c->running) {
		if (!c->is_called || at < c->called_at)
			c->called_at = at;
		c->is_called = true;
		cpus[from].has_woken = true;
		if (clocks.end[from] > c->called_at + machine->costs.window)
			look_at((unsigned int)from, c->called_at + machine->costs.window);
		deliver(state, mask);
		return;
	}
	if (clock_local((unsigned int)to) >= at) {
		deliver(state, mask);
		return;
	}
	if (!c->is_called || at < c->called_at)
		c->called_at = at;
	c->is_called = true;
	if (c->called_at < clocks.end[to])
		look_at((unsigned int)to, c->called_at);
}

void clock_translate(struct qemu_plugin_tb *tb, size_t insns, uint64_t ps)
{
	qemu_plugin_u64 ahead = {clocks.scores, offsetof(struct clock_entry, ahead)};

	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, PLUGIN_INLINE_ADD, ahead,
							  insns * machine->costs.instruction + ps);
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, at_end, PLUGIN_NO_REGS, PLUGIN_COND_GE, ahead,
						  CLOCK_LIMIT, NULL);
}

void clock_halts_at(struct qemu_plugin_insn *insn)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, halts, PLUGIN_NO_REGS, NULL);
}

void clock_start(const struct machine *m)
{
	machine = m;
	cost_start(m);
	clocks.scores = qemu_plugin_scoreboard_new(sizeof(struct clock_entry));
}

void clock_cpu_starts(unsigned int cpu)
{
	cpus[cpu].state = qemu_get_cpu((int)cpu);
	for (unsigned int c = 0; c <= cpu; c++) /* the scoreboard may have moved */
		clocks.entry[c] = qemu_plugin_scoreboard_find(clocks.scores, c);
}

/* Outside of any CPU's code, where icount can be read. */
static void take_over(void *cpu, void *data)
{
	void *const of_clock[] = {(void *)virtual_clock, (void *)elapsed_ticks};
	void *const of_interrupts[] = {(void *)handle_interrupt};

	(void)cpu;
	(void)data;
	now = (uint64_t)boot_clock() * 1000;
	jumped = icount_get() - icount_to_ns(icount_get_raw());
	for (unsigned int c = 0; c < machine->cpus; c++) {
		cpus[c].halted_at = now;
		clocks.end[c] = now;
		clocks.entry[c]->ahead = CLOCK_LIMIT | CLOCK_AWAY;
	}
	deliver = icount_handle_interrupt;
	accel_replace((void *)boot_clock, of_clock, 2);
	accel_replace((void *)icount_handle_interrupt, of_interrupts, 1);
	runs = true;
}

void clock_begin(unsigned int cpu)
{
	async_run_on_cpu(cpus[cpu].state, take_over, NULL);
}
