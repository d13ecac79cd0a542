// SPDX-License-Identifier: GPL-2.0-or-later
//! The text of the advice, on a synthetic recording and at the edges.

use perch_machine::library;
use perch_policy::{Era, Mechanism, Mode, Modes, Policy, Topology};
use perch_record::advice::{Advice, Shape, Share, Spread, advise};
use perch_record::format::Reader;
use perch_record::synthetic::{Synthetic, synthetic};

use super::words::{Word, mechanism, percent, range};
use super::{Of, as_json, paragraph, text};

fn found(machine: &str, kernel: Modes, what: Synthetic) -> Advice {
    let machine = library::load(machine).expect("in the library");
    let model = Policy::new(Era::V6_5, kernel);
    let mut file = Vec::new();
    synthetic(&mut file, &machine, model, what).expect("memory");
    let mut reader = Reader::new(&file[..]).expect("a recording");
    advise(&mut reader, &Topology::new(&machine), model, 1).expect("a recording")
}

const LOAD: Synthetic =
    Synthetic { seed: 1, wake_ups: 4_000, every_ns: 1_000_000, busy_pct: 70, real_time_every: 50 };

fn of(cpus: usize) -> Of<'static> {
    Of {
        file: "run.perch",
        machine: "kunpeng920",
        kernel: "6.5.0",
        era: "6.5".to_string(),
        command: "./my-benchmark --long".to_string(),
        cpus,
        lost: Some(7),
    }
}

#[test]
fn it_reads_like_this() {
    let kernel = Modes { capacity: Mode::Upstream, ..Modes::default() };
    let advice = found("kunpeng920", kernel, LOAD);
    insta::assert_snapshot!("table", text(&of(128), &advice));
    let json: serde_json::Value = serde_json::from_str(&as_json(&of(128), &advice)).expect("JSON");
    let cluster = &json["mechanisms"][0];
    assert_eq!(cluster["mechanism"], "cluster");
    assert_eq!(cluster["advice"], mechanism(&advice, Mechanism::Cluster, 128).advice.name());
    assert_eq!(cluster["changes"].as_array().map(Vec::len), Some(3));
    assert_eq!(json["mechanisms"][1]["can_act"], false);
    assert_eq!(json["lost"], 7);
}

#[test]
fn a_short_recording_is_told_to_be_one() {
    let short = Synthetic { wake_ups: 300, ..LOAD };
    let advice = found("jacobsville", Modes::default(), short);
    insta::assert_snapshot!("short", text(&of(24), &advice));
    for name in [Mechanism::Cluster, Mechanism::Steer] {
        assert_eq!(mechanism(&advice, name, 24).advice, Word::CannotTell);
    }
}

/// A mechanism that cannot act gets no advice, whatever the counts.
#[test]
fn what_cannot_act_is_not_advised() {
    let advice = Advice {
        shape: Shape { acts: vec![Mechanism::Steer], asymmetric: false },
        real_time: 1_000_000,
        spread: Some(Spread { threaded: 1000, away: 1000, crowded: 0 }),
        ..found("kunpeng920", Modes::default(), LOAD)
    };
    let others = Mechanism::ALL.into_iter().filter(|m| *m != Mechanism::Steer);
    for name in others {
        assert_eq!(mechanism(&advice, name, 8).advice, Word::CannotAct, "{name}");
    }
}

#[test]
fn processes_that_are_spread_may_be_worth_a_trial() {
    let mut advice = found("kunpeng920", Modes::default(), LOAD);
    let mut word = |away, crowded| {
        advice.spread = Some(Spread { threaded: 2000, away, crowded });
        mechanism(&advice, Mechanism::Cache, 128).advice
    };
    assert_eq!(word(1000, 0), Word::CannotTell);
    assert_eq!(word(1000, 1000), Word::Leave);
    assert_eq!(word(3, 0), Word::Leave);
}

#[test]
fn real_time_is_a_matter_of_rate() {
    let mut advice = found("kunpeng920", Modes::default(), LOAD);
    assert_eq!(mechanism(&advice, Mechanism::Overload, 128).advice, Word::Leave);
    // These are 4 seconds on 128 CPUs; a hundredth of their time is 5.1 s, and each wake-up may
    // take 5.2 us.
    advice.real_time = 1_100_000;
    assert_eq!(mechanism(&advice, Mechanism::Overload, 128).advice, Word::CannotTell);
    advice.real_time = 0;
    assert_eq!(mechanism(&advice, Mechanism::Overload, 128).advice, Word::Leave);
}

#[test]
fn shares_have_the_digits_that_mean_something() {
    let shown = [0.0, 0.00001, 0.0012, 0.034, 0.56, 0.9989, 1.0].map(percent);
    let expected = ["0 %", "<0.01 %", "0.12 %", "3.4 %", "56 %", "99.89 %", "100.00 %"];
    assert_eq!(shown, expected);
    let share = Share { part: 1, of: 10, low: 0.021, high: 0.4 };
    assert_eq!(range(&share), "2.1 to 40");
}

#[test]
fn paragraphs_are_broken_between_words() {
    let text = paragraph(&"word ".repeat(40));
    assert!(text.lines().count() > 2 && text.lines().all(|line| line.len() <= 90));
    assert!(text.lines().skip(1).all(|line| line.starts_with("  w")));
}
