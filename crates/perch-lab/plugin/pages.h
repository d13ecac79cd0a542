/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The physical addresses of the pages that a CPU used last. To ask QEMU for them takes longer than
 * everything else that an access needs.
 *
 * A translation holds as long as x86-64 lets a CPU hold it: until the CPU executes an instruction that
 * flushes its TLB. A kernel that changes a mapping without such an instruction breaks on hardware, too.
 * Addresses of devices are never kept.
 */
#ifndef PERCH_PLUGIN_PAGES_H
#define PERCH_PLUGIN_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "machine.h"
#include "qemu.h"

#define PAGE_SHIFT 12
/* Pages that a CPU keeps; a power of two. */
#define PAGES_KEPT 512
#define NO_PAGE UINT64_MAX

struct page {
	uint64_t number;
	uint64_t flushes;
	/* The physical address of the page. */
	uint64_t at;
};

struct pages {
	/* Flushes so far, at least 1: an entry of no flush was never filled. */
	uint64_t flushes[MAX_CPUS];
	struct page page[MAX_CPUS][PAGES_KEPT];
};

static inline void pages_start(struct pages *pages)
{
	for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu++)
		pages->flushes[cpu] = 1;
}

/* The CPU executes an instruction that flushes its TLB. */
static inline void pages_flush(struct pages *pages, unsigned int cpu)
{
	pages->flushes[cpu]++;
}

static inline uint64_t pages_ask(struct page *page, uint64_t vaddr, qemu_plugin_meminfo_t info,
				 uint64_t flushes)
{
	struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);
	uint64_t physical;

	if (!address || qemu_plugin_hwaddr_is_io(address))
		return NO_PAGE;
	physical = qemu_plugin_hwaddr_phys_addr(address);
	*page = (struct page){vaddr >> PAGE_SHIFT, flushes, physical >> PAGE_SHIFT << PAGE_SHIFT};
	return physical;
}

/* The physical address of an access of `cpu` to memory; NO_PAGE for a device's. */
static inline uint64_t pages_physical(struct pages *pages, unsigned int cpu, uint64_t vaddr,
				      qemu_plugin_meminfo_t info)
{
	struct page *page = &pages->page[cpu][vaddr >> PAGE_SHIFT & (PAGES_KEPT - 1)];

	if (page->number == vaddr >> PAGE_SHIFT && page->flushes == pages->flushes[cpu])
		return page->at | (vaddr & ((1u << PAGE_SHIFT) - 1));
	return pages_ask(page, vaddr, info, pages->flushes[cpu]);
}

#endif
