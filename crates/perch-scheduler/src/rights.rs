// SPDX-License-Identifier: GPL-2.0-or-later
//! Gives up root's rights, but for those to load a program and, where that is asked for, to change tasks'
//! policies.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// What loading needs, now and when a CPU comes or goes; files of others are not among it.
const KEPT: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);

/// Gives up every capability of this thread but those to load programs, and with `policies` that to
/// change the policies of other users' tasks, in the threads it starts from then on too, and the way to
/// get them back by another program.
///
/// A kernel that refuses leaves the process as it was, which is no reason not to schedule.
pub(crate) fn give_up(policies: bool) {
    let Ok(had) = capabilities(None) else { return };
    if !had.effective.contains(KEPT) {
        // Loaded by CAP_SYS_ADMIN alone, which may stand for both: it is then what loading needs.
        return;
    }
    let kept = match policies {
        // A service manager may have withheld it.
        true => KEPT.union(had.permitted.intersection(CapabilitySet::SYS_NICE)),
        false => KEPT,
    };
    // The bounding set first: changing it needs one of the rights that go.
    for capability in CapabilitySet::all().difference(kept).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let _ = set_no_new_privs(true);
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    let _ = set_capabilities(None, sets);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_else_is_left() {
        for policies in [false, true] {
            // In a thread of its own, as capabilities are a thread's.
            let left = std::thread::spawn(move || {
                give_up(policies);
                capabilities(None).unwrap()
            });
            let left = left.join().unwrap();
            let had = capabilities(None).unwrap();
            let mut kept = KEPT;
            if policies {
                kept |= had.permitted & CapabilitySet::SYS_NICE;
            }
            if had.effective.contains(KEPT) {
                assert_eq!((left.effective, left.permitted), (kept, kept));
            } else {
                assert_eq!(left, had);
            }
        }
    }
}
