// SPDX-License-Identifier: GPL-2.0-only
//! What a guest does when it comes up, as files of its own beside those it shares with others.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::Setup;
use super::link::JOB;
use crate::agent::frame::{Request, send};
use crate::error::{Error, Result};

/// The agent's port, by name.
pub(super) const PORT: &str = "perch.agent";

/// Where the guest finds what it has to do by itself.
const JOB_FILE: &str = "/perch.job";

/// The first program: a shell, which also waits for orphans, so that the agent need not. The
/// guest's only file system is its memory, so there is nothing to save when the agent ends.
const SCRIPT: &str = "\
#!/bin/busybox sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C
b=/bin/busybox
$b mkdir -p /proc /sys /dev /tmp /run /root
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
$b mkdir -p /dev/shm /dev/pts
$b mount -t tmpfs shm /dev/shm
$b mount -t devpts pts /dev/pts
$b mount -t tmpfs tmp /tmp
$b mount -t tmpfs run /run
$b mount -t cgroup2 cgroup /sys/fs/cgroup
$b mount -t bpf bpf /sys/fs/bpf
$b mount -t tracefs trace /sys/kernel/tracing
$b hostname perch
$b ip link set lo up
";

/// What follows once everything else is in place.
const AGENT: &str = "
for port in /sys/class/virtio-ports/*
do
    if [ \"$($b cat $port/name)\" = NAME ]
    then
        perch lab-agent /dev/${port##*/} JOB
    fi
done
$b poweroff -f
";

/// A file's path, permission bits and bytes.
type Given = (&'static str, u32, Vec<u8>);

/// Writes the guest's files: those that were given, and its own in an archive behind them, which
/// the kernel unpacks over the first.
pub(super) fn write(setup: &Setup, mut to: &File) -> Result<()> {
    let mut bytes = setup.initramfs.clone();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    let files = files(setup);
    let all = files
        .iter()
        .map(|(a, b, c)| (*a, *b, &c[..]))
        .chain([("TRAILER!!!", 0, &b""[..])]);
    for (path, mode, body) in all {
        let path = path.trim_start_matches('/');
        let n = path.len() + 1;
        let h = format!(
            "070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}",
            0,
            0o100000 | mode,
            0,
            0,
            1,
            0,
            body.len(),
            0,
            0,
            0,
            0,
            n,
            0
        );
        bytes.extend(h.as_bytes());
        bytes.extend(path.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    to.write_all(&bytes)
        .map_err(Error::file("write", Path::new("the initramfs")))
}

fn files(setup: &Setup) -> Vec<Given> {
    let mut script = SCRIPT.to_string();
    if setup.bpf_stats {
        script += "echo 1 > /proc/sys/kernel/bpf_stats_enabled\n";
    }
    let mut files = Vec::new();
    let mut job = String::new();
    if let Some(command) = &setup.job {
        let mut frame = Vec::new();
        send(&mut frame, &Request::Start(JOB, command.start.clone()))
            .expect("writing to memory does not fail");
        files.push((JOB_FILE, 0o600, frame));
        job = format!("--job {JOB_FILE}");
    }
    script += &AGENT.replace("NAME", PORT).replace("JOB", &job);
    files.push(("/init", 0o755, script.into_bytes()));
    files
}
