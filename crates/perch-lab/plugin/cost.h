/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lines cost a CPU: their time, less what the core hides. */
#ifndef PERCH_PLUGIN_COST_H
#define PERCH_PLUGIN_COST_H

#include "lines.h"
#include "machine.h"

void cost_start(const struct machine *machine);

/* A line moved to the CPU, by a locked instruction or another one. */
void cost_moved(unsigned int cpu, struct line *line, struct access access, bool store, bool locked);

/* A locked instruction waits until the CPU's earlier stores are done. */
void cost_locked(unsigned int cpu);

#endif
