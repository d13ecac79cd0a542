// SPDX-License-Identifier: GPL-2.0-or-later
//! What a configuration says, and what is refused.

use super::*;

fn refusal(text: &str) -> String {
    Settings::from_toml(text, "perch.toml")
        .unwrap_err()
        .to_string()
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(Settings::from_toml("", "x").unwrap(), Settings::default());
}

#[test]
fn every_key_is_read() {
    let text = "modes = \"cluster=posted\"\nslice_us = 5000\nslice_min_us = 700\n\
                lag_us = 6000\npreempt_us = 900\nbalance_ms = 8\nsteal_remote_us = 0\n\
                processes = 50\nband_percent = 80\nband_period_ms = 50\ngroups = 7\ndetail = true\n";
    let settings = Settings::from_toml(text, "x").unwrap();
    assert_eq!(settings.modes, [("cluster", Mode::Posted)]);
    let expected = Tuning {
        slice_us: 5000,
        slice_min_us: 700,
        lag_us: 6000,
        preempt_us: 900,
        balance_ms: 8,
        steal_remote_us: 0,
        processes: 50,
        band_percent: 80,
        band_period_ms: 50,
        groups: Some(7),
        detail: true,
    };
    assert_eq!(settings.tuning, expected);
}

#[test]
fn refusals_name_the_line_and_what_was_expected() {
    let message = refusal("detail = true\nslice = 3\n");
    assert!(
        message.starts_with("perch.toml:2: unknown field `slice`"),
        "{message}"
    );
    assert!(message.contains("slice_us"), "{message}");
    let message = refusal("\n\nslice_us = 50\n");
    assert_eq!(
        message,
        "perch.toml:3: slice_us: 50: expected 100 to 1000000"
    );
    let message = refusal("slice_us = 500\nslice_min_us = 501\n");
    assert_eq!(
        message,
        "perch.toml:2: slice_min_us: 501: expected 10 to 500"
    );
    let message = refusal("modes = \"cluster=on\"\n");
    assert!(
        message.starts_with("perch.toml:1: modes: unknown mode \"on\""),
        "{message}"
    );
    let message = refusal("processes = 0\n");
    assert_eq!(message, "perch.toml:1: processes: 0: expected 1 to 65536");
    assert!(refusal("lag_us = -1\n").starts_with("perch.toml:1: "));
    assert!(refusal("lag_us = \"1\"\n").starts_with("perch.toml:1: "));
    assert!(refusal("lag_us = 1\nlag_us = 2\n").starts_with("perch.toml:2: "));
    assert!(refusal("lag_us =\n").starts_with("perch.toml:1: "));
}

#[test]
fn bands_are_read_and_refused_with_their_line() {
    let text = "[[band]]\ncomm = \"ffmpeg*\"\npriority = 50\n\n\
                [[band]]\ncgroup = \"/rt\"\nnice = -5\npriority = 7\npolicy = \"rr\"\n";
    let settings = Settings::from_toml(text, "x").unwrap();
    let shown: Vec<_> = settings.bands().iter().map(Band::to_string).collect();
    assert_eq!(
        shown,
        [
            "comm=ffmpeg*,priority=50",
            "cgroup=/rt,nice=-5,priority=7,slice_ms=100"
        ]
    );
    let rule = |last: &str| refusal(&format!("[[band]]\ncomm = \"a\"\n{last}\n"));
    assert_eq!(
        rule("priority = 0"),
        "perch.toml:3: band: priority: 0: expected 1 to 99"
    );
    assert!(rule("").starts_with("perch.toml:1: band: no priority: "));
    assert!(rule("prio = 3").starts_with("perch.toml:3: unknown field `prio`"));
    assert!(rule("priority = \"high\"").starts_with("perch.toml:3: "));
    let message = refusal("band_percent = 0\n");
    assert_eq!(message, "perch.toml:1: band_percent: 0: expected 1 to 99");
    let many = "[[band]]\ncomm = \"a\"\npriority = 1\n".repeat(17);
    assert_eq!(
        refusal(&many),
        "perch.toml:49: band: too many of them: expected at most 16"
    );
}

#[test]
fn overload_needs_a_band() {
    let topology = Topology::new(&perch_machine::resolve("x5570").unwrap());
    let mut settings = Settings::default();
    settings
        .set("overload=posted,overload-layout=llc-padded")
        .unwrap();
    let (modes, notes) = settings.modes_for(&topology);
    assert_eq!((modes.overload, modes.layout), (Mode::Off, None));
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("overload stays off: "))
    );
    settings
        .add_band("nice=-20,priority=1".parse().unwrap())
        .unwrap();
    let (modes, _) = settings.modes_for(&topology);
    assert_eq!(modes.overload, Mode::Posted);
    assert_eq!(modes.overload_layout(), Layout::LlcPadded);
}

#[test]
fn the_last_word_on_a_mechanism_counts() {
    let mut settings = Settings::from_toml("modes = \"cluster=posted\"", "x").unwrap();
    settings.set("cluster=off").unwrap();
    assert_eq!(settings.modes, [("cluster", Mode::Off)]);
    assert!(settings.set("cluster").is_err());
    assert!(settings.set("").is_err());
}

#[test]
fn a_mechanism_without_its_premise_stays_off_and_says_so() {
    let machine = |name| perch_machine::resolve(name).unwrap();
    let flat = Topology::new(&machine("x5570"));
    let clustered = Topology::new(&machine("kunpeng920"));
    let mut settings = Settings::default();
    assert_eq!(settings.modes_for(&clustered).0.cluster, Mode::Perch);
    let (modes, notes) = settings.modes_for(&flat);
    assert_eq!((modes.cluster, notes), (Mode::Off, Vec::new()));
    settings.set("cluster=off").unwrap();
    assert_eq!(settings.modes_for(&clustered).0.cluster, Mode::Off);
    assert_eq!(settings.modes_for(&flat).1.len(), 0);
    settings.set("cluster=upstream").unwrap();
    assert_eq!(settings.modes_for(&clustered).0.cluster, Mode::Upstream);
    let (modes, notes) = settings.modes_for(&flat);
    let note = "cluster stays off: no last-level cache is divided into clusters";
    assert_eq!((modes.cluster, notes), (Mode::Off, vec![note.to_string()]));

    let single = Topology::new(&machine("pixel3"));
    let mut settings = Settings::default();
    assert_eq!(settings.modes_for(&flat).0.cache, Mode::Perch);
    assert_eq!(settings.modes_for(&single).0.cache, Mode::Off);
    let said = |settings: &Settings| {
        let notes = settings.modes_for(&single).1;
        notes
            .iter()
            .filter(|note| note.starts_with("cache stays off: "))
            .count()
    };
    assert_eq!(said(&settings), 0);
    settings.set("cache=posted").unwrap();
    assert_eq!(settings.modes_for(&flat).0.cache, Mode::Posted);
    assert_eq!(
        (settings.modes_for(&single).0.cache, said(&settings)),
        (Mode::Off, 1)
    );
}
