// SPDX-License-Identifier: GPL-2.0-only
//! What a guest is made of, fetched for real: run with `./x test --long`, in a folder of its own.

use std::path::PathBuf;
use std::time::Instant;

use perch_lab::kernel::Kernel;
use perch_lab::{Arch, Store};

/// A store that outlives the test, so that one failing test does not fetch everything again.
fn store() -> Store {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("store");
    Store::at(root).unwrap()
}

#[test]
#[ignore = "fetches 60 MB of kernels"]
fn kernels_of_each_way_of_packaging() {
    let store = store();
    for spec in ["", "6.16", "6.18", "6.19"] {
        let began = Instant::now();
        let kernel = Kernel::find(&store, spec, Arch::X86_64).unwrap();
        println!("{spec:?}: {kernel:?} in {:.1?}", began.elapsed());
        assert!(
            kernel
                .release
                .starts_with(if spec.is_empty() { "7.2." } else { spec })
        );
        assert!(kernel.sched_ext, "{}", kernel.release);
        assert_eq!(kernel.lacking(), []);
        let began = Instant::now();
        assert_eq!(Kernel::find(&store, spec, Arch::X86_64).unwrap(), kernel);
        assert!(
            began.elapsed().as_millis() < 100,
            "the second time nothing is fetched"
        );
    }
    let message = Kernel::find(&store, "6.12", Arch::X86_64)
        .unwrap_err()
        .to_string();
    assert!(message.contains("7.2"), "{message}");
}
