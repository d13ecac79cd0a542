// SPDX-License-Identifier: GPL-2.0-or-later
//! Memory for counters as the kernel's allocator hands it out: small objects of one size lie side
//! by side in pages of one node, so that an unpadded counter shares its line with the objects
//! allocated before and after it.

use std::collections::BTreeMap;
use std::ptr::{NonNull, null_mut};

use perch_policy::Memory;

use super::places::on_cpu;

/// The bytes that are taken from the system at once, which is also the largest block. It is a
/// multiple of every page size.
const REGION: usize = 1 << 20;
/// The smallest object of kmalloc().
const SMALLEST: usize = 8;
/// An object of this size shares no line with another.
const APART: usize = 256;

/// The blocks of all nodes. A block that is given back is not used again; all memory is freed
/// together at the end.
pub struct Slabs {
    /// A CPU of each node.
    cpus: Vec<usize>,
    /// The region for a node's CPU and a size of objects, with the number of its bytes in use.
    regions: BTreeMap<(usize, usize), (Region, usize)>,
    full: Vec<Region>,
    /// True when the next block must share its line with no other.
    apart: bool,
}

impl Slabs {
    /// The slabs of a machine on whose nodes these CPUs are, one of each node. Nodes with the same
    /// CPU share their slabs.
    pub fn new(cpus: Vec<usize>) -> Slabs {
        Slabs {
            cpus,
            regions: BTreeMap::new(),
            full: Vec::new(),
            apart: false,
        }
    }

    /// Puts the first block, the table of the counters, on lines of its own. In the kernel a single
    /// counter is a field of the root domain, and no table shares its line.
    pub fn table_apart(mut self) -> Slabs {
        self.apart = true;
        self
    }
}

// SAFETY: a block is cut off a region that is mapped as long as `self` lives, at a multiple of its
// size, a power of two at least `align`; none is handed out twice.
unsafe impl Memory for Slabs {
    fn alloc(&mut self, bytes: usize, align: usize, node: usize) -> *mut u8 {
        let least = match std::mem::take(&mut self.apart) {
            true => APART,
            false => SMALLEST,
        };
        let size = bytes.max(align).max(least).next_power_of_two();
        let Some(&cpu) = self.cpus.get(node).filter(|_| size <= REGION) else {
            return null_mut();
        };
        let room = self.regions.get(&(cpu, size));
        if room.is_none_or(|(_, taken)| taken + size > REGION) {
            let Some(region) = Region::on(cpu) else {
                return null_mut();
            };
            let before = self.regions.insert((cpu, size), (region, 0));
            self.full.extend(before.map(|(region, _)| region));
        }
        let (region, taken) = self.regions.get_mut(&(cpu, size)).expect("it has room");
        // SAFETY: `taken + size` is within the region.
        let block = unsafe { region.at.as_ptr().add(*taken) };
        *taken += size;
        block
    }

    unsafe fn free(&mut self, _block: *mut u8, _bytes: usize, _align: usize) {}
}

/// Pages of one node, all zero.
struct Region {
    at: NonNull<u8>,
}

// SAFETY: no other value points to this memory, so any thread may own it.
unsafe impl Send for Region {}
// SAFETY: a shared reference to a region allows no writes.
unsafe impl Sync for Region {}

impl Region {
    /// Fresh pages, which a thread on this CPU touches first: the kernel takes a page from the node
    /// of the CPU that touches it first, unless a memory policy (numactl) names another.
    fn on(cpu: usize) -> Option<Region> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new mapping, of no file.
        let at = unsafe { libc::mmap(null_mut(), REGION, access, kind, -1, 0) };
        let region = Region {
            at: NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED)?,
        };
        // A huge page may span the regions of several nodes, so none is asked for. A kernel
        // without huge pages refuses the call, which is harmless.
        // SAFETY: the mapping is ours.
        unsafe { libc::madvise(at, REGION, libc::MADV_NOHUGEPAGE) };
        on_cpu(cpu, || region.touch()).ok().map(|()| region)
    }

    /// Writes to each page; no other thread has the address yet.
    fn touch(&self) {
        for page in (0..REGION).step_by(4096) {
            // SAFETY: within the mapping.
            unsafe { self.at.as_ptr().add(page).write_volatile(0) };
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by `on`, with this length, and unmapped here only.
        unsafe { libc::munmap(self.at.as_ptr().cast(), REGION) };
    }
}

