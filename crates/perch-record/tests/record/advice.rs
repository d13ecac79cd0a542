// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of advice on synthetic recordings: the statements that it must never make, and those that
//! it must make.

use perch_machine::{Machine, library};
use perch_policy::testing::machines;
use perch_policy::{Era, Mechanism, Mode, Modes, Policy, Recording, Topology};
use perch_record::advice::{Advice, Shape, Verdict, advise};
use perch_record::format::Reader;
use perch_record::replay;
use perch_record::synthetic::{Synthetic, synthetic};
use proptest::prelude::*;

fn modes(cluster: Mode, capacity: Mode) -> Modes {
    Modes { cluster, capacity, ..Modes::default() }
}

/// Returns a load whose recording lasts some seconds.
fn load(seed: u64, wake_ups: u64) -> Synthetic {
    Synthetic {
        seed,
        wake_ups,
        every_ns: 5_000_000_000 / wake_ups,
        busy_pct: 70,
        real_time_every: 0,
    }
}

fn recorded(machine: &Machine, policy: Policy, what: Synthetic) -> Vec<u8> {
    let mut file = Vec::new();
    synthetic(&mut file, machine, policy, what).expect("memory");
    file
}

fn advice(file: &[u8], machine: &Machine, model: Policy, jobs: usize) -> Advice {
    let mut reader = Reader::new(file).expect("a recording");
    advise(&mut reader, &Topology::new(machine), model, jobs).expect("a recording")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// A mechanism that cannot act changes nothing in any mode (docs/testing.md#properties, P3), so
    /// the advice may leave such a mechanism out; and a recording of the model itself is explained.
    #[test]
    fn what_cannot_act_changes_nothing(seed: u64, max_cpus in 2..48usize) {
        let machine = machines::random(seed, max_cpus);
        let topology = Topology::new(&machine);
        let shape = Shape::of(&topology);
        let has = modes(Mode::Upstream, Mode::Upstream);
        let model = Policy::new(Era::V7_2, has);
        let file = recorded(&machine, model, load(seed, 300));
        let found = advice(&file, &machine, model, 1);
        prop_assert_eq!(found.asked, 300);
        prop_assert!(found.explained.is_some_and(|share| share.part == 300), "{:?}", found);
        for mechanism in Mechanism::ALL {
            let acts = shape.can_act(mechanism);
            let advised = found.changes.iter().any(|c| c.mechanism == mechanism);
            prop_assert_eq!(advised, acts && mechanism.recording().0 == Recording::Kernel);
            for mode in Mode::ALL.into_iter().filter(|_| !acts) {
                let mut other = has;
                other[mechanism] = mode;
                let other = Policy::new(Era::V7_2, other);
                let mut reader = Reader::new(&file[..]).expect("a recording");
                let outcome = replay(&mut reader, &topology, model, Some(other), 1).expect("a recording");
                let change = outcome.change.expect("asked for");
                prop_assert_eq!(change.same, change.asked, "{}={}, seed {}", mechanism, mode, seed);
            }
        }
    }

    /// Shares, counts and verdicts do not depend on the number of threads; shares lie in their
    /// intervals, and the intervals lie between 0 and 1.
    #[test]
    fn threads_do_not_matter(seed: u64) {
        let machine = library::load("jacobsville").expect("in the library");
        let model = Policy::new(Era::V7_2, modes(Mode::Off, Mode::Off));
        let file = recorded(&machine, model, load(seed, 12_000));
        let (one, three) = (advice(&file, &machine, model, 1), advice(&file, &machine, model, 3));
        prop_assert_eq!(format!("{one:?}"), format!("{three:?}"));
        prop_assert!(!one.changes.is_empty());
        for change in &one.changes {
            let share = change.changed;
            prop_assert!(0.0 <= share.low && share.low <= share.value(), "{:?}", share);
            prop_assert!(share.value() <= share.high && share.high <= 1.0, "{:?}", share);
            for net in [change.near, change.idle, change.fits] {
                prop_assert!(net.gains + net.losses <= 2 * share.part && net.low <= net.high);
            }
        }
    }
}

/// The advice finds the effect that a mechanism was made for: on a machine of clusters whose kernel
/// has no cluster scan, tasks that wake each other land nearer with the scan.
#[test]
fn clusters_are_worth_a_trial_where_the_kernel_has_none() {
    let machine = library::load("kunpeng920").expect("in the library");
    let model = Policy::new(Era::V6_5, modes(Mode::Off, Mode::Upstream));
    let file = recorded(&machine, model, load(1, 6_000));
    let found = advice(&file, &machine, model, 1);
    let posted = (found.changes.iter())
        .find(|c| c.mechanism == Mechanism::Cluster && c.mode == Mode::Posted);
    let posted = posted.expect("it can act");
    assert!(posted.near.low > 0.0, "{posted:?}");
    assert!(matches!(posted.verdict, Verdict::Better | Verdict::Trade), "{posted:?}");
}

/// A model that is wrong about more wake-ups than a mechanism changes gives no advice about it.
#[test]
fn a_wrong_model_says_nothing() {
    let machine = library::load("kunpeng920").expect("in the library");
    let kernel = Policy::new(Era::V6_5, modes(Mode::Off, Mode::Upstream));
    let file = recorded(&machine, kernel, load(1, 6_000));
    // A model with clusters leaves most of the wake-ups that the scan changes unexplained.
    let model = Policy::new(Era::V6_5, modes(Mode::Posted, Mode::Upstream));
    let found = advice(&file, &machine, model, 1);
    let unexplained = 1.0 - found.explained.expect("long enough").value();
    assert!(unexplained > 0.05, "{found:?}");
    for change in &found.changes {
        let small = change.changed.low <= unexplained;
        let unclear = [Verdict::Unclear, Verdict::Unsure, Verdict::Nothing];
        assert!(!small || unclear.contains(&change.verdict), "{change:?}");
    }
}

/// Two seconds of wake-ups are too few for a share.
#[test]
fn a_short_recording_gives_counts_only() {
    let machine = library::load("jacobsville").expect("in the library");
    let model = Policy::new(Era::V7_2, modes(Mode::Upstream, Mode::Upstream));
    let what = Synthetic { every_ns: 100_000, real_time_every: 10, ..load(3, 1_000) };
    let found = advice(&recorded(&machine, model, what), &machine, model, 1);
    assert_eq!((found.asked, found.real_time), (900, 100));
    assert!(found.explained.is_none() && found.changes.is_empty(), "{found:?}");
}
