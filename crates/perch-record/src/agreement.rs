// SPDX-License-Identifier: GPL-2.0-or-later
//! How often a policy's choices are those of its reference, and for which reason they are so least
//! often. Most wake-ups are easy, so a total stays near 100 % whatever the hard ones do.

use std::iter::Sum;

use perch_policy::Reason;

/// The least number of choices by which a reason can be called the worst. One choice more or less
/// of 30 moves its share by 3.3 points, and where nine of ten agree the standard error is 5.5
/// points: with fewer, the worst reason would be the rarest and not the one that the model has wrong.
pub const ENOUGH: u64 = 30;

/// The part of a comparison that one reason decided, with one stake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The number of the policy's choices.
    pub asked: u64,
    /// The choices that differ from the reference's.
    pub differ: u64,
    /// Those that differ for no cause that the recording shows ([`Cause::Model`]); only where the
    /// reference is a kernel.
    ///
    /// [`Cause::Model`]: crate::Cause::Model
    pub unexplained: u64,
}

impl Agreement {
    /// Adds the counts of another part.
    pub fn add(&mut self, other: &Agreement) {
        self.asked += other.asked;
        self.differ += other.differ;
        self.unexplained += other.unexplained;
    }

    /// Returns the counts without those of a part of them.
    pub fn without(&self, part: &Agreement) -> Agreement {
        Agreement {
            asked: self.asked - part.asked,
            differ: self.differ - part.differ,
            unexplained: self.unexplained - part.unexplained,
        }
    }

    /// Returns the number of choices that are the reference's.
    pub fn same(&self) -> u64 {
        self.asked - self.differ
    }
}

impl<'a> Sum<&'a Agreement> for Agreement {
    fn sum<I: Iterator<Item = &'a Agreement>>(parts: I) -> Agreement {
        parts.fold(Agreement::default(), |mut sum, part| {
            sum.add(part);
            sum
        })
    }
}

/// The reason whose choices agree least often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worst {
    /// The reason.
    pub reason: Reason,
    /// Its choices that were not forced.
    pub choices: Agreement,
    /// Those during which nothing changed that the recorder looked at twice. A choice that differs
    /// among these is not the work of another CPU.
    pub unchanged: Agreement,
}

/// A comparison in a few counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// All choices.
    pub total: Agreement,
    /// The choices for which only one CPU was possible.
    pub forced: Agreement,
    /// The reason whose choices agree least often, and its choices that were not forced; only
    /// reasons with at least [`ENOUGH`] of these count. Of reasons that agree equally often it is
    /// the one with the most choices. `None` if no reason has enough.
    pub worst: Option<Worst>,
}

impl Summary {
    /// Sums up what was counted by reason: all choices, the forced ones among them, and of the others
    /// those during which nothing changed.
    pub(crate) fn of(
        parts: impl Iterator<Item = (Reason, Agreement, Agreement, Agreement)>,
    ) -> Summary {
        let mut summary = Summary::default();
        for (reason, all, forced, unchanged) in parts {
            summary.total.add(&all);
            summary.forced.add(&forced);
            let unforced = all.without(&forced);
            if unforced.asked < ENOUGH {
                continue;
            }
            if summary.worst.is_none_or(|worst| is_worse(&unforced, &worst.choices)) {
                summary.worst = Some(Worst { reason, choices: unforced, unchanged });
            }
        }
        summary
    }

    /// Returns the counts of the choices for which more than one CPU was possible.
    pub fn unforced(&self) -> Agreement {
        self.total.without(&self.forced)
    }
}

/// Returns true if one part agrees less often than another, or equally often with more choices.
fn is_worse(one: &Agreement, other: &Agreement) -> bool {
    let differ = |a: &Agreement, b: &Agreement| u128::from(a.differ) * u128::from(b.asked);
    (differ(one, other), one.asked) > (differ(other, one), other.asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(asked: u64, differ: u64) -> Agreement {
        Agreement { asked, differ, unexplained: 0 }
    }

    fn worst(parts: &[(Reason, Agreement, Agreement)]) -> Option<(Reason, Agreement)> {
        let parts = parts.iter().map(|&(reason, all, forced)| (reason, all, forced, NONE));
        let worst = Summary::of(parts).worst;
        worst.map(|worst| (worst.reason, worst.choices))
    }

    const NONE: Agreement = Agreement { asked: 0, differ: 0, unexplained: 0 };

    #[test]
    fn worst_reason_is_not_the_one_with_most_differences() {
        let parts = [
            (Reason::TargetBusy, of(100_000, 150), NONE, of(90_000, 1)),
            (Reason::SlowPath, of(150, 30), NONE, of(60, 2)),
            (Reason::LlcScan, of(500, 10), NONE, of(500, 10)),
        ];
        let summary = Summary::of(parts.into_iter());
        assert_eq!(summary.total, of(100_650, 190));
        let worst = Worst { reason: Reason::SlowPath, choices: of(150, 30), unchanged: of(60, 2) };
        assert_eq!(summary.worst, Some(worst));
    }

    #[test]
    fn reason_with_few_choices_is_never_the_worst() {
        let few = (Reason::SlowPath, of(ENOUGH - 1, 20), NONE);
        let enough = (Reason::LlcScan, of(ENOUGH, 1), NONE);
        assert_eq!(worst(&[few]), None);
        assert_eq!(worst(&[few, enough]), Some((Reason::LlcScan, of(ENOUGH, 1))));
        assert_eq!(worst(&[]), None);
    }

    /// Forced choices neither hide the others of their reason nor make up its number.
    #[test]
    fn forced_choices_are_left_out_of_the_worst_reason() {
        let forced = of(9_900, 0);
        let busy = (Reason::TargetBusy, of(10_000, 40), forced);
        let scan = (Reason::LlcScan, of(1000, 50), NONE);
        assert_eq!(worst(&[busy, scan]), Some((Reason::TargetBusy, of(100, 40))));
        let parts = [busy, scan].map(|(reason, all, forced)| (reason, all, forced, NONE));
        let summary = Summary::of(parts.into_iter());
        assert_eq!(summary.forced, forced);
        assert_eq!(summary.unforced(), of(1100, 90));
        let busy = (Reason::TargetBusy, of(9_929, 29), forced);
        assert_eq!(worst(&[busy]), None);
    }

    #[test]
    fn of_equal_reasons_the_one_with_most_choices_is_the_worst() {
        let few = (Reason::SlowPath, of(40, 4), NONE);
        let many = (Reason::LlcScan, of(400, 40), NONE);
        for parts in [[few, many], [many, few]] {
            assert_eq!(worst(&parts), Some((Reason::LlcScan, of(400, 40))));
        }
    }
}