/// The kernel's number of the node that has the page at `block`; `None` where the kernel does not
/// tell.
pub fn node_of(block: *mut u8) -> Option<usize> {
    /// The node of an address (linux/mempolicy.h).
    const MPOL_F_NODE: libc::c_ulong = 1;
    const MPOL_F_ADDR: libc::c_ulong = 2;
    let mut node: libc::c_int = -1;
    // SAFETY: with these flags the system call writes one int and reads no mask.
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut node,
            null_mut::<libc::c_ulong>(),
            0 as libc::c_ulong,
            block,
            MPOL_F_NODE | MPOL_F_ADDR,
        )
    };
    (result == 0).then(|| usize::try_from(node).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::places::allowed;
    use super::*;

    #[test]
    fn small_blocks_of_a_node_share_a_line_and_padded_ones_none() {
        let cpus = allowed().unwrap();
        let mut slabs = Slabs::new(vec![cpus[0], *cpus.last().unwrap(), cpus[0]]);
        let at = |slabs: &mut Slabs, bytes, node| slabs.alloc(bytes, bytes, node) as usize;
        let small = [0, 0, 0].map(|node| at(&mut slabs, 8, node));
        assert_eq!([small[1], small[2]], [small[0] + 8, small[0] + 16]);
        assert_eq!(small[0] / 64, small[2] / 64, "one line");
        let other = at(&mut slabs, 8, 1);
        if cpus.len() > 1 {
            assert_ne!(small[0] / 4096, other / 4096, "a page of another node");
        }
        let same = at(&mut slabs, 8, 2);
        assert_eq!(same / 64, small[0] / 64, "a node by another name");
        let mut slabs = slabs.table_apart();
        let [table, counter] = [0, 0].map(|node| at(&mut slabs, 8, node));
        assert_ne!(table / 128, counter / 128);
        let padded = [0, 0].map(|node| at(&mut slabs, 128, node));
        assert_eq!(padded.map(|at| at % 128), [0, 0]);
        assert!(padded[0].abs_diff(padded[1]) >= 128);
        assert_ne!(
            padded[0] / 4096,
            small[0] / 4096,
            "objects of one size a page"
        );
    }

    #[test]
    fn blocks_are_all_zero_and_nobody_elses() {
        let cpu = allowed().unwrap()[0];
        let mut slabs = Slabs::new(vec![cpu]);
        for size in [8, 128, 4096] {
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..REGION / size + 3 {
                let block = slabs.alloc(size, size, 0);
                assert!(seen.insert(block as usize) && block as usize % size == 0);
                // SAFETY: the block is ours, and that long.
                let word = unsafe { &mut *block.cast::<u64>() };
                assert_eq!(std::mem::replace(word, u64::MAX), 0);
            }
        }
        assert!(slabs.alloc(REGION + 1, 8, 0).is_null());
        assert!(slabs.alloc(8, 8, 1).is_null(), "there is no such node");
    }

    #[test]
    fn the_kernel_knows_where_a_page_is() {
        let cpu = allowed().unwrap()[0];
        let block = Slabs::new(vec![cpu]).alloc(8, 8, 0);
        // A kernel without NUMA, or a sandbox, does not tell the node; others give a small number.
        assert!(!block.is_null());
        let mut slabs = Slabs::new(vec![cpu]);
        let node = node_of(slabs.alloc(8, 8, 0));
        assert!(node.is_none_or(|node| node < 1024), "{node:?}");
    }
}
