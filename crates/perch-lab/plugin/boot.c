/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's clock until its second CPU starts (boot.h). */
#include "boot.h"

#include "accel.h"
#include "code.h"
#include "jump.h"

/* A pause adds so many nanoseconds: a fifty-thousandth of the 100 ms that are counted. */
#define PAUSE 2000

static int64_t added;
static bool over;

int64_t boot_clock(void)
{
	jump_clock_is_read();
	return icount_get() + added;
}

void boot_cpu_starts(void)
{
	/* One is the virtual clock, one has the ticks behind the TSC. */
	void *const clocks[] = {(void *)boot_clock, (void *)boot_clock};
	static bool replaced;

	if (!replaced)
		accel_replace((void *)icount_get, clocks, 2);
	replaced = true;
}

static void pauses(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	if (!over)
		added += PAUSE;
}

void boot_translate(struct qemu_plugin_tb *tb, size_t insns)
{
	if (over)
		return;
	if (!is_kernel(qemu_plugin_tb_vaddr(tb))) {
		/* The boot loader's code is there, none of which comes after the kernel's first pause. A
		 * CPU that starts begins there as well, and so does the first program. */
		over = added > 0;
		return;
	}
	for (size_t i = 0; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t code[16];

		if (is_pause(code, qemu_plugin_insn_data(insn, code, sizeof(code))))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, pauses, PLUGIN_NO_REGS, NULL);
	}
}
