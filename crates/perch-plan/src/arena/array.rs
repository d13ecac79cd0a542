// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrays in the arena, which know what lies in them.

use std::marker::PhantomData;

use bytemuck::{NoUninit, bytes_of};
use perch_policy::Image;

/// An array of `T` in an image of the arena.
pub(super) struct Array<T> {
    /// The image's address.
    base: u64,
    at: u64,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Array<T> {
    /// Makes room for `len` of them, all zero.
    pub fn reserve(image: &mut Image, len: usize) -> Array<T> {
        Array { base: image.base(), at: image.reserve(len * size_of::<T>()), len, of: PhantomData }
    }

    /// No array, at no address.
    pub fn none() -> Array<T> {
        Array { base: 0, at: 0, len: 0, of: PhantomData }
    }

    /// The address of the first, for the BPF program.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The place of the first in the image, or that of what comes next if there is none.
    pub fn start(&self) -> usize {
        (self.at - self.base) as usize
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The address of one of them.
    ///
    /// # Panics
    /// If the array has fewer elements.
    pub fn address(&self, index: usize) -> u64 {
        assert!(index < self.len, "{index} of {}", self.len);
        self.at + (index * size_of::<T>()) as u64
    }

    /// The place of one of them in the image.
    ///
    /// # Panics
    /// If the array has fewer elements.
    pub fn offset(&self, index: usize) -> usize {
        (self.address(index) - self.base) as usize
    }
}

impl<T: NoUninit> Array<T> {
    /// Writes one of them.
    ///
    /// # Panics
    /// If the array has fewer elements.
    pub fn put(&self, image: &mut [u8], index: usize, value: &T) {
        let at = self.offset(index);
        image[at..at + size_of::<T>()].copy_from_slice(bytes_of(value));
    }
}
