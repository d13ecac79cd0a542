/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands in for libbpf's header of this name. A BPF program gets its arguments
 * as an array, from which libbpf takes them; here it is a function of them.
 */
#ifndef PERCH_SCX_BPF_TRACING_H
#define PERCH_SCX_BPF_TRACING_H

#define BPF_PROG(name, ...) name(__VA_ARGS__)

#endif
