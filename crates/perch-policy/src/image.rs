// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrays laid out for another address space: the arena of a BPF program.

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
        Image {
            base,
            bytes: Vec::new(),
        }
    }

    /// Leaves `len` zero bytes, from the next cache line on; their address.
    pub fn reserve(&mut self, len: usize) -> u64 {
        let at = self.bytes.len().next_multiple_of(LINE);
        self.bytes.resize(at + len, 0);
        self.base + at as u64
    }

    /// Lays out an array; its address.
    pub(crate) fn push<T: Plain>(&mut self, array: &[T]) -> u64 {
        let address = self.reserve(size_of_val(array));
        let at = self.offset(address);
        self.bytes[at..at + size_of_val(array)].copy_from_slice(bytes(array));
        address
    }

    /// Writes a value at an address that was reserved for it.
    pub(crate) fn put<T: Plain>(&mut self, address: u64, value: &T) {
        let at = self.offset(address);
        self.bytes[at..at + size_of::<T>()].copy_from_slice(bytes(std::slice::from_ref(value)));
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

/// Structures of policy/: `repr(C)`, and without padding that a compiler chooses.
///
/// # Safety
/// Every byte of such a value is initialised, and any bytes are a value.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers, and structures of them without padding that is no field
// (scripts/mirrors has bindgen make one of any).
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Set {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Domain {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Place {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Llc {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Epoch {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Occupancy {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Seat {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Process {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Topology {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Policy {}
// SAFETY: as above.
unsafe impl Plain for crate::ffi::Question {}

/// The bytes of an array.
pub(crate) fn bytes<T: Plain>(array: &[T]) -> &[u8] {
    // SAFETY: `Plain` says that every byte is initialised.
    unsafe { std::slice::from_raw_parts(array.as_ptr().cast(), size_of_val(array)) }
}

/// The value that lies at `at` in `memory`, if that is long enough.
pub(crate) fn read<T: Plain>(memory: &[u8], at: usize) -> Option<T> {
    let bytes = memory.get(at..at.checked_add(size_of::<T>())?)?;
    // SAFETY: so many bytes are there, and `Plain` says that any are a value.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
