// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of configurations: their meaning, and the configurations that are refused.

use super::table::SETTINGS;
use super::*;
use crate::value::{Micros, Millis, Percent};

fn refusal(text: &str) -> String {
    Settings::from_toml(text, "perch.toml").unwrap_err().to_string()
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(Settings::from_toml("", "x").unwrap(), Settings::default());
}

#[test]
fn every_key_is_read() {
    let text = "modes = \"cluster=posted\"\nslice_us = 5000\nslice_min_us = 700\n\
                lag_us = 6000\npreempt_us = 900\nbehind_us = 7\nbalance_ms = 8\nsteal_remote_us = 0\n\
                processes = 50\nband_percent = 80\nband_period_ms = 50\ngroups = 7\nsplit_llc = 2\n\
                detail = true\nwaits = true\ngroup_waits = true\n";
    let settings = Settings::from_toml(text, "x").unwrap();
    assert_eq!(settings.modes, [("cluster", Mode::Posted)]);
    let expected = Tuning {
        slice_us: Micros(5000),
        slice_min_us: Micros(700),
        lag_us: Micros(6000),
        preempt_us: Micros(900),
        behind_us: Micros(7),
        balance_ms: Millis(8),
        steal_remote_us: Micros(0),
        processes: 50,
        band_percent: Percent(80),
        band_period_ms: Millis(50),
        groups: Some(7),
        split_llc: 2,
        detail: true,
        waits: true,
        group_waits: true,
    };
    assert_eq!(settings.tuning(), expected);
    assert_eq!(settings.asked.len(), SETTINGS.len());
}

/// Files, and what refuses each, or its beginning: the line, the key, and what was expected.
const REFUSED: &str = r#"
detail = true\nslice = 3 | 2: unknown key "slice": expected modes, slice_us, …
\n\nslice_us = 50 | 3: slice_us: 50: expected 100 to 1000000
slice_us = 500\nslice_min_us = 501 | 2: slice_min_us: 501: expected 10 to 500
modes = "cluster=on" | 1: modes: unknown mode "on"…
processes = 0 | 1: processes: 0: expected 1 to 65536
balance_ms = 0 | 1: balance_ms: 0: expected 1 to 1000
band_percent = 0 | 1: band_percent: 0: expected 1 to 99
lag_us = -1 | 1: lag_us: -1: expected 100 to 1000000…
lag_us = "1" | 1: lag_us: "1": expected a whole number, 100 to 1000000…
lag_us = 500.5 | 1: lag_us: 500.5: expected a whole number, 100 to 1000000…
lag_us = [500] | 1: lag_us: a list: expected a whole number, …
lag_us = 1\nlag_us = 2 | 2: …
lag_us = | 1: …
detail = 1 | 1: detail: 1: expected true or false…
groups = true | 1: groups: true: expected a whole number, 0 to 65536…
modes = 3 | 1: modes: 3: expected a text in quotation marks, for example "cluster=perch"…
band = 3 | 1: band: 3: expected tables, each below a line [[band]]…
band = [3] | 1: band: 3: expected tables, each below a line…
[band]\nnice = 3 | 1: band: a table: expected tables, each…
BAND priority = 0 | 3: band: priority: 0: expected 1 to 99
BAND | 1: band: no priority: …
BAND prio = 3 | 3: band: unknown key "prio": expected comm, cgroup, nice, user, priority, policy or slice_ms
BAND priority = "high" | 3: band: priority: "high": expected a whole number, 1 to 99
BAND priority = 3\npolicy = "fifo"\nslice_ms = 5 | 5: band: slice_ms: the task that is first in goes on: expected policy = "rr" with it
partial = 3 | 1: partial: 3: expected tables, each below a line [[partial]]…
[[partial]] | 1: partial: it names no tasks: expected comm, cgroup or user…
[[partial]]\nnice = 3 | 2: partial: unknown key "nice": expected comm, …
[[partial]]\ncgroup = "web" | 2: partial: cgroup: "web": expected a cgroup's…
[[partial]]\ncgroup = 3 | 2: partial: cgroup: 3: expected a text in quotation…
[[partial]]\nuser = -1 | 2: partial: user: -1: expected a user's name…
[[partial]]\nuser = true | 2: partial: user: true: expected a user's name…
"#;

#[test]
fn refusals_name_the_line_and_what_was_expected() {
    for row in REFUSED.lines().skip(1) {
        let (text, said) = row.split_once(" | ").unwrap();
        let text = text.replace("BAND", "[[band]]\ncomm = \"a\"\\n").replace("\\n", "\n");
        let message = refusal(&format!("{text}\n"));
        let message = message.strip_prefix("perch.toml:").unwrap_or_else(|| panic!("{row}"));
        match said.strip_suffix('…') {
            Some(said) => assert!(message.starts_with(said), "{row}: {message}"),
            None => assert_eq!(message, said, "{row}"),
        }
    }
    let message = refusal("slice = 3\n");
    assert!(message.contains("perch run --help"), "{message}");
    let many = "[[band]]\ncomm = \"a\"\npriority = 1\n".repeat(17);
    assert_eq!(refusal(&many), "perch.toml:49: band: too many of them: expected at most 16");
}

