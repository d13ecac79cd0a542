/* SPDX-License-Identifier: GPL-2.0-only */
/* The sizes, offsets and numbers of bpf/interface.h, for the test of its mirror. */
#include <stddef.h>

#include "../../bpf/interface.h"

struct perch_layout_line {
	const char *name;
	perch_u64 offset, size;
};

#define SIZE(type) {#type, 0, sizeof(struct type)}
#define FIELD(type, field) \
	{#type "." #field, offsetof(struct type, field), sizeof(((struct type *)0)->field)}
#define VALUE(name) {#name, 0, (perch_u64)(name)}

static const struct perch_layout_line lines[] = {
	SIZE(perch_cpu),
	FIELD(perch_cpu, clock),
	FIELD(perch_cpu, curr_vtime),
	FIELD(perch_cpu, busy_ns),
	FIELD(perch_cpu, pull_from),
	FIELD(perch_cpu, move_to),
	FIELD(perch_cpu, capacity),
	FIELD(perch_cpu, node),
	FIELD(perch_cpu, events),
	FIELD(perch_cpu, reasons),
	SIZE(perch_llc),
	FIELD(perch_llc, set),
	FIELD(perch_llc, nr_idle_scan),
	SIZE(perch_config),
	FIELD(perch_config, policy),
	FIELD(perch_config, topology),
	FIELD(perch_config, cpus),
	FIELD(perch_config, llcs),
	FIELD(perch_config, waiting),
	FIELD(perch_config, misfits),
	FIELD(perch_config, epochs),
	FIELD(perch_config, llc_loads),
	FIELD(perch_config, slice_ns),
	FIELD(perch_config, slice_min_ns),
	FIELD(perch_config, lag_ns),
	FIELD(perch_config, preempt_ns),
	FIELD(perch_config, balance_ns),
	FIELD(perch_config, steal_remote_ns),
	FIELD(perch_config, memories),
	FIELD(perch_config, memory_mask),
	FIELD(perch_config, nr_llcs),
	FIELD(perch_config, nr_possible),
	FIELD(perch_config, detail),
	FIELD(perch_config, capacities),
	SIZE(perch_memory),
	FIELD(perch_memory, flip_decay_at_ns),
	FIELD(perch_memory, pid),
	FIELD(perch_memory, last_wakee),
	FIELD(perch_memory, wakee_flips),
	FIELD(perch_memory, recent_cpu),
	FIELD(perch_memory, util_at_ns),
	FIELD(perch_memory, util),
	FIELD(perch_memory, util_est),
	SIZE(perch_exit),
	FIELD(perch_exit, code),
	FIELD(perch_exit, kind),
	FIELD(perch_exit, reason),
	FIELD(perch_exit, message),
	VALUE(PERCH_ARENA_BASE),
	VALUE(PERCH_NONE),
	VALUE(PERCH_MAX_EVENTS),
	VALUE(PERCH_MAX_REASONS),
	VALUE(PERCH_NR_REASONS),
	VALUE(PERCH_EV_EXAMINED),
	VALUE(PERCH_EV_DIRECT),
	VALUE(PERCH_EV_CLAIM_LOST),
	VALUE(PERCH_EV_QUEUED),
	VALUE(PERCH_EV_PINNED),
	VALUE(PERCH_EV_PREEMPTED),
	VALUE(PERCH_EV_KICKED),
	VALUE(PERCH_EV_REVIVED),
	VALUE(PERCH_EV_STOLEN_CLUSTER),
	VALUE(PERCH_EV_STOLEN_LLC),
	VALUE(PERCH_EV_STOLEN_NODE),
	VALUE(PERCH_EV_STOLEN_REMOTE),
	VALUE(PERCH_EV_PULLED),
	VALUE(PERCH_EV_NEAR_IDLE),
	VALUE(PERCH_EV_NEAR_TAKEN),
	VALUE(PERCH_EV_MOVED_UP),
	VALUE(PERCH_EV_CALLED_UP),
	VALUE(PERCH_EV_LEFT_LARGER),
	VALUE(PERCH_NR_EVENTS),
};

const struct perch_layout_line *perch_interface_layout(perch_u64 *count)
{
	*count = sizeof(lines) / sizeof(lines[0]);
	return lines;
}
