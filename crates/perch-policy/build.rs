// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles policy/ natively. The same headers are compiled to BPF by the live scheduler.

fn main() {
    let policy = std::path::Path::new("../../policy");
    println!("cargo::rerun-if-changed={}", policy.display());
    // The model checker's copy; only the test that has its atomics pulls it in.
    for (source, library) in [
        ("native", "perch_policy"),
        ("checked", "perch_policy_checked"),
    ] {
        cc::Build::new()
            .file(policy.join(format!("hosts/{source}.c")))
            .opt_level(2)
            .warnings(true)
            .extra_warnings(true)
            .warnings_into_errors(true)
            .flag("-std=gnu11")
            .compile(library);
    }
}
