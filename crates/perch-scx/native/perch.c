/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perch's own scheduler, natively. */
#include "scheduler.bpf.c"

#define SCX_OPS(each) each(perch_ops) each(perch_band_ops)

#include "exports.h"
