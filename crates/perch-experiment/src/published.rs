// SPDX-License-Identifier: GPL-2.0-or-later
//! The published figures: a CSV beside the experiment.

use std::collections::{BTreeMap, BTreeSet};

use perch_machine::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ExperimentError;
use crate::json::null_is_nan;

/// The columns of the CSV, in this order. Columns of repeats may follow.
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

/// The beginning of the name of a column that has the changes of another posting of the same series:
/// `repeat_v8` of the posting `v8`.
const REPEAT: &str = "repeat_";

/// The change that another posting of the same series has for the same row of the same table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeat {
    /// The posting, for example `v8`.
    pub posting: String,
    /// The change, in percent, as [`Published::delta_pct`].
    pub delta_pct: f64,
}

/// The figures measured on hardware, in the unit of their cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// The figure without the patch.
    pub baseline: f64,
    /// The figure with the patch; absent where only the change was published.
    pub patched: Option<f64>,
    /// The change from the baseline to the patched figure, in percent of the baseline: a rise is
    /// positive, whichever sign the source printed.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub delta_pct: f64,
    /// The larger of the two columns' standard deviations, in percent, where published.
    #[serde(skip)]
    pub sd_pct: Option<f64>,
    /// The same change in other postings of the series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Repeat>,
}

/// The meaning of a positive sign where a source prints a change in percent. Sources differ, and
/// some print a sign that says "better" for rows where less is better and for rows where more is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Printed {
    /// A positive sign means that the patched figure is larger.
    #[default]
    Rise,
    /// A positive sign means that the patched figure is smaller.
    Fall,
}

impl Printed {
    /// Returns the change that `printed_delta_pct` stands for, a rise being positive.
    fn change(self, printed_pct: f64) -> f64 {
        match self {
            Printed::Rise => printed_pct,
            // The subtraction avoids -0.
            Printed::Fall => 0.0 - printed_pct,
        }
    }
}

/// One line of the CSV.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub benchmark: String,
    pub place: String,
    pub unit: String,
    pub row: String,
    pub line: usize,
    pub baseline: f64,
    pub patched: Option<f64>,
    pub printed_pct: Option<f64>,
    pub sd_pct: Option<f64>,
    /// The postings, each with the change that it prints.
    pub repeats: Vec<(String, f64)>,
}

/// Changes that were computed from rounded columns may differ from the printed ones by this much;
/// near 0 the sign may differ too.
const ROUNDED_PP: f64 = 1.0;

impl Line {
    /// Returns the benchmark, the place and the row.
    pub fn key(&self) -> (&str, &str, &str) {
        (&self.benchmark, &self.place, &self.row)
    }

    /// Returns the figures, given the meaning of the source's signs.
    ///
    /// # Errors
    /// Returns the other meaning of the printed sign, if the columns show that the sign has it.
    pub fn figures(&self, printed: Printed) -> Result<Published, Printed> {
        let computed = self.patched.map(|p| 100.0 * (p / self.baseline - 1.0));
        let said = self.printed_pct.map(|pct| printed.change(pct));
        if let (Some(computed), Some(said)) = (computed, said)
            && computed * said < 0.0
            && (computed - said).abs() > ROUNDED_PP
        {
            return Err(match printed {
                Printed::Rise => Printed::Fall,
                Printed::Fall => Printed::Rise,
            });
        }
        let repeat = |(posting, printed_pct): &(String, f64)| Repeat {
            posting: posting.clone(),
            delta_pct: printed.change(*printed_pct),
        };
        Ok(Published {
            baseline: self.baseline,
            patched: self.patched,
            delta_pct: said.or(computed).unwrap_or_default(),
            sd_pct: self.sd_pct,
            repeats: self.repeats.iter().map(repeat).collect(),
        })
    }
}

/// Returns the postings that the header has columns of; none for another header than this CSV's.
fn postings(header: &[String]) -> Option<Vec<&str>> {
    let (own, further) = header.split_at_checked(COLUMNS.len())?;
    let names = further.iter().map(|column| column.strip_prefix(REPEAT));
    let postings = names.collect::<Option<Vec<&str>>>()?;
    let different: BTreeSet<&str> = postings.iter().copied().collect();
    let twice = different.len() < postings.len();
    (own == COLUMNS && !different.contains("") && !twice).then_some(postings)
}

