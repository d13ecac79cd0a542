// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of looks at trees that lie in a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use object::{Object as _, ObjectSection as _};

use super::*;
use crate::program::OBJECT;

/// A tree of these files.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (file, text) in files {
        put(root.path(), file, text.as_bytes());
    }
    root
}

fn put(root: &Path, file: &str, bytes: &[u8]) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn look(root: &tempfile::TempDir) -> Diagnosis {
    diagnose(root.path(), &Settings::default())
}

/// A machine of two CPUs, and a kernel that may load.
const MACHINE: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "7.2.12\n"),
    ("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"),
    ("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:  1000 kB\n"),
    ("sys/kernel/sched_ext/state", "disabled\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/possible", "0-3\n"),
    ("sys/devices/system/cpu/present", "0-2\n"),
    ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
    ("sys/devices/system/cpu/cpu1/topology/core_id", "1\n"),
    ("sys/devices/system/cpu/cpu2/online", "0\n"),
];

/// The types of perch's own object, which are those of a kernel that has all that perch needs, with
/// some names changed.
fn types(changes: &[(&str, &str)]) -> Vec<u8> {
    let file = object::File::parse(OBJECT).unwrap();
    let mut types = file.section_by_name(".BTF").unwrap().data().unwrap().to_vec();
    // At once, so that names may change places.
    let places: Vec<_> = changes
        .iter()
        .map(|(from, to)| {
            assert_eq!(from.len(), to.len());
            let name = format!("\0{from}\0");
            let at = types.windows(name.len()).position(|some| some == name.as_bytes());
            (at.unwrap_or_else(|| panic!("no {from}")) + 1, to)
        })
        .collect();
    for (at, name) in places {
        types[at..at + name.len()].copy_from_slice(name.as_bytes());
    }
    types
}

fn functions(changes: &[(&str, &str)]) -> Functions {
    let root = tree(MACHINE);
    put(root.path(), "sys/kernel/btf/vmlinux", &types(changes));
    look(&root).functions.unwrap().unwrap()
}

#[test]
fn a_kernel_that_has_everything_lacks_nothing() {
    let root = tree(MACHINE);
    put(root.path(), "sys/kernel/btf/vmlinux", &types(&[]));
    let found = look(&root);
    assert_eq!(found.version, "7.2.12");
    assert!(found.sched_ext.is_ok() && found.btf.is_ok() && found.free.is_ok());
    assert_eq!(found.rights, Rights::Enough);
    assert_eq!(found.available, Some(1000 << 10));
    assert!(found.unknown_callbacks().is_empty());
    let load = found.load.unwrap();
    assert_eq!(load.machine.cpus.len(), 2);
    assert_eq!(load.choices.len(), perch_policy::Mechanism::ALL.len());
    assert!(load.memory.unwrap() > 1 << 20);
    let functions = found.functions.unwrap().unwrap();
    assert!(functions.needed > 15, "{functions:?}");
    assert_eq!((functions.missing.len(), functions.unlike.len()), (0, 0));
    assert!(functions.abilities.takes_back && functions.abilities.limits);
}

#[test]
fn missing_functions_are_named() {
    let found = functions(&[
        ("scx_bpf_now", "scx_bpf_nox"),
        ("runqueues", "runqueuex"),
        // Its newer form goes by a name of the object's own, so the kernel has neither.
        ("scx_bpf_dsq_insert", "scx_bpf_dsq_inserx"),
        // perch can do without this one.
        ("scx_bpf_task_set_slice", "scx_bpf_task_set_slicx"),
    ]);
    let missing = ["runqueues", "scx_bpf_dsq_insert___v2", "scx_bpf_now"];
    assert_eq!(found.missing, missing);
    assert!(found.unlike.is_empty(), "{found:?}");
}

/// Debian's 7.2.12 for trixie describes an argument that only the kernel fills in.
#[test]
fn functions_with_other_arguments_are_told_from_missing_ones() {
    let found = functions(&[
        ("scx_bpf_kick_cpu", "scx_bpf_task_cpu"),
        ("scx_bpf_task_cpu", "scx_bpf_kick_cpu"),
    ]);
    let unlike = |name: &str, takes, passed| Unlike { name: name.to_string(), takes, passed };
    let expected = [unlike("scx_bpf_kick_cpu", 1, 2), unlike("scx_bpf_task_cpu", 2, 1)];
    assert_eq!(found.unlike, expected);
    assert!(found.missing.is_empty(), "{found:?}");
}

/// As many arguments, of other types.
#[test]
fn types_of_arguments_are_compared() {
    let found = functions(&[
        ("scx_bpf_kick_cpu", "bpf_rdonly_cast\0"),
        ("bpf_rdonly_cast", "bpf_rdonly_casx"),
    ]);
    let unlike: Vec<_> = found.unlike.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(unlike, ["bpf_rdonly_cast"]);
    assert_eq!((found.unlike[0].takes, found.unlike[0].passed), (2, 2));
    assert_eq!(found.missing, ["scx_bpf_kick_cpu"]);
}