#[test]
fn bands_are_read() {
    let text = "[[band]]\ncomm = \"ffmpeg*\"\npriority = 50\n\n\
                [[band]]\ncgroup = \"/rt\"\nnice = -5\npriority = 7\npolicy = \"rr\"\n";
    let settings = Settings::from_toml(text, "x").unwrap();
    let shown: Vec<_> = settings.bands().iter().map(Band::to_string).collect();
    assert_eq!(shown, ["comm=ffmpeg*,priority=50", "cgroup=/rt,nice=-5,priority=7,slice_ms=100"]);
}

#[test]
fn rules_of_some_tasks_are_read() {
    let text = "[[partial]]\ncgroup = \"/web\"\n[[partial]]\ncomm = \"n*\"\nuser = 33\n";
    let mut settings = Settings::from_toml(text, "x").unwrap();
    assert_eq!(settings.partial_in_words(), "cgroup=/web; comm=n*,user=33");
    settings.add_partial("user=root".parse().unwrap());
    assert_eq!(settings.partial().len(), 3);
    assert_eq!(Settings::default().partial_in_words(), "");
}

#[test]
fn overload_needs_a_band() {
    let topology = Topology::new(&perch_machine::resolve("x5570").unwrap());
    let mut settings = Settings::default();
    settings.set("overload=posted,overload-layout=llc-padded").unwrap();
    let (modes, notes) = settings.modes_for(&topology);
    assert_eq!((modes.overload, modes.layout), (Mode::Off, None));
    assert!(notes.iter().any(|note| note.starts_with("overload stays off: ")));
    settings.add_band("nice=-20,priority=1".parse().unwrap()).unwrap();
    let (modes, _) = settings.modes_for(&topology);
    assert_eq!(modes.overload, Mode::Posted);
    assert_eq!(modes.overload_layout(), Layout::LlcPadded);
}

/// The meaning of one setting in a file and in `--set`; both agree on it, or both refuse the
/// setting.
fn both_ways(name: &str, value: &str) -> Result<Tuning, String> {
    let file = Settings::from_toml(&format!("{name} = {value}\n"), "f").map(|s| s.tuning());
    let mut settings = Settings::default();
    let set = settings.set(&format!("{name}={value}"));
    let set = set.map(|()| settings.tuning());
    match (file, set) {
        (Ok(file), Ok(set)) if file == set => Ok(file),
        (Err(file), Err(set)) => {
            let (file, set) = (file.to_string(), set.to_string());
            let why = file.strip_prefix("f:1: ").expect("the file's line");
            // A value without quotation marks in a file is a word on the command line.
            assert_eq!(set.replace('"', ""), format!("--set: {why}"));
            Err(why.to_string())
        }
        other => panic!("{name} = {value}: {other:?}"),
    }
}

#[test]
fn a_file_and_the_command_line_have_the_same_bounds() {
    let default = Tuning::default();
    for setting in SETTINGS {
        let name = setting.name;
        if setting.is_switch() {
            both_ways(name, "true").unwrap();
            both_ways(name, "2").unwrap_err();
            continue;
        }
        let (least, most) = (setting.range.least, setting.most(&default));
        for value in [least, most] {
            both_ways(name, &value.to_string()).unwrap();
        }
        for value in [least as i64 - 1, most as i64 + 1] {
            let why = both_ways(name, &value.to_string()).unwrap_err();
            assert_eq!(why, format!("{name}: {value}: expected {least} to {most}"));
        }
    }
}

#[test]
fn every_default_may_be_asked_for() {
    let mut settings = Settings::default();
    for setting in SETTINGS {
        let pair = format!("{}={}", setting.name, setting.default(|n| n.to_string()));
        settings.set(&pair).unwrap();
    }
    let (groups, _) = DEFAULT_GROUPS;
    let expected = Tuning { groups: Some(groups), ..Tuning::default() };
    assert_eq!(settings.tuning(), expected);
}

#[test]
fn modes_and_settings_go_together_on_the_command_line() {
    let mut settings = Settings::from_toml("balance_ms = 8\nlag_us = 700", "x").unwrap();
    // A slice later on bounds the least of an earlier one: all are there before any is looked at.
    settings.set_all(&["slice_min_us=7000,cluster=off,balance_ms=9", "slice_us=8000"]).unwrap();
    let tuning = settings.tuning();
    assert_eq!(settings.modes, [("cluster", Mode::Off)]);
    assert_eq!(tuning.slice_min_us, Micros(7_000));
    assert_eq!((tuning.balance_ms, tuning.lag_us), (Millis(9), Micros(700)));
    settings.set_all(&["lag_us=800", "lag_us=900"]).unwrap();
    assert_eq!(settings.tuning().lag_us, Micros(900));
    settings.set("slice_us=500").unwrap();
    assert_eq!(settings.tuning().slice_min_us, Micros(500));
    let mut refused = |text: &str| settings.set(text).unwrap_err().to_string();
    assert_eq!(refused("lag_us=500,lag_us=600"), "--set: lag_us is set twice: expected it once");
    assert_eq!(
        refused("cluster=perch,lag=500"),
        "--set: unknown mechanism or setting \"lag\": expected cluster, capacity, cache, overload, \
         steer, behind, spread, sched_idle, slice_us, slice_min_us, lag_us, preempt_us, behind_us, balance_ms, \
         steal_remote_us, processes, groups, band_percent, band_period_ms, split_llc, detail, waits, group_waits; perch run --help describes them"
    );
    assert_eq!(
        refused("lag_us=1s"),
        "--set: lag_us: \"1s\": expected a whole number, 100 to 1000000"
    );
    assert!(refused("overload-layout=x").starts_with("unknown layout of overload counters \"x\""));
    assert!(refused("cluster=on").starts_with("unknown mode \"on\""));
}

