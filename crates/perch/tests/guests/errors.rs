// SPDX-License-Identifier: GPL-2.0-or-later
//! perch refuses what cannot be done, and tells the reason and the remedy.

use std::process::Command;

use perch_lab::guest::Status;
use perch_lab::kernel::Kernel;
use perch_lab::{Arch, Store};

use crate::guest::{Lab, PERCH};

/// Runs a command that must fail with this exit code, and returns its message.
fn refused(lab: &Lab, script: &str, code: u32) -> String {
    let output = lab.run(script);
    assert_eq!(output.status, Status::Code(code), "{script}");
    assert_eq!(output.text(), "", "{script}");
    let said = output.error_text();
    assert!(said.starts_with("perch: "), "{script}: {said}");
    assert_eq!(said.lines().count(), 1, "{script}: {said}");
    said
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let lab = Lab::boot("7.2", 8);

    let nobody = refused(&lab, "perch stats", 1);
    assert!(nobody.contains("perch run"), "{nobody}");

    lab.text("sed -i 's,/bin/false,/bin/sh,' /etc/passwd");
    // `perch run --check` foresees each of these.
    let refused_run = |script: &str, code| {
        let checked = refused(&lab, &script.replace("perch run", "perch run --check"), code);
        assert_eq!(checked, refused(&lab, script, code), "{script}");
        checked
    };
    let user = refused_run("su nobody -c 'perch run'", 3);
    assert!(user.contains("needs root"), "{user}");
    assert!(user.contains("sudo perch run"), "{user}");

    // A kernel without sched_ext shows nothing of it below /sys/kernel.
    let hidden = "unshare -m sh -c 'mount -t tmpfs none /sys/kernel && perch run'";
    let without = refused_run(hidden, 3);
    assert!(without.contains("has no sched_ext"), "{without}");
    assert!(without.contains("CONFIG_SCHED_CLASS_EXT"), "{without}");

    lab.put("/tmp/bad.toml", "detail = true\nslice_us = 1\n");
    let settings = refused_run("perch run --config /tmp/bad.toml", 2);
    assert!(settings.contains("/tmp/bad.toml:2: slice_us"), "{settings}");
    let other = refused_run("perch run --machine juno", 2);
    assert!(
        other.contains("juno is not this machine: it has 6 CPUs, and this machine 8"),
        "{other}"
    );
    lab.is_on_its_own();

    let perch = lab.load("");
    let second = refused(&lab, "perch run", 1);
    assert!(second.contains("is loaded: perch"), "{second}");
    // The service checks a new configuration before it reloads.
    assert!(lab.text("perch run --check 2>&1").contains("would schedule 8 CPUs"));
    perch.unload();

    // The user did not ask for an ejection by SysRq-S, so perch must not report success.
    let perch = lab.load("");
    lab.text("echo S > /proc/sysrq-trigger");
    let (status, said) = perch.ended();
    assert_eq!(status, Status::Code(4), "{said}");
    assert!(said.contains("SysRq-S unloaded perch"), "{said}");
    assert!(said.contains("back on its own scheduler"), "{said}");
    lab.is_on_its_own();
}

#[test]
fn a_kernel_without_sched_ext_is_refused_before_it_boots() {
    // No suite that has kernels for guests has one without sched_ext, so the test makes one of
    // another's image.
    let store = Store::open().unwrap();
    let kernel = Kernel::find(&store, "7.2", Arch::X86_64);
    let kernel = kernel.unwrap_or_else(|error| panic!("{error}"));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    let config = std::fs::read_to_string(kernel.config.unwrap()).unwrap();
    let with = "CONFIG_SCHED_CLASS_EXT=y";
    assert!(config.contains(with));
    let without = config.replace(with, "# CONFIG_SCHED_CLASS_EXT is not set");
    std::fs::write(folder.join("config"), without).unwrap();
    let image = folder.join("vmlinux");
    std::fs::copy(&kernel.image, &image).unwrap();

    let output = Command::new(PERCH)
        .args(["lab", "run", "--machine", "kunpeng920", "--cpus", "8"])
        .args(["--scheduler", "perch", "--kernel"])
        .arg(&image)
        .args(["--", "true"])
        .env("PERCH_CACHE", folder.join("cache"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&kernel.release), "{said}");
    assert!(said.contains("sched_ext"), "{said}");
    assert!(said.contains("--kernel"), "{said}");

    let on_it = |arm: &str| format!("{arm}@{}", image.display());
    let output = Command::new(PERCH)
        .args(["lab", "compare", "--machine", "kunpeng920", "--cpus", "8"])
        .args(["--arm", &on_it("old=stock"), "--arm", &on_it("new=perch")])
        .args(["--", "true"])
        .env("PERCH_CACHE", folder.join("cache"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let words = format!("arm new: kernel {} has no sched_ext", kernel.release);
    assert!(said.contains(&words), "{said}");
}
