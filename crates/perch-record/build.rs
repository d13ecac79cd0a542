// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles bpf/*.bpf.c to BPF by clang.

#[path = "../perch-scheduler/build/bpf.rs"]
mod bpf;

fn main() {
    bpf::compile_all(&[]);
}
