// SPDX-License-Identifier: GPL-2.0-or-later
//! Gives up root's rights, but for those to load a program.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// What loading needs, now and when a CPU comes or goes; files of others are not among it.
const KEPT: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);

/// Gives up every capability of this thread but those to load programs, in those it starts from
/// then on too, and the way to get them back by another program.
///
/// A kernel that refuses leaves the process as it was, which is no reason not to schedule.
pub(crate) fn give_up() {
    let Ok(had) = capabilities(None) else { return };
    if !had.effective.contains(KEPT) {
        // Loaded by CAP_SYS_ADMIN alone, which may stand for both: it is then what loading needs.
        return;
    }
    // The bounding set first: changing it needs one of the rights that go.
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let _ = set_no_new_privs(true);
    let kept = CapabilitySets {
        effective: KEPT,
        permitted: KEPT,
        inheritable: CapabilitySet::empty(),
    };
    let _ = set_capabilities(None, kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_else_is_left() {
        // In a thread of its own, as capabilities are a thread's.
        let left = std::thread::spawn(|| {
            give_up();
            capabilities(None).unwrap()
        });
        let left = left.join().unwrap();
        let had = capabilities(None).unwrap();
        match had.effective.contains(KEPT) {
            true => assert_eq!((left.effective, left.permitted), (KEPT, KEPT)),
            false => assert_eq!(left, had),
        }
    }
}
