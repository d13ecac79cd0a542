// SPDX-License-Identifier: GPL-2.0-or-later
//! The maps that hold something for each task and each cgroup, which all programs of a session
//! share.
//!
//! A program could have its own, but Linux before 7.0 can deadlock when it frees such a map while a CPU
//! goes offline, which is just when a program ends and another comes. The kernel's worker frees the map
//! with migration disabled and waits for a grace period of RCU Tasks Trace; the grace period waits for
//! the lock of CPU hotplug; and the holder of that lock waits until no task is pinned to the CPU,
//! the worker included (`bpf_map_free_deferred`, `rcu_tasks_trace_pregp_step` and
//! `sched_cpu_wait_empty` of Linux 6.18). CPU hotplug and the creation of cgroups then hang for good.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::{AsRawLibbpf, MapCore, Object, OpenObject};

/// The maps of the first program that was loaded; empty before that.
#[derive(Debug, Default)]
pub(crate) struct Storage(Vec<(OsString, OwnedFd)>);

impl Storage {
    /// Gives the maps to a program that is to be loaded. The program clears what it finds in them.
    pub(crate) fn lend(&self, open: &mut OpenObject) -> libbpf_rs::Result<()> {
        for mut map in open.maps_mut() {
            if let Some(fd) = self.of(map.name()) {
                map.reuse_fd(fd.as_fd())?;
            }
        }
        Ok(())
    }

    /// Keeps the maps of a program that is loaded.
    pub(crate) fn keep(&mut self, object: &Object) -> io::Result<()> {
        for map in object.maps() {
            if is_storage(&map) && self.of(map.name()).is_none() {
                let fd = map.as_fd().try_clone_to_owned()?;
                self.0.push((map.name().to_os_string(), fd));
            }
        }
        Ok(())
    }

    fn of(&self, name: &OsStr) -> Option<&OwnedFd> {
        let found = self.0.iter().find(|(its, _)| its == name);
        found.map(|(_, fd)| fd)
    }
}

/// True for a map that holds something for each task or cgroup.
fn is_storage(map: &libbpf_rs::Map<'_>) -> bool {
    // SAFETY: the map's object lives.
    let kind = unsafe { libbpf_sys::bpf_map__type(map.as_libbpf_object().as_ptr()) };
    [libbpf_sys::BPF_MAP_TYPE_TASK_STORAGE, libbpf_sys::BPF_MAP_TYPE_CGRP_STORAGE].contains(&kind)
}
