// SPDX-License-Identifier: GPL-2.0-or-later
//! The cgroups as the program sees them, with their folders and what tasks have of them.

use std::ffi::c_void;
use std::ptr;

use super::block::{Block, CgroupAt};
use crate::abi::{Layout, NOWHERE};

/// A task group as the program sees it.
pub(crate) struct CgroupShape {
    /// The groups above it, the root first, and itself.
    pub path: Vec<usize>,
    /// The name of its folder.
    pub name: String,
}

pub(crate) struct Cgroups {
    cgroups: Block,
    folders: Block,
    /// The folders' names, each with a 0 behind it.
    names: Vec<Box<[u8]>>,
    /// What `task_struct.cgroups` points at, one per cgroup.
    sets: Block,
    layout: Layout,
}

impl Cgroups {
    pub(super) fn new(layout: Layout, shapes: &[CgroupShape]) -> Cgroups {
        let n = shapes.len();
        let depth = shapes.iter().map(|shape| shape.path.len()).max();
        let ancestors = 8 * depth.unwrap_or(1) as u32;
        let size = (layout.cgroup_size).max(layout.ancestors.saturating_add(ancestors));
        let name = |shape: &CgroupShape| [shape.name.as_bytes(), &[0]].concat().into();
        let all = Cgroups {
            cgroups: Block::new(n, size),
            folders: Block::new(n, layout.kernfs_node_size),
            names: shapes.iter().map(name).collect(),
            sets: Block::new(n, layout.css_set_size),
            layout,
        };
        for (number, shape) in shapes.iter().enumerate() {
            all.put(number, shape);
        }
        all
    }

    fn put(&self, number: usize, shape: &CgroupShape) {
        let (l, cgroups, folders) = (&self.layout, &self.cgroups, &self.folders);
        folders.put(number, l.kn_name, self.names[number].as_ptr());
        folders.put(number, l.kn_id, number as u64 + 1);
        cgroups.put(number, l.kn, folders.at(number));
        cgroups.put(number, l.level, shape.path.len() as i32 - 1);
        if l.ancestors != NOWHERE {
            for (level, &above) in shape.path.iter().enumerate() {
                let at = l.ancestors + 8 * level as u32;
                cgroups.put(number, at, cgroups.at(above));
            }
        }
        self.sets.put(number, l.dfl_cgrp, cgroups.at(number));
    }

    pub fn at(&self, number: usize) -> CgroupAt {
        CgroupAt(self.cgroups.at(number))
    }

    /// The cgroup whose folder has this number; null if there is none.
    pub fn of_id(&self, id: u64) -> CgroupAt {
        match usize::try_from(id).ok().and_then(|id| id.checked_sub(1)) {
            Some(number) if number < self.names.len() => self.at(number),
            _ => CgroupAt(ptr::null_mut()),
        }
    }

    /// The ancestor of a cgroup at this level, the root's being 0; null where it has none.
    pub fn ancestor(&self, at: *const c_void, level: i32) -> CgroupAt {
        let above = self.cgroups.number(at).and_then(|number| {
            let own: i32 = self.cgroups.get(number, self.layout.level);
            let place = || self.layout.ancestors + 8 * level as u32;
            (0..=own).contains(&level).then(|| self.cgroups.get(number, place()))
        });
        CgroupAt(above.unwrap_or(0_usize) as *mut c_void)
    }

    /// What a task in this cgroup points at.
    pub(super) fn set(&self, number: usize) -> *mut c_void {
        self.sets.at(number)
    }

    /// The cgroup of a task that points there; the root, if that is nothing of ours.
    pub(super) fn of_set(&self, at: *const c_void) -> CgroupAt {
        self.at(self.sets.number(at).unwrap_or(0))
    }
}
