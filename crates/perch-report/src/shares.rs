// SPDX-License-Identifier: GPL-2.0-or-later
//! Shares of decisions, and how they change from arm to arm.

use perch_experiment::{Comparison, CountRow};

use crate::grid::{Align, Grid};

/// Makes a table of the share that each row has of its arm's events, and of how the shares change from
/// the first arm's. Guests of different kernels take different times for one load, so that their rates
/// don't compare.
pub(crate) fn share_grid(comparison: &Comparison, rows: &[&CountRow]) -> Grid {
    let mut grid = Grid::new(&[""], &[]);
    for (index, arm) in comparison.arms.iter().enumerate() {
        grid.column(&arm.name, "share", Align::Right);
        if index > 0 {
            grid.column(&arm.name, "delta (points)", Align::Right);
        }
    }
    let arms = 0..comparison.arms.len();
    let sums = arms.map(|arm| rows.iter().filter_map(|row| row.per_second[arm]).sum::<f64>());
    let sums: Vec<f64> = sums.collect();
    for row in rows {
        // An arm without events has no shares.
        let rates = row.per_second.iter().zip(&sums);
        let shares = rates.map(|(rate, sum)| Some(100.0 * (*rate)? / sum).filter(|_| *sum > 0.0));
        let shares: Vec<Option<f64>> = shares.collect();
        let mut cells = vec![row.name.clone()];
        for (index, share) in shares.iter().enumerate() {
            cells.push(share.map_or(String::new(), |share| format!("{share:.2}")));
            if index > 0 {
                let change = share.zip(shares[0]).map(|(new, old)| new - old);
                cells.push(change.map_or(String::new(), points));
            }
        }
        grid.row(cells);
    }
    grid
}

/// A change of a share. One that rounds to 0 has no sign of its own.
fn points(change: f64) -> String {
    let hundredths = (100.0 * change).round();
    format!("{:+.2}", hundredths / 100.0 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::comparison;
    use crate::comparison::tests::given;
    use crate::format::Format;

    #[test]
    fn changes_have_two_digits() {
        assert_eq!([-0.004, 0.0, -1.006].map(points), ["+0.00", "+0.00", "-1.01"]);
    }

    #[test]
    fn shares_of_guests_are_set_against_the_first_arms() {
        let mut found = given();
        found.place = Some("a guest of 8 CPUs".to_string());
        let row = |name: &str, per_second: [f64; 2]| CountRow {
            name: name.to_string(),
            per_second: per_second.map(Some).to_vec(),
        };
        found.decisions = vec![row("target idle", [1.0, 3.0]), row("slow path", [3.0, 3.0])];
        let text = comparison(&found, Format::Table);
        let shares = text.split("decisions by reason, % of the recorded wake-ups\n").nth(1);
        let cells: Vec<Vec<&str>> = (shares.unwrap().lines().skip(2).take(2))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(cells[0], ["target", "idle", "25.00", "50.00", "+25.00"]);
        assert_eq!(cells[1], ["slow", "path", "75.00", "50.00", "-25.00"]);
        found.decisions = vec![row("target idle", [1.0, 0.0])];
        let text = comparison(&found, Format::Table);
        let line = text.lines().find(|line| line.starts_with("target idle"));
        assert_eq!(line.unwrap().split_whitespace().last(), Some("100.00"));
    }
}
