// SPDX-License-Identifier: GPL-2.0-or-later
//! The agreement of the model with the kernel: the total, the forced choices apart, and the reason
//! that agrees least often.

use perch_policy::Era;
use perch_record::{Agreement, ENOUGH, Tally};
use schemars::JsonSchema;
use serde::Serialize;

/// `part` of `whole` as a percentage.
pub fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_string(),
        _ => format!("{:.2} %", 100.0 * part as f64 / whole as f64),
    }
}

/// The share of choices that agree, to a tenth of a percent; 100.0 % only where all do.
fn tenths(part: &Agreement) -> String {
    let percent = 100.0 * part.same() as f64 / part.asked as f64;
    match part.asked {
        0 => "-".to_string(),
        _ if part.differ == 0 => "100.0 %".to_string(),
        _ => format!("{:.1} %", percent.min(99.9)),
    }
}

/// Returns the agreement in lines: the total first, then what it is made of.
pub fn lines(era: Era, model: &Tally) -> String {
    let summary = model.summary();
    let total = summary.total;
    let mut out = format!(
        "the model of {era} chooses as the kernel did in {} of {}: {}\n",
        total.same(),
        total.asked,
        share(total.same(), total.asked)
    );
    let mut to_win = Agreement::default();
    for [_, idle] in &model.by_reason {
        to_win.add(idle);
    }
    for (name, part) in [
        ("forced, one CPU possible", summary.forced),
        ("not forced", summary.unforced()),
        ("with an idle CPU to win", to_win),
    ] {
        let (same, asked) = (part.same(), part.asked);
        out += &format!("  {name}: in {same} of {asked}, {}\n", share(same, asked));
    }
    out += &match summary.worst {
        Some((reason, part)) => format!(
            "  worst: {} {} of {} ({})\n",
            reason.name(),
            part.same(),
            part.asked,
            tenths(&part)
        ),
        None => format!("  worst: -, no reason has {ENOUGH} choices that were not forced\n"),
    };
    out
}

/// The agreement as JSON.
#[derive(Serialize, JsonSchema)]
pub struct Json {
    /// All choices.
    total: Part,
    /// Those for which one CPU was possible.
    forced: Part,
    /// All others.
    unforced: Part,
    /// The reason that agrees least often; null where no reason has enough choices.
    worst: Option<Worst>,
    /// The number of choices that a reason needs to be the worst.
    worst_at_least: u64,
}

/// The agreement about some of the choices.
#[derive(Serialize, JsonSchema)]
struct Part {
    /// The choices.
    wake_ups: u64,
    /// Those that are the kernel's.
    same: u64,
    /// Their share, 0 to 1; null where there are no wake-ups.
    share: Option<f64>,
}

/// The agreement about one reason.
#[derive(Serialize, JsonSchema)]
struct Worst {
    /// The reason.
    reason: &'static str,
    #[serde(flatten)]
    part: Part,
}

impl Part {
    fn of(part: &Agreement) -> Part {
        Part {
            wake_ups: part.asked,
            same: part.same(),
            share: (part.asked > 0).then(|| part.same() as f64 / part.asked as f64),
        }
    }
}

/// Returns the agreement as JSON.
pub fn json(model: &Tally) -> Json {
    let summary = model.summary();
    Json {
        total: Part::of(&summary.total),
        forced: Part::of(&summary.forced),
        unforced: Part::of(&summary.unforced()),
        worst: summary.worst.map(|(reason, part)| Worst {
            reason: reason.name(),
            part: Part::of(&part),
        }),
        worst_at_least: ENOUGH,
    }
}

#[cfg(test)]
mod tests {
    use perch_policy::Reason;

    use super::*;

    /// A tally with these choices, none of them forced.
    fn tally(parts: &[(Reason, u64, u64)]) -> Tally {
        let mut tally = Tally::default();
        for &(reason, asked, differ) in parts {
            tally.asked += asked;
            tally.same += asked - differ;
            tally.by_reason[reason as usize][1] = Agreement {
                asked,
                differ,
                unexplained: 0,
            };
        }
        tally
    }

    #[test]
    fn worst_reason_stands_below_the_total() {
        let mut tally = tally(&[
            (Reason::TargetIdle, 9_850, 4),
            (Reason::SlowPath, 150, 30),
            (Reason::LlcScan, 20, 20),
        ]);
        tally.by_reason[Reason::Affinity as usize][0].asked = 80;
        tally.forced[Reason::Affinity as usize].asked = 80;
        let text = lines(Era::V7_2, &tally);
        assert_eq!(
            text,
            "the model of 7.2 chooses as the kernel did in 10046 of 10100: 99.47 %\n\
             \x20 forced, one CPU possible: in 80 of 80, 100.00 %\n\
             \x20 not forced: in 9966 of 10020, 99.46 %\n\
             \x20 with an idle CPU to win: in 9966 of 10020, 99.46 %\n\
             \x20 worst: slow path 120 of 150 (80.0 %)\n"
        );
        let json = serde_json::to_value(json(&tally)).expect("JSON");
        let worst = serde_json::json!(
            {"reason": "slow path", "wake_ups": 150, "same": 120, "share": 0.8}
        );
        assert_eq!(json["worst"], worst);
        assert_eq!(json["worst_at_least"], 30);
        let forced = serde_json::json!({"wake_ups": 80, "same": 80, "share": 1.0});
        assert_eq!(json["forced"], forced);
    }

    #[test]
    fn agreement_over_nothing_is_a_dash() {
        let text = lines(Era::V7_2, &Tally::default());
        assert!(text.contains("in 0 of 0: -\n"), "{text}");
        assert_eq!(text.matches("in 0 of 0, -\n").count(), 3, "{text}");
        assert!(text.contains("  worst: -, no reason has 30"), "{text}");
        let json = serde_json::to_value(json(&Tally::default())).expect("JSON");
        assert_eq!(json["worst"], serde_json::Value::Null);
        for part in ["total", "forced", "unforced"] {
            assert_eq!(json[part]["share"], serde_json::Value::Null, "{part}");
        }
        assert_eq!(tenths(&Agreement::default()), "-");
    }

    #[test]
    fn few_choices_of_each_reason_have_no_worst() {
        let few = tally(&[(Reason::SlowPath, 29, 20), (Reason::LlcScan, 29, 0)]);
        let text = lines(Era::V7_2, &few);
        assert!(
            text.ends_with("  worst: -, no reason has 30 choices that were not forced\n"),
            "{text}"
        );
        let enough = tally(&[(Reason::SlowPath, 30, 20)]);
        let text = lines(Era::V7_2, &enough);
        assert!(text.ends_with("slow path 10 of 30 (33.3 %)\n"), "{text}");
    }

    #[test]
    fn one_difference_in_many_is_not_rounded_away() {
        let text = lines(Era::V7_2, &tally(&[(Reason::LlcScan, 100_000, 1)]));
        assert!(text.ends_with("99999 of 100000 (99.9 %)\n"), "{text}");
        let text = lines(Era::V7_2, &tally(&[(Reason::LlcScan, 100_000, 0)]));
        assert!(text.ends_with("100000 of 100000 (100.0 %)\n"), "{text}");
    }
}
