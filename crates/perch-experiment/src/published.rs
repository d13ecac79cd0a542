// SPDX-License-Identifier: GPL-2.0-only
//! The published figures: a CSV beside the experiment.

use perch_machine::Problem;
use serde::Serialize;

use crate::error::ExperimentError;

/// The columns, in this order.
const COLUMNS: [&str; 10] = [
    "source",
    "benchmark",
    "where",
    "unit",
    "row",
    "baseline",
    "patched",
    "printed_delta_pct",
    "sd_baseline",
    "sd_patched",
];

/// What was measured on hardware, in the unit of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// Without the patch.
    pub baseline: f64,
    /// With it; absent where only the change was published.
    pub patched: Option<f64>,
    /// The change in percent, as printed in the source.
    pub delta_pct: f64,
    /// The larger of the two columns' standard deviations, in percent, where published.
    #[serde(skip)]
    pub sd_pct: Option<f64>,
}

/// One line of the CSV.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub benchmark: String,
    pub place: String,
    pub unit: String,
    pub row: String,
    pub figures: Published,
    pub line: usize,
}

/// Every line of the CSV `text`, which `origin` names in errors.
pub(crate) fn read(text: &str, origin: &str) -> Result<Vec<Line>, ExperimentError> {
    let problem = |line: Option<usize>, key: &str, reason: String, expected: &str| {
        ExperimentError::Invalid(Box::new(Problem {
            origin: origin.to_string(),
            line,
            key: key.to_string(),
            reason,
            expected: expected.to_string(),
        }))
    };
    let unreadable = |error: csv::Error| {
        let line = error.position().map(|position| position.line() as usize);
        problem(line, "", error.to_string(), "")
    };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(unreadable)?;
    if header != COLUMNS.as_slice() {
        let expected = format!("expected {}", COLUMNS.join(","));
        return Err(problem(
            Some(1),
            "",
            "the header is another one".to_string(),
            &expected,
        ));
    }
    let mut lines: Vec<Line> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let number = record
            .position()
            .map_or(0, |position| position.line() as usize);
        let field = |column: &str| {
            let at = COLUMNS.iter().position(|known| *known == column);
            at.and_then(|at| record.get(at)).unwrap_or_default()
        };
        let optional = |column: &str| match field(column) {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Some(value)),
                _ => Err(problem(
                    Some(number),
                    column,
                    format!("`{text}` is not a number"),
                    "expected a number, or nothing where nothing was published",
                )),
            },
        };
        let Some(baseline) = optional("baseline")?.filter(|value| *value > 0.0) else {
            let reason = format!("`{}` is no baseline", field("baseline"));
            return Err(problem(
                Some(number),
                "baseline",
                reason,
                "expected a number above 0",
            ));
        };
        let patched = optional("patched")?;
        let computed = patched.map(|patched| 100.0 * (patched / baseline - 1.0));
        let Some(delta_pct) = optional("printed_delta_pct")?.or(computed) else {
            let reason = "neither `patched` nor `printed_delta_pct` is given".to_string();
            return Err(problem(
                Some(number),
                "patched",
                reason,
                "expected one of them",
            ));
        };
        let sd_pct = match (optional("sd_baseline")?, optional("sd_patched")?) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        let line = Line {
            benchmark: field("benchmark").to_string(),
            place: field("where").to_string(),
            unit: field("unit").to_string(),
            row: field("row").to_string(),
            figures: Published {
                baseline,
                patched,
                delta_pct,
                sd_pct,
            },
            line: number,
        };
        let same = |other: &&Line| {
            (&other.benchmark, &other.place, &other.row)
                == (&line.benchmark, &line.place, &line.row)
        };
        if let Some(other) = lines.iter().find(same) {
            let reason = format!("{} was given in line {} already", line.row, other.line);
            return Err(problem(
                Some(number),
                "row",
                reason,
                "expected each row once",
            ));
        }
        lines.push(line);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "source,benchmark,where,unit,row,baseline,patched,printed_delta_pct,sd_baseline,sd_patched\n";

    #[test]
    fn a_change_alone_is_enough() {
        let lines = read(
            &format!("{HEADER}s,b,w,u,r,1.00,,+9.02,6.47,4.68\n"),
            "p.csv",
        )
        .unwrap();
        let figures = lines[0].figures;
        assert_eq!((figures.patched, figures.delta_pct), (None, 9.02));
        assert_eq!(figures.sd_pct, Some(6.47));
    }

    #[test]
    fn what_is_not_a_figure_is_named_with_its_line() {
        for (body, words) in [
            (
                "s,b,w,u,r,~20,1,,,\n",
                "p.csv:2: `baseline`: `~20` is not a number",
            ),
            ("s,b,w,u,r,0,1,,,\n", "`0` is no baseline"),
            ("s,b,w,u,r,1,,,,\n", "neither `patched` nor"),
            (
                "s,b,w,u,r,1,1,,,\ns,b,w,u,r,1,1,,,\n",
                "p.csv:3: `row`: r was given in line 2",
            ),
            ("s,b,w\n", "p.csv:2"),
        ] {
            let message = read(&format!("{HEADER}{body}"), "p.csv")
                .unwrap_err()
                .to_string();
            assert!(message.contains(words), "{message}");
        }
        assert!(
            read("a,b\n", "p.csv")
                .unwrap_err()
                .to_string()
                .contains("expected source,")
        );
    }
}