#[test]
fn a_kernel_without_groups_knows_none_of_their_callbacks() {
    let root = tree(MACHINE);
    let lacks = [("cgroup_init", "cgroup_inix"), ("SCX_ENQ_IMMED", "SCX_ENQ_IMMEX")];
    put(root.path(), "sys/kernel/btf/vmlinux", &types(&lacks));
    let found = look(&root);
    assert_eq!(found.unknown_callbacks(), ["cgroup_init"]);
    assert!(!found.functions.as_ref().unwrap().as_ref().unwrap().abilities.takes_back);
    let without = Settings::from_toml("groups = 0", "x").unwrap();
    let found = diagnose(root.path(), &without);
    assert!(found.unknown_callbacks().is_empty());
}

#[test]
fn types_that_are_none_are_refused_in_words() {
    let root = tree(MACHINE);
    assert!(matches!(look(&root).functions, Ok(None)));
    let whole = types(&[]);
    for (bytes, words) in [
        (&b"hello"[..], "it is not BTF"),
        (&b""[..], "it is not BTF"),
        (&whole[..whole.len() / 2], "failed to parse BTF"),
    ] {
        put(root.path(), "sys/kernel/btf/vmlinux", bytes);
        let why = look(&root).functions.unwrap_err().to_string();
        assert!(why.contains("btf/vmlinux") && why.contains(words), "{why}");
    }
    // Any byte of the types may be wrong.
    for at in (24..whole.len() / 2).step_by(499) {
        let mut types = whole.clone();
        types[at] ^= 0xff;
        put(root.path(), "sys/kernel/btf/vmlinux", &types);
        let _ = look(&root).functions;
    }
    let file =
        fs::File::options().write(true).open(root.path().join("sys/kernel/btf/vmlinux")).unwrap();
    file.set_len(1 << 40).unwrap();
    let why = look(&root).functions.unwrap_err().to_string();
    assert!(why.contains("expected at most 256"), "{why}");
}

#[test]
fn rights_are_a_user_s_a_container_s_or_enough() {
    for (status, rights) in [
        ("Uid:\t1\t1\t1\t1\nCapEff:\t0000000000000000\n", Rights::User),
        ("Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n", Rights::Withheld),
        ("Uid:\t1\t1\t1\t1\nCapEff:\t000000c000000000\n", Rights::Enough),
    ] {
        let root = tree(&[("proc/self/status", status)]);
        assert_eq!(look(&root).rights, rights);
    }
}

#[test]
fn cpus_apart_are_listed() {
    let root = tree(
        &[
            MACHINE,
            &[
                ("sys/devices/system/cpu/isolated", "1\n"),
                ("sys/devices/system/cpu/nohz_full", "0-1\n"),
                ("sys/devices/cpu_atom/cpus", "1\n"),
            ],
        ]
        .concat(),
    );
    let found = look(&root).cpus.unwrap();
    let expected =
        Cpus { offline: vec![2], isolated: vec![1], tickless: vec![0, 1], slow: vec![1] };
    assert_eq!(found, expected);
    put(root.path(), "sys/devices/system/cpu/nohz_full", b"(null)\n");
    put(root.path(), "sys/devices/system/cpu/isolated", b"\n");
    let found = look(&root).cpus.unwrap();
    assert_eq!((found.isolated.len(), found.tickless.len()), (0, 0));
    put(root.path(), "sys/devices/system/cpu/isolated", b"1-x\n");
    let why = look(&root).cpus.unwrap_err().to_string();
    assert!(why.contains("cpu/isolated: `x` in `1-x` is not a number"), "{why}");
    put(root.path(), "sys/devices/system/cpu/isolated", &vec![b'1'; 3 << 20]);
    let why = look(&root).cpus.unwrap_err().to_string();
    assert!(why.contains("more than 1 MiB"), "{why}");
}

#[test]
fn a_machine_with_a_hole_is_one() {
    let root = tree(MACHINE);
    put(root.path(), "sys/devices/system/cpu/online", b"0,2\n");
    let found = look(&root);
    assert!(found.unknown_callbacks().is_empty());
    let load = found.load.unwrap();
    assert_eq!(load.machine.cpus.len(), 2);
    assert!(load.memory.is_ok());
    put(root.path(), "sys/devices/system/cpu/online", b"x\n");
    let why = look(&root).load.unwrap_err().to_string();
    assert!(why.contains("cpu/online"), "{why}");
}

#[test]
fn a_table_that_takes_too_much_is_told_with_the_words_of_run() {
    let files: Vec<(String, &str)> = (0..1024)
        .map(|cpu| (format!("sys/devices/system/cpu/cpu{cpu}/topology/core_id"), "0"))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (&file[..], *text)).collect();
    let root = tree(&files);
    let settings = Settings::from_toml("groups = 65536", "x").unwrap();
    let load = diagnose(root.path(), &settings).load.unwrap();
    let why = load.memory.unwrap_err().to_string();
    assert!(why.starts_with("groups: 65536 of them take "), "{why}");
}

const GROUP: &str = "sys/fs/cgroup/cgroup.controllers";

