// SPDX-License-Identifier: GPL-2.0-or-later
//! How BPF C is compiled natively, by build.rs and by `compile.rs`.

/// What the compiler is told of every source.
pub const COMPILE: [&str; 6] = [
    "-O2",
    "-g0",
    "-std=gnu11",
    "-fPIC",
    // There is no libc: memcpy() of kfuncs.c must not become a call of itself.
    "-ffreestanding",
    // BPF programs read a type's bytes as another's, as the kernel does.
    "-fno-strict-aliasing",
];

/// What the linker is told. The program's variables are symbols that the loader looks up, and yet
/// its own, whatever else the process has loaded. The object needs no other, so what is missing is an
/// error; only a weak function may be missing, which the program asks for before it calls it.
pub const LINK: [&str; 7] = [
    "-shared",
    "-nostdlib",
    "-Wl,-Bsymbolic",
    "-Wl,-z,defs",
    "-Wl,-z,now",
    "-Wl,-z,noexecstack",
    "-Wl,--build-id=none",
];

/// The name of an architecture in `__TARGET_ARCH_`, and the flags that are its own; none for one
/// that perch's program has not been written for.
pub fn arch(name: &str) -> Option<(&'static str, &'static [&'static str])> {
    match name {
        "x86_64" => Some(("x86", &[])),
        // Else atomic instructions would be calls of compiler-rt or libgcc.
        "aarch64" => Some(("arm64", &["-mno-outline-atomics"])),
        _ => None,
    }
}
