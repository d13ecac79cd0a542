// SPDX-License-Identifier: GPL-2.0-or-later
//! `--score`: how to read a score that perch does not know.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::arguments::BadValue;

/// A score that the user described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The quantity.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// True where more is better.
    pub more: bool,
    /// The words before the number, with single spaces between them.
    before: String,
    /// The words directly after it; with these, `before` stands directly before it.
    after: Option<String>,
    /// The argument.
    text: String,
}

/// The unit where the user gives none.
const NUMBER: &str = "number";

/// Units of which less is better unless the user says otherwise.
const TIMES: [&str; 7] = ["s", "sec", "ms", "us", "usec", "ns", "min"];

impl FromStr for Wanted {
    type Err = BadValue;

    /// Reads `NAME[/UNIT][:less|more]=WORDS`, where a `#` in the words stands for the number.
    fn from_str(text: &str) -> Result<Wanted, BadValue> {
        let (described, words) = text.split_once('=').ok_or(
            "expected NAME/UNIT=WORDS, the words being those before the number, for example \
             'rate/op/s=operations per second:'",
        )?;
        let (described, direction) = match described.rsplit_once(':') {
            Some((described, direction)) => (described, Some(direction)),
            None => (described, None),
        };
        let (name, unit) = described.split_once('/').unwrap_or((described, NUMBER));
        if name.is_empty() || unit.is_empty() {
            return Err("the name or the unit before `=` is empty".into());
        }
        let more = match direction {
            None => !TIMES.contains(&unit),
            Some("more") => true,
            Some("less") => false,
            Some(other) => {
                return Err(format!("`:{other}`: expected :less or :more, which is better").into());
            }
        };
        let (before, after) = match words.split_once('#') {
            Some((before, after)) => (before, Some(after)),
            None => (words, None),
        };
        let (before, after) = (single(before), after.map(single));
        if before.is_empty() && after.as_ref().is_none_or(String::is_empty) {
            return Err("no words say where the number stands".into());
        }
        Ok(Wanted {
            name: name.to_string(),
            unit: unit.to_string(),
            more,
            before,
            after,
            text: text.to_string(),
        })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Wanted {
    /// The number of the last line that has the words.
    pub fn read(&self, lines: &[&str]) -> Option<f64> {
        lines.iter().rev().find_map(|line| self.of_line(&single(line)))
    }

    fn of_line(&self, line: &str) -> Option<f64> {
        let numbers = numbers(line);
        let fits = |at: &Range<usize>| match &self.after {
            None => {
                line.find(&self.before).is_some_and(|from| from + self.before.len() <= at.start)
            }
            Some(after) => {
                line[..at.start].trim_end().ends_with(&self.before)
                    && line[at.end..].trim_start().starts_with(after)
            }
        };
        let at = numbers.into_iter().find(fits)?;
        line[at].parse().ok()
    }
}

/// The words with a single space between them.
fn single(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The places of the numbers of a line: digits with an optional sign, point and exponent, none of
/// which continues a word (`p99`).
fn numbers(line: &str) -> Vec<Range<usize>> {
    let bytes = line.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|byte| any.contains(byte));
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let continues =
            start > 0 && (bytes[start - 1].is_ascii_alphanumeric() || is(start - 1, b"._"));
        let signed = is(start, b"+-") && !continues;
        at += usize::from(signed);
        if continues || !(digit(at) || is(at, b".") && digit(at + 1)) {
            at = start + 1;
            continue;
        }
        let digits = |at: &mut usize| {
            while digit(*at) {
                *at += 1;
            }
        };
        digits(&mut at);
        if is(at, b".") && digit(at + 1) {
            at += 1;
            digits(&mut at);
        }
        let exponent = at + 1 + usize::from(is(at + 1, b"+-"));
        if is(at, b"eE") && digit(exponent) {
            at = exponent;
            digits(&mut at);
        }
        found.push(start..at);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(wanted: &str, text: &str) -> Option<f64> {
        let wanted: Wanted = wanted.parse().unwrap();
        wanted.read(&text.lines().collect::<Vec<_>>())
    }

    #[test]
    fn the_number_comes_after_the_words() {
        let text = "p99 of 3 runs:   12.5 us\nrate = 1.5e3/s\n";
        assert_eq!(read("p99/us=p99 of 3 runs:", text), Some(12.5));
        assert_eq!(read("p99/us=p99", text), Some(3.0));
        assert_eq!(read("rate=rate", text), Some(1500.0));
        assert_eq!(read("rate=speed", text), None);
        assert_eq!(read("t=took", "took -0.5 s"), Some(-0.5));
        assert_eq!(read("t=took", "took no time"), None);
    }

    #[test]
    fn a_mark_stands_for_the_number() {
        let text = "  66.882000 usecs/op\n   14951 ops/sec\n";
        assert_eq!(read("ops=# ops/sec", text), Some(14951.0));
        assert_eq!(read("x=run #:", "run 1: 20\nrun 2: 30"), Some(2.0));
        assert_eq!(read("x=run 1: #", "run 1: 20\nrun 2: 30"), Some(20.0));
    }

    #[test]
    fn the_last_line_counts() {
        assert_eq!(read("x=rate:", "rate: 1\nrate: 2\ndone\n"), Some(2.0));
    }

    #[test]
    fn times_are_better_when_they_are_less() {
        let wanted = |text: &str| text.parse::<Wanted>().unwrap();
        assert!(!wanted("latency/us=lat").more);
        assert!(wanted("rate/op/s=rate").more);
        assert_eq!(wanted("rate/op/s=rate").unit, "op/s");
        assert!(wanted("score=points").more);
        assert_eq!(wanted("score=points").unit, "number");
        assert!(!wanted("misses:less=misses").more);
        assert!(wanted("life/s:more=lasted").more);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let refusal = |text: &str| text.parse::<Wanted>().unwrap_err().to_string();
        assert!(refusal("rate").contains("NAME/UNIT=WORDS"));
        assert!(refusal("=rate").contains("name"));
        assert!(refusal("rate/=rate").contains("unit"));
        assert!(refusal("rate:best=rate").contains(":best"));
        assert!(refusal("rate=").contains("no words"));
        assert!(refusal("rate= # ").contains("no words"));
    }
}
