// SPDX-License-Identifier: GPL-2.0-or-later
//! The scores in what a command wrote.

use perch_experiment::MeasuredScore;

use super::programs::{KNOWN, names, score};
use super::wanted::Wanted;
use crate::output::Failure;

/// The beginning of a line by which the command names the results that come after it.
const LABEL: &str = "label:";

/// Lines of an output that an error shows.
const SHOWN: usize = 20;

/// Reads the scores of an output: the `wanted` ones, or, where there is none, those of the programs
/// that perch knows. The scores after a line `label: LABEL` have the label before their names.
///
/// # Errors
/// Says that a part of the output has no score, or one of them twice, and shows the end of that
/// part.
pub fn scores(output: &str, wanted: &[Wanted]) -> Result<Vec<MeasuredScore>, Failure> {
    let mut all: Vec<MeasuredScore> = Vec::new();
    let parts = parts(output);
    let labelled = parts.len() > 1;
    for (label, lines) in parts {
        let found = match wanted {
            [] => KNOWN.iter().flat_map(|known| (known.read)(&lines)).collect(),
            _ => match chosen(wanted, &lines) {
                Ok(found) => found,
                // A command may say anything before its first result.
                Err(_) if label.is_none() && labelled => Vec::new(),
                Err(missing) => {
                    let words = format!("no line has a number for --score {missing}");
                    return Err(told(label, &words, &lines));
                }
            },
        };
        if found.is_empty() && label.is_some() {
            return Err(told(label, &nothing(), &lines));
        }
        for mut score in found {
            if let Some(label) = label {
                score.name = format!("{label}: {}", score.name);
            }
            if all.iter().any(|other| other.name == score.name) {
                let words = format!(
                    "`{}` is in it twice; have the command print a line `{LABEL} WORDS` before \
                     each result",
                    score.name
                );
                return Err(told(label, &words, &lines));
            }
            all.push(score);
        }
    }
    if all.is_empty() {
        Err(told(None, &nothing(), &output.lines().collect::<Vec<_>>()))
    } else {
        Ok(all)
    }
}

/// Splits an output at its labels. The first part is what comes before any label.
fn parts(output: &str) -> Vec<(Option<&str>, Vec<&str>)> {
    let mut parts = vec![(None, Vec::new())];
    for line in output.lines() {
        match (line.strip_prefix(LABEL), parts.last_mut()) {
            (None, Some((_, lines))) => lines.push(line),
            (label, _) => parts.push((label.map(str::trim), Vec::new())),
        }
    }
    parts
}

/// Reads the `wanted` scores; an error is the first that no line has.
fn chosen<'a>(wanted: &'a [Wanted], lines: &[&str]) -> Result<Vec<MeasuredScore>, &'a Wanted> {
    let one = |wanted: &'a Wanted| {
        let value = wanted.read(lines).ok_or(wanted)?;
        Ok(score(&wanted.name, &wanted.unit, wanted.more, value))
    };
    wanted.iter().map(one).collect()
}

fn nothing() -> String {
    format!(
        "no score is in it: perch reads those of {}, and others by --score 'NAME/UNIT=WORDS BEFORE \
         THE NUMBER'",
        names()
    )
}

/// An error about a part of the output, with the end of that part.
fn told(label: Option<&str>, words: &str, lines: &[&str]) -> Failure {
    let which = label.map_or(String::new(), |label| format!(" after `{LABEL} {label}`"));
    if lines.iter().all(|line| line.trim().is_empty()) {
        return Failure::run(format!("the output{which} is empty: {words}"));
    }
    let last = &lines[lines.len().saturating_sub(SHOWN)..];
    Failure::run(format!("the output{which}: {words}; its end is:\n{}", last.join("\n")))
}

/// The end of an output, for errors.
pub fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> Vec<Wanted> {
        vec![text.parse().unwrap()]
    }

    fn refusal(output: &str, wanted: &[Wanted]) -> String {
        scores(output, wanted).unwrap_err().message
    }

    #[test]
    fn labels_name_the_results_after_them() {
        let output = "warming up\nlabel: n=1\nTime: 0.5\nlabel: n=2\nTime: 0.25\n";
        let found = scores(output, &[]).unwrap();
        let found: Vec<(&str, f64)> = found.iter().map(|s| (s.name.as_str(), s.value)).collect();
        assert_eq!(found, [("n=1: time", 0.5), ("n=2: time", 0.25)]);
        // A result before the first label is none to drop.
        let found = scores("t 3\nlabel: a\nt 4\n", &wanted("x=t")).unwrap();
        assert_eq!(found[0].name, "x");
        assert_eq!(scores("label: a\nt 4\n", &wanted("x=t")).unwrap().len(), 1);
    }

    #[test]
    fn an_output_without_scores_is_shown() {
        let words = refusal("it\nbroke\n", &[]);
        assert!(words.contains("hackbench") && words.contains("--score"), "{words}");
        assert!(words.ends_with("its end is:\nit\nbroke"), "{words}");
        assert!(refusal("", &[]).contains("output is empty"));
        let words = refusal("label: n=1\nTime: 1\nlabel: n=2\nno\n", &[]);
        assert!(words.contains("after `label: n=2`"), "{words}");
        let words = refusal("Time: 1\n", &wanted("x=Rate:"));
        assert!(words.contains("--score x=Rate:"), "{words}");
    }

    #[test]
    fn results_that_cannot_be_told_apart_are_refused() {
        let words = refusal("Time: 1.0\nTime: 2.0\n", &[]);
        assert!(words.contains("`time` is in it twice"), "{words}");
        assert!(words.contains("label: WORDS"), "{words}");
    }

    #[test]
    fn wanted_scores_replace_the_known_ones() {
        let found = scores("Time: 1.0\nrate 7 of 9\n", &wanted("rate/req:more=rate")).unwrap();
        assert_eq!(found, [score("rate", "req", true, 7.0)]);
    }
}
