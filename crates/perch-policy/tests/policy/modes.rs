// SPDX-License-Identifier: GPL-2.0-or-later
//! Modes and eras as words: what is printed reads back, and what is refused says why.

use perch_policy::{ERAS, Era, Layout, Mechanism, Mode, Modes, Policy, Reason};

#[test]
fn modes_read_back() {
    for mode in Mode::ALL {
        assert_eq!(mode.to_string().parse(), Ok(mode));
        let modes = Modes {
            cluster: mode,
            capacity: Mode::Posted,
            cache: Mode::Upstream,
            overload: Mode::Perch,
            steer: mode,
            behind: Mode::Perch,
            spread: Mode::Perch,
            sched_idle: Mode::Perch,
            layout: Some(Layout::ALL[mode as usize]),
        };
        assert_eq!(modes.to_string().parse(), Ok(modes));
        let policy = Policy::new(Era::V6_5, modes);
        assert_eq!((policy.modes(), policy.cluster_on()), (modes, mode != Mode::Off));
    }
}

#[test]
fn every_mechanism_can_be_set_and_is_listed() {
    for mechanism in Mechanism::ALL {
        for &mode in mechanism.modes().iter().filter(|mode| **mode != Mode::Off) {
            let mut modes = Modes::default();
            modes.set(mechanism.name(), mode).expect("a mode of its own");
            let set: Vec<_> = modes.iter().filter(|(_, mode)| *mode != Mode::Off).collect();
            assert_eq!(set, [(mechanism, mode)]);
            assert_eq!(modes[mechanism], mode);
        }
    }
    assert_eq!(Modes::default().iter().count(), Mechanism::ALL.len());
    assert!(Modes::default().iter().all(|(_, mode)| mode == Mode::Off));
}

#[test]
fn eras_read_back() {
    for (name, era) in ERAS {
        assert_eq!((era.to_string().as_str(), name.parse()), (name, Ok(era)));
        assert_eq!(Policy::new(era, Modes::default()).era(), era);
    }
    for era in ["3.19", "4.9", "4.20", "6.0", "6.6", "6.12", "7.1"] {
        assert_eq!(era.parse::<Era>().expect(era).to_string(), era);
    }
    let era = |name: &str| name.parse::<Era>().expect(name);
    assert!(era("6.9") < era("6.12") && era("6.19") < era("7.0"));
}

#[test]
fn error_about_an_era_names_the_value_and_the_range() {
    for (era, rest) in [
        ("3.3", "this version has 3.4 to 7.2"),
        ("7.3", "this version has 3.4 to 7.2"),
        ("6.20", "the last Linux 6 was 6.19"),
        ("6", "expected a release of Linux from 3.4 to 7.2, such as 6.12"),
        ("6.12.1", "expected a release of Linux from 3.4 to 7.2, such as 6.12"),
        ("6.05", "expected a release of Linux from 3.4 to 7.2, such as 6.12"),
        ("+6.5", "expected a release of Linux from 3.4 to 7.2, such as 6.12"),
        ("6.999", "expected a release of Linux from 3.4 to 7.2, such as 6.12"),
    ] {
        let error = era.parse::<Era>().expect_err(era).to_string();
        assert_eq!(error, format!("unknown era \"{era}\": {rest}"));
    }
}

#[test]
fn kernels_beyond_the_eras_have_the_nearest() {
    for (release, era) in [((3, 2), "3.4"), ((6, 12), "6.12"), ((6, 40), "6.19"), ((300, 0), "7.2")]
    {
        assert_eq!(Era::nearest(release.0, release.1).to_string(), era);
    }
}

#[test]
fn what_an_era_has_not_is_refused_by_its_key() {
    let check = |era: Era, words: &str| era.check(&words.parse().expect(words));
    for (mechanism, mode) in
        Mechanism::ALL.into_iter().flat_map(|m| m.modes().iter().map(move |&mode| (m, mode)))
    {
        let words = format!("{mechanism}={mode}");
        for (_, era) in ERAS {
            let fits = mechanism.era() <= era.release() || mode == Mode::Off;
            assert_eq!(check(era, &words).is_ok(), fits, "{era} {words}");
        }
    }
    for words in ["capacity=perch", "overload-layout=node"] {
        let (name, _) = words.split_once('=').expect("a key");
        let error = check(Era::V3_4, &format!("steer=perch,{words}")).expect_err(words);
        assert_eq!(
            error.to_string(),
            format!(
                "{words} does nothing in era 3.4, of which steer alone is modelled: leave {name} \
                 out, or choose era 5.5 or a later one"
            )
        );
    }
}

const REFUSED: &str = r#"
warp=perch: unknown mechanism "warp": this version has cluster, capacity, cache, overload, steer, behind, spread, sched_idle
cluster=on: unknown mode "on": expected off, posted, upstream or perch
overload=perch,overload-layout=core: unknown layout of overload counters "core": expected shared, node, node-padded or llc-padded
cluster=off,cluster=perch: mechanism "cluster" is set twice in "cluster=off,cluster=perch"
cluster: "cluster" names no mechanism and mode: expected MECHANISM=MODE, for example cluster=perch
: "" names no mechanism and mode: expected MECHANISM=MODE, for example cluster=perch
cluster=off,: "" names no mechanism and mode: expected MECHANISM=MODE, for example cluster=perch
"#;

#[test]
fn what_is_no_mode_is_named_beside_the_known() {
    for row in REFUSED.lines().skip(1) {
        let (words, message) = row.split_once(": ").expect("a message");
        assert_eq!(words.parse::<Modes>().expect_err(row).to_string(), message);
    }
    let message = "Perch".parse::<Mode>().expect_err("capital").to_string();
    assert_eq!(message, "unknown mode \"Perch\": expected off, posted, upstream or perch");
}

#[test]
fn a_layout_is_the_modes_own_unless_told_otherwise() {
    for (words, layout) in [
        ("cluster=perch", Layout::Shared),
        ("overload=upstream", Layout::Shared),
        ("overload=posted", Layout::Node),
        ("overload=perch", Layout::NodePadded),
        ("overload=perch,overload-layout=llc-padded", Layout::LlcPadded),
        ("overload-layout=node", Layout::Node),
    ] {
        let modes: Modes = words.parse().expect(words);
        assert_eq!(modes.overload_layout(), layout, "{words}");
        assert_eq!(modes.to_string().parse(), Ok(modes));
    }
}

#[test]
fn reasons_have_names_of_their_own() {
    let mut names: Vec<&str> = Reason::ALL.iter().map(|r| r.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Reason::ALL.len());
}
