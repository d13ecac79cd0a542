// SPDX-License-Identifier: GPL-2.0-or-later
//! The agreement of the model with the kernel: the total, the forced choices apart, and the reason
//! that agrees least often.

use perch_record::{Agreement, ENOUGH, Tally};
use perch_report::share;

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
pub fn lines(era: &str, model: &Tally) -> String {
    let summary = model.summary();
    let total = summary.total;
    let mut out = format!(
        "the model of {era} chooses as the kernel did in {} of {}: {}\n",
        total.same(),
        total.asked,
        share(total.same(), total.asked, 2)
    );
    let to_win = model.by_reason.iter().map(|[_, idle]| idle).sum();
    for (name, part) in [
        ("forced, one CPU possible", summary.forced),
        ("not forced", summary.unforced()),
        ("with an idle CPU to win", to_win),
    ] {
        let (same, asked) = (part.same(), part.asked);
        out += &format!("  {name}: in {same} of {asked}, {}\n", share(same, asked, 2));
    }
    out += &match summary.worst {
        Some(worst) => {
            let of =
                |part: &Agreement| format!("{} of {} ({})", part.same(), part.asked, tenths(part));
            let mut line = format!("  worst: {} {}", worst.reason.name(), of(&worst.choices));
            if worst.unchanged.asked < worst.choices.asked {
                line += &format!(", while nothing changed {}", of(&worst.unchanged));
            }
            line + "\n"
        }
        None => format!("  worst: -, no reason has {ENOUGH} choices that were not forced\n"),
    };
    out
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
            tally.by_reason[reason as usize][1] = Agreement { asked, differ, unexplained: 0 };
            tally.unchanged[reason as usize] = tally.by_reason[reason as usize][1];
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
        tally.unchanged[Reason::SlowPath as usize].asked = 61;
        tally.unchanged[Reason::SlowPath as usize].differ = 1;
        let text = lines("7.2", &tally);
        assert_eq!(
            text,
            "the model of 7.2 chooses as the kernel did in 10046 of 10100: 99.47 %\n\
             \x20 forced, one CPU possible: in 80 of 80, 100.00 %\n\
             \x20 not forced: in 9966 of 10020, 99.46 %\n\
             \x20 with an idle CPU to win: in 9966 of 10020, 99.46 %\n\
             \x20 worst: slow path 120 of 150 (80.0 %), while nothing changed 60 of 61 (98.4 %)\n"
        );
    }

    #[test]
    fn agreement_over_nothing_is_a_dash() {
        let text = lines("7.2", &Tally::default());
        assert!(text.contains("in 0 of 0: -\n"), "{text}");
        assert_eq!(text.matches("in 0 of 0, -\n").count(), 3, "{text}");
        assert!(text.contains("  worst: -, no reason has 30"), "{text}");
        assert_eq!(tenths(&Agreement::default()), "-");
    }

    #[test]
    fn one_difference_in_many_is_not_rounded_away() {
        let text = lines("7.2", &tally(&[(Reason::LlcScan, 100_000, 1)]));
        assert!(text.ends_with("99999 of 100000 (99.9 %)\n"), "{text}");
        let text = lines("7.2", &tally(&[(Reason::LlcScan, 100_000, 0)]));
        assert!(text.ends_with("100000 of 100000 (100.0 %)\n"), "{text}");
    }
}
