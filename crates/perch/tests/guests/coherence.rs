// SPDX-License-Identifier: GPL-2.0-or-later
//! The cache lines that move between a guest's CPUs.

use perch_lab::Cpus;
use perch_lab::coherence::Slot;
use perch_lab::guest::{Command, Guest};
use perch_machine::Distance;
use perch_machine::moves::LineKind;

use crate::guest::{Place, bare_deterministic, boot, printed, resolve};

/// The slots of the three distances: CPU 1 shares CPU 0's cluster, CPU 2 its LLC, CPU 4 is in
/// another package's node.
const SLOTS: [(u8, Distance); 3] =
    [(1, Distance::Cluster), (2, Distance::Llc), (4, Distance::Package)];

/// Boots 8 CPUs of kunpeng920 and counts a pinned pipe's rounds over each distance. The kernel checks
/// certificates for its first seconds, so the load begins after them.
fn counted() -> Guest {
    let mut setup = bare_deterministic(&resolve("kunpeng920"), Cpus::AtMost(8));
    setup.coherence = true;
    let ping = "perch lab ping --rounds 400 --cpus 0,$cpu --slot $cpu";
    let script = format!("sleep 4; for cpu in 1 2 4; do {ping} || exit 1; done");
    let words = ["/bin/perch", "agent", "watched", "--", "sh", "-c", &script];
    setup.job = Some(Command::new(words));
    let guest = boot(&setup);
    printed(&guest);
    guest
}

/// Moves a round of one kind: over `distance`, and over all distances.
fn moves(slot: &Slot, kind: LineKind, distance: Distance) -> [f64; 2] {
    let all = Distance::ALL.iter().map(|d| slot.moves(kind, *d)).sum();
    [slot.moves(kind, distance), all].map(|count: u64| count as f64 / slot.rounds as f64)
}

/// A pipe's lines move between the two CPUs of its processes and, but for the kernel's own ticks and
/// balancing, between no others. The same lines move over every distance, because the kernel does the
/// same work; a line that is loaded from another CPU is then written, which is an upgrade.
#[test]
#[ignore = "modelled time counts the same lines anyway, for --long"]
fn a_pinned_pipes_lines_move_between_its_two_cpus() {
    let _place = Place::take();
    let guest = counted();
    let (counted, symbols) = guest.counted().unwrap().unwrap();
    let numbers: Vec<u8> = counted.slots.iter().map(|slot| slot.number).collect();
    assert_eq!(numbers, [1, 2, 4]);
    let mut loads = Vec::new();
    for (slot, (_, distance)) in counted.slots.iter().zip(SLOTS) {
        assert_eq!(slot.rounds, 400);
        let [there, all] = moves(slot, LineKind::LoadDirty, distance);
        let [upgrades, _] = moves(slot, LineKind::Upgrade, distance);
        println!("{distance:?}: {there:.2} of {all:.2} dirty loads, {upgrades:.2} upgrades");
        assert!(there >= 0.9 * all, "{distance:?}: {there} of {all}");
        assert!((upgrades / there - 1.0).abs() < 0.05, "{upgrades} of {there}");
        loads.push(there);
        // Both processes work in the kernel, and nearly nothing else does.
        let partner = usize::from(slot.number);
        let all: u64 = slot.instructions.iter().map(|[_, kernel]| kernel).sum();
        let two = slot.instructions[0][1] + slot.instructions[partner][1];
        assert!(two as f64 >= 0.9 * all as f64, "{:?}", slot.instructions);
    }
    let (least, most) = loads
        .iter()
        .fold((f64::MAX, 0.0), |(least, most): (f64, f64), n| (least.min(*n), most.max(*n)));
    assert!(most <= 1.1 * least && least > 10.0, "{loads:?}");
    // The functions by which the kernel does it are among those that move most.
    let slot = &counted.slots[1];
    let moved_by = |name: &str| -> u64 {
        let code = slot.code.iter();
        let of = code.filter(|(at, _)| symbols.find(**at).is_some_and(|(found, _)| found == name));
        of.flat_map(|(_, moved)| moved.values()).sum()
    };
    for name in ["anon_pipe_write", "anon_pipe_read", "try_to_wake_up"] {
        assert!(moved_by(name) > slot.rounds, "{name}: {}", moved_by(name));
    }
}
