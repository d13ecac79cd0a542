// SPDX-License-Identifier: GPL-2.0-or-later
//! Structures that the program shares with the kernel.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use crate::abi::NOWHERE;

/// A task in the program's memory, or null.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct TaskAt(pub(super) *mut c_void);

impl TaskAt {
    pub const NONE: TaskAt = TaskAt(ptr::null_mut());

    pub fn address(self) -> usize {
        self.0 as usize
    }
}

/// The words of a task's affinity.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct MaskAt(#[allow(dead_code)] pub(super) *const c_void);

/// A cgroup in the program's memory, or null.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct CgroupAt(#[allow(dead_code)] pub(super) *mut c_void);

/// Zeroed memory for structures of one size, which never moves. The program writes there too, so
/// nothing here ever borrows the words.
pub(super) struct Block {
    words: NonNull<[u64]>,
    size: usize,
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `new` took the words from a box.
        drop(unsafe { Box::from_raw(self.words.as_ptr()) });
    }
}

impl Block {
    /// `len` structures, each on cache lines of its own.
    pub fn new(len: usize, size: u32) -> Block {
        Block::dense(len, (size as usize).next_multiple_of(64))
    }

    /// `len` structures, one directly after the other.
    pub fn dense(len: usize, size: usize) -> Block {
        let words: Box<[u64]> = vec![0; (len * size).div_ceil(8)].into();
        Block { words: NonNull::from(Box::leak(words)), size }
    }

    pub fn at(&self, number: usize) -> *mut c_void {
        assert!((number + 1) * self.size <= self.words.len() * 8);
        let first: *mut c_void = self.words.as_ptr().cast();
        first.wrapping_byte_add(number * self.size)
    }

    pub fn number(&self, at: *const c_void) -> Option<usize> {
        let first = self.words.as_ptr().cast::<u8>() as usize;
        let offset = (at as usize).checked_sub(first)?;
        (offset < self.words.len() * 8).then(|| offset / self.size)
    }

    /// Where a field is; `None` if the program does not have it.
    fn field<T>(&self, number: usize, offset: u32) -> Option<*mut T> {
        if offset == NOWHERE {
            return None;
        }
        assert!(offset as usize + size_of::<T>() <= self.size);
        Some(self.at(number).wrapping_byte_add(offset as usize).cast())
    }

    pub fn put<T: Copy>(&self, number: usize, offset: u32, value: T) {
        if let Some(field) = self.field::<T>(number, offset) {
            // SAFETY: it is inside the structure, and C aligns a field as its type demands.
            unsafe { field.write(value) }
        }
    }

    pub fn get<T: Copy + Default>(&self, number: usize, offset: u32) -> T {
        let field: Option<*mut T> = self.field(number, offset);
        // SAFETY: as in `put`; the types that are asked for are numbers.
        field.map_or_else(T::default, |field| unsafe { field.read() })
    }
}
