/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of QEMU's plugin interface (version 4: QEMU 9.2 and newer) that perch's plugins use, and
 * the functions of QEMU itself that they need beside it. Debian packages no header for plugins, so
 * these declarations are written from the interface's documentation; a plugin finds the functions
 * when QEMU loads it.
 */
#ifndef PERCH_PLUGIN_QEMU_H
#define PERCH_PLUGIN_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT __attribute__((visibility("default")))

/* The interface's version; QEMU refuses a plugin of a newer one than its own. */
#define PLUGIN_VERSION 4

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_plugin_scoreboard;

typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

typedef struct {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
} qemu_info_t;

/* A conditional callback: the entry is at least the bound. */
#define PLUGIN_COND_GE 7
/* A callback needs none of the guest's registers. */
#define PLUGIN_NO_REGS 0
/* An inline operation adds. */
#define PLUGIN_INLINE_ADD 0
/* A callback wants loads, or stores. */
#define PLUGIN_MEM_R 1
#define PLUGIN_MEM_W 2

typedef void (*plugin_vcpu_cb)(qemu_plugin_id_t id, unsigned int cpu);
typedef void (*plugin_vcpu_data_cb)(unsigned int cpu, void *data);
typedef void (*plugin_mem_cb)(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
			      void *data);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, plugin_vcpu_cb cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t id,
						      struct qemu_plugin_tb *tb));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    void (*cb)(qemu_plugin_id_t id, void *data), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *bytes, size_t room);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int op,
						       qemu_plugin_u64 entry, uint64_t value);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, plugin_vcpu_data_cb cb,
					  int flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb, plugin_vcpu_data_cb cb,
					       int flags, int cond, qemu_plugin_u64 entry,
					       uint64_t bound, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, plugin_vcpu_data_cb cb,
					    int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, plugin_mem_cb cb, int flags,
				      int rw, void *data);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int cpu);

/*
 * Not of the interface. Debian's QEMU exports its global symbols, because it has modules that are
 * loaded at run time; perch looks for these before it starts a guest, and says what is missing.
 */
void *qemu_get_cpu(int index);
void tb_flush(void *cpu);
void tcg_cpu_init_cflags(void *cpu, bool parallel);
extern __thread void *current_cpu;
void async_run_on_cpu(void *cpu, void (*function)(void *cpu, void *data), void *data);
void cpu_exit(void *cpu);
void *cpus_get_accel(void);
void rr_kick_vcpu_thread(void *cpu);
void qemu_notify_event(void);
void bql_lock_impl(const char *file, int line);
void bql_unlock(void);
void tcg_handle_interrupt(void *cpu, int mask);
void icount_handle_interrupt(void *cpu, int mask);
int64_t icount_get(void);
int64_t icount_get_raw(void);
int64_t icount_to_ns(int64_t icount);
int64_t qemu_clock_deadline_ns_all(int clock, int attributes);

/* The guest's clock, and timers of all kinds. */
#define CLOCK_VIRTUAL 1
#define CLOCK_ALL_TIMERS (~0)
/* An interrupt of the CPU's APIC, and a request to look whether its APIC has one. */
#define INTERRUPT_HARD 0x2
#define INTERRUPT_POLL 0x10

/*
 * QEMU 10.0 gives a callback the number of the CPU that translated the code, unless code is
 * translated for several threads: with thread=single every count by CPU would be wrong, and look
 * right. Each CPU is told so when it starts.
 */
static inline void number_cpu_truly(unsigned int cpu)
{
	tcg_cpu_init_cflags(qemu_get_cpu((int)cpu), true);
}

#endif