#[test]
fn groups_that_ask_for_what_perch_does_not_do_are_found() {
    let root = tree(&[
        (GROUP, "cpu\n"),
        ("sys/fs/cgroup/plain/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/plain/cpu.idle", "0\n"),
        ("sys/fs/cgroup/plain/cpuset.cpus.partition", "isolated invalid (x)\n"),
        ("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/a/cpu.idle", "1\n"),
        ("sys/fs/cgroup/e/cpuset.cpus.partition", "isolated\n"),
    ]);
    // Links lead back, and are left alone.
    std::os::unix::fs::symlink("..", root.path().join("sys/fs/cgroup/a/loop")).unwrap();
    let found = look(&root).groups.unwrap();
    let expected = Groups {
        looked: 5,
        limited: vec![("/a/b".to_string(), 150.0)],
        idle: vec!["/a".to_string()],
        isolated: vec!["/e".to_string()],
        ..Groups::default()
    };
    assert_eq!(found, expected);
}

#[test]
fn limits_of_the_first_version_are_found() {
    let root = tree(&[
        ("sys/fs/cgroup/cpu,cpuacct/cpu.shares", "1024\n"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "20000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/memory/x/memory.limit", "1\n"),
    ]);
    let found = look(&root).groups.unwrap();
    assert_eq!(found.limited, [("/cpu,cpuacct/x".to_string(), 20.0)]);
    assert_eq!(found.looked, 2);
}

#[test]
fn hostile_groups_are_told_in_words() {
    let root = tree(&[
        (GROUP, "cpu\n"),
        ("sys/fs/cgroup/odd/cpu.max", "0 0 0\n"),
        ("sys/fs/cgroup/folder/cpu.max/x", ""),
    ]);
    put(root.path(), "sys/fs/cgroup/long/cpu.max", &vec![b'9'; 2 << 20]);
    put(root.path(), "sys/fs/cgroup/odd/cpu.idle", b"\xff\xfe");
    let found = look(&root).groups.unwrap();
    assert_eq!(found.unread, ["/folder", "/long"]);
    assert!(found.limited.is_empty(), "{found:?}");
    let none = look(&tree(&[("x", "")])).groups.unwrap();
    assert_eq!(none, Groups::default());
}

/// A line of /proc/PID/stat.
fn stat(comm: &str, state: char, flags: u32, priority: u32, policy: u32) -> String {
    format!("7 ({comm}) {state} 1 1 1 0 -1 {flags} {}{priority} {policy} 0 0\n", "0 ".repeat(30))
}

#[test]
fn real_time_tasks_of_user_space_are_found() {
    let root = tree(&[
        ("proc/1/stat", &stat("init", 'S', 0, 0, 0)),
        ("proc/1/task/1/stat", &stat("init", 'S', 0, 0, 0)),
        ("proc/2/stat", &stat("migration/0", 'S', 0x20_0000, 99, 1)),
        ("proc/2/task/2/stat", &stat("migration/0", 'S', 0x20_0000, 99, 1)),
        ("proc/30/stat", &stat("audio", 'S', 0, 0, 0)),
        ("proc/30/task/30/stat", &stat("audio", 'S', 0, 0, 0)),
        ("proc/30/task/31/stat", &stat("a) R (\n", 'R', 0, 20, 2)),
        ("proc/30/task/32/stat", &stat("edf", 'S', 0, 0, 6)),
        ("proc/9/stat", &stat("fifo", 'S', 0, 1, 1)),
        ("proc/9/task/9/stat", &stat("fifo", 'S', 0, 1, 1)),
        ("proc/self/x", ""),
        ("proc/40/stat", "garbage"),
        ("proc/41/task/41/stat", ") ( 1"),
    ]);
    let found = look(&root).real_time.unwrap();
    let task = |tid, comm: &str, policy, priority, runs| Task {
        tid,
        comm: comm.to_string(),
        policy,
        priority,
        runs,
    };
    let expected = [
        task(9, "fifo", "fifo", 1, false),
        task(31, "a) R (\n", "rr", 20, true),
        task(32, "edf", "deadline", 0, false),
    ];
    assert_eq!(found.tasks, expected);
    assert_eq!((found.looked, found.cut, found.hidden), (5, false, false));
    assert!(look(&tree(&[("proc/7/x", "")])).real_time.unwrap().hidden);
}

/// Root reads what a mode forbids, so this tells something only for other users.
#[test]
fn unreadable_folders_are_told_and_the_others_looked_at() {
    let root = tree(&[
        (GROUP, "cpu\n"),
        ("sys/fs/cgroup/a/cpu.max", "1000 100000\n"),
        ("sys/fs/cgroup/b/cpu.max", "1000 100000\n"),
    ]);
    let folder = root.path().join("sys/fs/cgroup/a");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    let may = fs::read_dir(&folder).is_ok();
    let found = look(&root).groups.unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(found.unread.len(), usize::from(!may), "{found:?}");
    assert_eq!(found.limited.len(), 1 + usize::from(may), "{found:?}");
}
