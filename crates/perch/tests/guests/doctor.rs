// SPDX-License-Identifier: GPL-2.0-or-later
//! What `perch doctor` tells of a kernel is what `perch run` then meets there.

use perch_lab::guest::Status;
use perch_plan::interface::Event;
use serde_json::Value;

use crate::guest::{Lab, SHELL};

/// What `perch doctor` says, which must end with this exit code.
fn doctor(lab: &Lab, command: &str, code: u32) -> Value {
    let output = lab.run(command);
    let (text, said) = (output.text(), output.error_text());
    assert_eq!(output.status, Status::Code(code), "{command}: {text}{said}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{command}: {error}: {text}{said}"))
}

/// The mark of a check and what it found.
fn check<'a>(found: &'a Value, name: &str) -> (&'a str, &'a str) {
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    (check["mark"].as_str().unwrap(), check["found"].as_str().unwrap())
}

const DOCTOR: &str = "perch doctor --format json";

#[test]
fn what_is_told_before_loading_is_what_loading_meets() {
    let lab = Lab::boot("7.2", 8);
    lab.text(&format!(
        "{SHELL} cgroups; cd $ROOT && echo +cpu > cgroup.subtree_control && mkdir limited &&
         echo '25000 100000' > limited/cpu.max && mkdir idle && echo 1 > idle/cpu.idle",
    ));
    // Its first thread is of the fair class, its second of SCHED_FIFO.
    let real_time = lab.start("exec cyclictest --policy=fifo -p 7 -t1 -i 100000 -q");
    lab.until("a thread is of SCHED_FIFO", || {
        let policies = "cut -d ' ' -f 41 /proc/$(pidof cyclictest)/task/*/stat || true";
        lab.text(policies).lines().any(|policy| policy == "1")
    });

    let found = doctor(&lab, DOCTOR, 0);
    assert_eq!(found["can_run"], true, "{found:#}");
    for sound in ["kernel", "btf", "rights", "scheduler", "functions", "task-groups", "machine"] {
        assert_eq!(check(&found, sound).0, "ok", "{found:#}");
    }
    let (mark, limits) = check(&found, "cpu-limits");
    assert!(
        mark == "ok" && limits.contains("which perch enforces: /limited (25 % of a CPU)"),
        "{limits}"
    );
    assert_eq!(check(&found, "idle-groups").0, "ok", "{found:#}");
    let (mark, task) = check(&found, "real-time");
    assert!(
        mark == "note" && task.contains("1 task of user space above sched_ext: cyclictest ("),
        "{task}"
    );
    assert!(task.contains("fifo 7"), "{task}");
    lab.is_on_its_own();

    let perch = lab.load("");
    let report = perch.report();
    assert_eq!(found["modes"], report.about.modes, "{found:#}");
    // The limit is enforced, as the check says: limits.rs measures how well.
    let hog = lab.start(
        "echo $$ > /sys/fs/cgroup/limited/cgroup.procs; while [ ! -e /tmp/enough ]; do :; done",
    );
    lab.until("the limited group has used up its time", || {
        perch.report().event(Event::LimitHeld) > 0
    });
    lab.text("touch /tmp/enough");
    lab.join("the hog", hog);
    let taken = doctor(&lab, DOCTOR, 3);
    let (mark, words) = check(&taken, "scheduler");
    assert!(mark == "problem" && words.ends_with("is loaded: perch"), "{words}");
    perch.is_well();
    perch.unload();

    // An ordinary user learns as much.
    lab.text("sed -i 's,/bin/false,/bin/sh,' /etc/passwd");
    let user = doctor(&lab, &format!("su nobody -c '{DOCTOR}'"), 0);
    assert_eq!(check(&user, "rights").0, "note", "{user:#}");
    for same in ["functions", "machine", "cpu-limits", "real-time", "steer"] {
        assert_eq!(check(&user, same), check(&found, same));
    }

    // What perch run refuses, perch doctor tells in the same words.
    for (before, name) in [
        ("mount -t tmpfs none /sys/kernel", "kernel"),
        ("mount -t tmpfs none /sys/kernel/btf", "btf"),
    ] {
        let hidden = |what: &str| format!("unshare -m sh -c '{before} && {what}'");
        let told = doctor(&lab, &hidden(DOCTOR), 3);
        let (mark, words) = check(&told, name);
        assert_eq!(mark, "problem", "{told:#}");
        let run = lab.run(&hidden("perch run"));
        assert_eq!(run.status, Status::Code(3));
        assert_eq!(run.error_text(), format!("perch: {words}\n"));
    }
    lab.text("echo 0 > /sys/devices/system/cpu/cpu3/online");
    // A CPU that is missing in the middle is told, and keeps perch from nothing.
    let hole = doctor(&lab, DOCTOR, 0);
    assert_eq!(check(&hole, "machine").0, "ok", "{hole:#}");
    let (mark, words) = check(&hole, "offline-cpus");
    assert_eq!(mark, "note", "{hole:#}");
    assert!(words.contains('3'), "{words}");
    lab.text("echo 1 > /sys/devices/system/cpu/cpu3/online; kill $(pidof cyclictest)");
    let _ = lab.end("cyclictest", real_time);
}

/// 6.16 is the oldest kernel that has all that perch calls.
#[test]
#[ignore = "fetches the oldest kernel, 15 MB, for --long"]
fn the_oldest_kernel_has_all_functions() {
    let lab = Lab::boot("6.16", 8);
    let found = doctor(&lab, DOCTOR, 0);
    assert_eq!(check(&found, "functions").0, "ok", "{found:#}");
    lab.load("").unload();
}
