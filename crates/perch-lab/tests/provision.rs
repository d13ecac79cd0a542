// SPDX-License-Identifier: GPL-2.0-or-later
//! Fetches the parts of a guest for real: run with `./x test --long`, in a folder of its own.

use std::path::PathBuf;
use std::time::Instant;

use perch_lab::initramfs::Contents;
use perch_lab::kernel::Kernel;
use perch_lab::qemu::{Need, Qemu};
use perch_lab::tools::{Busybox, Tool};
use perch_lab::{Arch, Store};

/// A store that outlives the test, so that one failing test does not fetch everything again. The
/// tests leave the user's own store alone, unless PERCH_CACHE names it.
fn store() -> Store {
    if std::env::var_os("PERCH_CACHE").is_some() {
        return Store::open().unwrap();
    }
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
        assert!(kernel.release.starts_with(if spec.is_empty() { "7.2." } else { spec }));
        assert!(kernel.sched_ext, "{}", kernel.release);
        assert_eq!(kernel.lacking(), []);
        let written = || kernel.image.metadata().unwrap().modified().unwrap();
        let before = written();
        assert_eq!(Kernel::find(&store, spec, Arch::X86_64).unwrap(), kernel);
        assert_eq!(before, written(), "the second time nothing is fetched");
    }
}

#[test]
#[ignore = "fetches 15 MB of QEMU where the host has none that is new enough"]
fn a_qemu_for_clusters() {
    let store = store();
    let need = Need { arch: Arch::X86_64, l2_clusters: true, plugin: false };
    let began = Instant::now();
    let qemu = Qemu::find(&store, need).unwrap();
    println!("{qemu:?} in {:.1?}", began.elapsed());
    assert!(qemu.version >= (10, 0, 0));
    let machines = qemu.command().args(["-machine", "help"]).output().unwrap();
    assert!(String::from_utf8_lossy(&machines.stdout).contains("q35"));
    assert_eq!(Qemu::find(&store, need).unwrap(), qemu);
}

#[test]
#[ignore = "fetches 150 MB for arm64 guests"]
fn what_an_arm64_guest_is_made_of() {
    let store = store();
    let arch = Arch::Aarch64;
    let kernel = Kernel::find(&store, "", arch).unwrap();
    assert!(kernel.sched_ext && kernel.release.ends_with("-arm64"), "{kernel:?}");
    assert_eq!(kernel.lacking(), []);
    let need = Need { arch, l2_clusters: false, plugin: false };
    let qemu = Qemu::find(&store, need).unwrap();
    let machines = qemu.command().args(["-machine", "help"]).output().unwrap();
    assert!(String::from_utf8_lossy(&machines.stdout).contains("virt-7.2"));
    let mut contents = Contents::new("#!/bin/sh\n");
    for name in ["cyclictest", "hackbench", "sysbench", "stress-ng"] {
        let tool = Tool::find(&store, name, arch).unwrap();
        assert_eq!(tool.name, name);
        let loader = "/lib/ld-linux-aarch64.so.1";
        assert!(tool.libraries.contains_key(loader), "{tool:?}");
        contents.tool(&tool);
    }
    let busybox = Busybox::find(&store, arch).unwrap();
    assert!(busybox.applets.iter().any(|applet| applet == "sh"));
    contents.busybox(&busybox);
    contents.build(&store.root().join("initramfs-arm64")).unwrap();
}

#[test]
#[ignore = "fetches a few MB of packages that the host lacks"]
fn tools_with_all_that_they_need() {
    let store = store();
    let mut contents = Contents::new("#!/bin/sh\n");
    for name in ["hackbench", "sysbench", "tbench", "stress-ng", "perf", "rt-app", "iperf3"] {
        let began = Instant::now();
        let tool = Tool::find(&store, name, Arch::X86_64).unwrap();
        println!("{name}: {} libraries in {:.1?}", tool.libraries.len(), began.elapsed());
        assert_eq!(tool.name, name);
        contents.tool(&tool);
    }
    let busybox = Busybox::find(&store, Arch::X86_64).unwrap();
    assert!(busybox.applets.iter().any(|applet| applet == "sh"));
    for applet in &busybox.applets {
        assert!(Tool::foresee(applet, Arch::X86_64).is_ok(), "{applet}");
    }
    contents.busybox(&busybox);
    let began = Instant::now();
    contents.perch().unwrap();
    let out = store.root().join("initramfs");
    let size = contents.build(&out).unwrap();
    println!("initramfs: {size} bytes in {:.1?}", began.elapsed());
}
