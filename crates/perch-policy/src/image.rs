// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrays laid out for another address space: the arena of a BPF program.

use bytemuck::{AnyBitPattern, NoUninit, bytes_of, cast_slice};

/// Bytes that will lie at a known address, to which the pointers in them lead.
#[derive(Debug)]
pub struct Image {
    base: u64,
    bytes: Vec<u8>,
}

/// Arrays begin on a cache line.
const LINE: usize = 64;

impl Image {
    /// An empty image that will lie at `base`, which must be a multiple of 64.
    pub fn new(base: u64) -> Image {
        assert_eq!(base % LINE as u64, 0, "an image begins on a cache line");
        Image { base, bytes: Vec::new() }
    }

    /// The address at which it will lie.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Leaves `len` zero bytes, from the next cache line on; their address.
    pub fn reserve(&mut self, len: usize) -> u64 {
        let at = self.bytes.len().next_multiple_of(LINE);
        self.bytes.resize(at + len, 0);
        self.base + at as u64
    }

    /// Lays out an array; its address.
    pub(crate) fn push<T: NoUninit>(&mut self, array: &[T]) -> u64 {
        let bytes = cast_slice(array);
        let address = self.reserve(bytes.len());
        let at = self.offset(address);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        address
    }

    /// Writes a value at an address that was reserved for it.
    pub(crate) fn put<T: NoUninit>(&mut self, address: u64, value: &T) {
        let at = self.offset(address);
        self.bytes[at..at + size_of::<T>()].copy_from_slice(bytes_of(value));
    }

    /// Where an address is among the bytes.
    pub(crate) fn offset(&self, address: u64) -> usize {
        (address - self.base) as usize
    }

    /// The bytes that will lie at the base address.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The value that lies at `at` in `memory`, if that is long enough.
pub(crate) fn read<T: AnyBitPattern>(memory: &[u8], at: usize) -> Option<T> {
    let bytes = memory.get(at..at.checked_add(size_of::<T>())?)?;
    Some(bytemuck::pod_read_unaligned(bytes))
}