#[test]
fn a_setting_without_what_it_needs_is_told() {
    let topology = |name: &str| Topology::new(&perch_machine::resolve(name).unwrap());
    let all = "processes=9,steal_remote_us=9,band_percent=9,detail=true,lag_us=900";
    let said = |machine: &str, settings: &Settings| {
        let topology = topology(machine);
        settings.without_effect(&topology, settings.modes_for(&topology).0)
    };
    let mut settings = Settings::default();
    assert!(said("pixel3", &settings).is_empty());
    settings.set(all).unwrap();
    assert_eq!(
        said("pixel3", &settings),
        [
            "steal_remote_us does nothing: this machine has one NUMA node",
            "processes does nothing: the mechanism cache is off",
            "band_percent does nothing: no tasks are in the real-time band ([[band]] or --band)",
            "detail does nothing: this machine has no clusters",
        ]
    );
    settings.add_band("nice=-20,priority=1".parse().unwrap()).unwrap();
    assert!(said("kunpeng920", &settings).is_empty());
}

#[test]
fn the_help_is_a_file_with_the_defaults() {
    let help = help();
    let parts: Vec<&str> = help.split("\n\n").collect();
    let [settings, band, partial] = parts[..] else {
        panic!("settings, the band, and only some tasks: {help}");
    };
    // A key with its value up to three spaces; lines that are indented further go on with a text.
    let file = |text: &str| {
        let keys = text.lines().filter(|line| {
            let pair = line.trim_start();
            line.len() - pair.len() == 2
        });
        let pairs = keys.map(|line| line.trim().split("   ").next().unwrap_or(""));
        pairs.map(|pair| format!("{pair}\n")).collect::<String>()
    };
    let keys = file(settings);
    assert_eq!(keys.lines().count(), 1 + SETTINGS.len(), "{keys}");
    let read = Settings::from_toml(&keys, "help").expect("the help is a file");
    let (groups, _) = DEFAULT_GROUPS;
    let expected = Tuning { groups: Some(groups), ..Tuning::default() };
    assert_eq!(read.tuning(), expected);
    let read = Settings::from_toml(&file(band), "help").expect("so is this");
    assert_eq!(
        read.bands()[0].to_string(),
        "comm=ffmpeg*,cgroup=/rt,nice=-20,user=audio,priority=50,slice_ms=100"
    );
    let read = Settings::from_toml(&file(partial), "help").expect("and this");
    assert_eq!(read.partial_in_words(), "comm=nginx*,cgroup=/web,user=www-data");
    for line in help.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
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
    // Of 32 CPUs, and of 8.
    assert_eq!(settings.modes_for(&clustered).0.cache, Mode::Perch);
    assert_eq!(settings.modes_for(&flat).0.cache, Mode::Upstream);
    assert_eq!(settings.modes_for(&flat).0.spread, Mode::Perch);
    assert_eq!(settings.modes_for(&single).0.cache, Mode::Off);
    for topology in [&clustered, &flat, &single] {
        for (mechanism, mode) in settings.modes_for(topology).0.iter() {
            assert!(mechanism.modes().contains(&mode), "{mechanism}={mode}");
        }
    }
    let said = |settings: &Settings| {
        let notes = settings.modes_for(&single).1;
        notes.iter().filter(|note| note.starts_with("cache stays off: ")).count()
    };
    assert_eq!(said(&settings), 0);
    settings.set("cache=posted").unwrap();
    assert_eq!(settings.modes_for(&flat).0.cache, Mode::Posted);
    assert_eq!((settings.modes_for(&single).0.cache, said(&settings)), (Mode::Off, 1));
}

#[test]
fn bands_that_any_user_may_join_are_said() {
    let mut settings = Settings::default();
    for rule in [
        "comm=rt*,priority=50",
        "nice=0,priority=2",
        "comm=rt*,nice=-5,priority=5",
        "cgroup=/rt,priority=20",
        "comm=rt*,user=audio,priority=20",
    ] {
        settings.add_band(rule.parse().unwrap()).unwrap();
    }
    let said = settings.open_bands();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("band comm=rt*,priority=50: tasks of any user may join"));
}