/// Reads every line of the CSV `text`; errors use the name `origin` for it.
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
    let header: Vec<String> = header.iter().map(str::to_string).collect();
    let Some(postings) = postings(&header) else {
        let expected = format!(
            "expected {}, then one column per other posting, if any: {REPEAT}v8",
            COLUMNS.join(",")
        );
        return Err(problem(Some(1), "", "the header is another one".to_string(), &expected));
    };
    let mut lines: Vec<Line> = Vec::new();
    let mut rows = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let number = record.position().map_or(0, |position| position.line() as usize);
        let field = |column: &str| {
            let at = COLUMNS.iter().position(|known| *known == column);
            at.and_then(|at| record.get(at)).unwrap_or_default()
        };
        let number_of = |column: &str, text: &str| match text {
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
        let optional = |column: &str| number_of(column, field(column));
        let Some(baseline) = optional("baseline")?.filter(|value| *value > 0.0) else {
            let reason = format!("`{}` is not a baseline", field("baseline"));
            return Err(problem(Some(number), "baseline", reason, "expected a number above 0"));
        };
        let patched = optional("patched")?;
        let printed_pct = optional("printed_delta_pct")?;
        if patched.is_none() && printed_pct.is_none() {
            let reason = "neither `patched` nor `printed_delta_pct` is given".to_string();
            let expected = "expected one of them";
            return Err(problem(Some(number), "patched", reason, expected));
        }
        let sd_pct = match (optional("sd_baseline")?, optional("sd_patched")?) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        let mut repeats = Vec::new();
        for (posting, text) in postings.iter().zip(record.iter().skip(COLUMNS.len())) {
            let change = number_of(&format!("{REPEAT}{posting}"), text)?;
            repeats.extend(change.map(|pct| (posting.to_string(), pct)));
        }
        let line = Line {
            benchmark: field("benchmark").to_string(),
            place: field("where").to_string(),
            unit: field("unit").to_string(),
            row: field("row").to_string(),
            line: number,
            baseline,
            patched,
            printed_pct,
            sd_pct,
            repeats,
        };
        let (benchmark, place) = (line.benchmark.clone(), line.place.clone());
        if let Some(other) = rows.insert((benchmark, place, line.row.clone()), number) {
            let reason = format!("{} was given in line {other} already", line.row);
            let expected = "expected each row once";
            return Err(problem(Some(number), "row", reason, expected));
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
        let lines = read(&format!("{HEADER}s,b,w,u,r,1.00,,+9.02,6.47,4.68\n"), "p.csv").unwrap();
        let figures = lines[0].figures(Printed::Rise).unwrap();
        assert_eq!((figures.patched, figures.delta_pct), (None, 9.02));
        assert_eq!(figures.sd_pct, Some(6.47));
    }

    /// Two sources print the same change, one as a fall and the other as a rise.
    #[test]
    fn a_change_is_positive_where_there_is_more_whatever_was_printed() {
        let text = format!(
            "{HEADER}s,b,w,us,p99,29,13,55.17,,\ns,b,w,req/s,rps,533,507,4.88,,\n\
             s,b,w,us,p50,6,6,0.00,,\ns,b,w,rel,4m-1w,1.00,,+9.02,6.47,4.68\n"
        );
        let lines = read(&text, "p.csv").unwrap();
        let change = |i: usize, printed| lines[i].figures(printed).map(|f| f.delta_pct);
        assert_eq!(change(0, Printed::Fall), Ok(-55.17));
        assert_eq!(change(1, Printed::Fall), Ok(-4.88));
        assert!(change(2, Printed::Fall).is_ok_and(|pct| pct == 0.0 && pct.is_sign_positive()));
        assert_eq!(change(3, Printed::Fall), Ok(-9.02));
        // The columns reveal a sign that was declared the wrong way round; a change alone cannot
        // reveal it.
        assert_eq!(change(0, Printed::Rise), Err(Printed::Fall));
        assert_eq!(change(1, Printed::Rise), Err(Printed::Fall));
        assert_eq!(change(3, Printed::Rise), Ok(9.02));
    }

    #[test]
    fn other_postings_stand_in_columns_of_their_own() {
        let head = format!("{},repeat_v6,repeat_v8\n", HEADER.trim_end());
        let text = format!("{head}s,b,w,u,r,10,12,20,,,15,\ns,b,w,u,q,10,12,20,,,,-3\n");
        let lines = read(&text, "p.csv").unwrap();
        let repeats = |line: &Line, printed| {
            let found = line.figures(printed).map(|figures| figures.repeats);
            let found = found.unwrap_or_default().into_iter();
            found.map(|r| (r.posting, r.delta_pct)).collect::<Vec<_>>()
        };
        assert_eq!(repeats(&lines[0], Printed::Rise), [("v6".to_string(), 15.0)]);
        assert_eq!(repeats(&lines[1], Printed::Rise), [("v8".to_string(), -3.0)]);
        let fallen = read(&text.replace("12,20", "8,20"), "p.csv").unwrap();
        assert_eq!(repeats(&fallen[1], Printed::Fall), [("v8".to_string(), 3.0)]);
        for wrong in ["repeat_v6", "repeat_", "posting"] {
            let text = text.replacen("repeat_v8", wrong, 1);
            let message = read(&text, "p.csv").unwrap_err().to_string();
            assert!(message.starts_with("p.csv:1"), "{message}");
        }
        let message = read(&text.replacen(",15,", ",x,", 1), "p.csv").unwrap_err();
        assert!(message.to_string().starts_with("p.csv:2: `repeat_v6`"), "{message}");
    }

    #[test]
    fn what_is_not_a_figure_is_named_with_its_line() {
        for (body, words) in [
            ("s,b,w,u,r,~20,1,,,\n", "p.csv:2: `baseline`: `~20` is not a number"),
            ("s,b,w,u,r,0,1,,,\n", "`0` is not a baseline"),
            ("s,b,w,u,r,1,,,,\n", "neither `patched` nor"),
            ("s,b,w,u,r,1,1,,,\ns,b,w,u,r,1,1,,,\n", "p.csv:3: `row`: r was given in line 2"),
            ("s,b,w\n", "p.csv:2"),
        ] {
            let message = read(&format!("{HEADER}{body}"), "p.csv").unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
        assert!(read("a,b\n", "p.csv").unwrap_err().to_string().contains("expected source,"));
    }
}
