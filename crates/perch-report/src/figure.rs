// SPDX-License-Identifier: GPL-2.0-or-later
//! Figures for people: a figure has as many digits as mean something.

/// Returns which way a score is better.
pub fn direction(higher_is_better: bool) -> &'static str {
    if higher_is_better { "more is better" } else { "less is better" }
}

/// Returns `value` with about four significant digits, and none after the point from 10 000 on; a dash
/// where there is none.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_string();
    }
    let size = value.abs();
    let decimals = match size {
        _ if size >= 10_000.0 => 0,
        _ if size >= 1_000.0 => 1,
        _ if size >= 10.0 || size == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Returns a change in percent, with its sign; a dash where the change is from 0.
pub fn percent(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_string();
    }
    // A value that rounds to 0 has no sign.
    let value = if value.abs() < 0.005 { 0.0 } else { value };
    format!("{value:+.2}%")
}

/// Returns `part` of `whole` as a percentage with so many decimals; a dash where the whole is 0.
pub fn share(part: u64, whole: u64, decimals: usize) -> String {
    match whole {
        0 => "-".to_string(),
        _ => format!("{:.decimals$} %", 100.0 * part as f64 / whole as f64),
    }
}

/// Returns half the width of a confidence interval, in percentage points; an empty text where there
/// is none.
pub(crate) fn interval(half_width: Option<f64>) -> String {
    let half_width = half_width.filter(|half| half.is_finite());
    half_width.map_or(String::new(), |half| format!("{half:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_the_digits_that_mean_something() {
        let shown: Vec<String> =
            [0.0, 0.1234, 9.876, 325.9673, 5259.1633, 82201.5799].map(figure).into();
        assert_eq!(shown, ["0.00", "0.123", "9.876", "325.97", "5259.2", "82202"]);
        assert_eq!([f64::NAN, f64::INFINITY].map(figure), ["-", "-"]);
    }

    #[test]
    fn changes_have_a_sign_unless_they_are_none() {
        assert_eq!([16.24, -1.379, -0.001].map(percent), ["+16.24%", "-1.38%", "+0.00%"]);
    }
}
