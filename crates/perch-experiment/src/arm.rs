// SPDX-License-Identifier: GPL-2.0-or-later
//! Arms: the kernel's own scheduler with mechanisms in it, or another scheduler in its place.

use perch_policy::{Era, Modes};
use perch_sim::Outside;

use crate::error::ExperimentError;

/// The modes of an arm in which no mechanism acts.
const OFF: &str = "off";

/// Schedulers in place of the kernel's, by the word before the colon.
const OUTSIDE: [&str; 2] = ["live", "scx"];

/// One setting of the mechanisms, or another scheduler. Arms differ in nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// The name that tables use for the arm.
    pub name: String,
    /// The modes of all mechanisms.
    pub modes: Modes,
    /// The scheduler in place of the kernel's fair class, if there is one.
    pub scheduler: Option<Outside>,
}

impl Arm {
    /// Returns what differs between arms, in the words of whoever asked for it: the modes, or the
    /// scheduler.
    pub fn words(&self) -> String {
        match &self.scheduler {
            Some(scheduler) => scheduler.words().to_string(),
            None => self.modes.to_string(),
        }
    }

    /// Returns the arm that `words` say: `MECHANISM=MODE,...`, `off`, `live:SETTINGS` (perch's own
    /// scheduler as `perch run --set SETTINGS` loads it) or `scx:FILE` (what `perch scx build` wrote,
    /// or a scheduler's source). A scheduler needs an era that has sched_ext.
    ///
    /// # Errors
    /// Returns a sentence that says what was expected.
    pub fn new(name: &str, words: &str, era: Era) -> Result<Arm, String> {
        let outside = words.split_once(':');
        if let Some((kind, rest)) = outside.filter(|(kind, _)| OUTSIDE.contains(kind)) {
            if era.release() < (6, 12) {
                return Err(format!(
                    "Linux {era} has no sched_ext: expected era 6.12 or a later one"
                ));
            }
            return Ok(Arm {
                name: name.to_string(),
                modes: Modes::default(),
                scheduler: Some(scheduler(kind, rest)?),
            });
        }
        let modes = match words {
            OFF => Modes::default(),
            words => words.parse().map_err(|error: perch_policy::ParseError| error.to_string())?,
        };
        era.check(&modes).map_err(|error| error.to_string())?;
        Ok(Arm { name: name.to_string(), modes, scheduler: None })
    }

    /// Reads `NAME:MODES`, `[NAME=]live:SETTINGS` or `[NAME=]scx:FILE`, the syntax of `--arm`.
    ///
    /// # Errors
    /// Returns a sentence that says what was expected.
    pub fn parse(text: &str, era: Era) -> Result<Arm, ExperimentError> {
        let refuse = |reason: String| ExperimentError::Argument(format!("--arm {text}: {reason}"));
        let (name, words) = named(text).or_else(|| text.split_once(':')).ok_or_else(|| {
            refuse("expected NAME:MECHANISM=MODE, for example near:cluster=perch".to_string())
        })?;
        if name.is_empty() {
            let sign = if text.starts_with('=') { '=' } else { ':' };
            return Err(refuse(format!("the name before `{sign}` is empty")));
        }
        Arm::new(name, words, era).map_err(refuse)
    }
}

/// Splits `[NAME=]live:SETTINGS` and its like; a scheduler without a name has that of its kind, or of
/// its file.
fn named(text: &str) -> Option<(&str, &str)> {
    OUTSIDE.iter().find_map(|kind| {
        let is_kind = |words: &str| words.strip_prefix(kind)?.strip_prefix(':').map(|_| ());
        if is_kind(text).is_some() {
            return Some((own_name(text), text));
        }
        let (name, words) = text.split_once('=')?;
        (is_kind(words).is_some() && !name.contains([':', ','])).then_some((name, words))
    })
}

/// `live`, or the name of the file that follows `scx:`.
fn own_name(words: &str) -> &str {
    match words.strip_prefix("scx:") {
        Some(file) => {
            let stem = std::path::Path::new(file).file_stem();
            stem.and_then(|stem| stem.to_str()).unwrap_or(file)
        }
        None => "live",
    }
}

fn scheduler(kind: &str, rest: &str) -> Result<Outside, String> {
    match kind {
        "live" => perch_scx::live(rest).map_err(|error| error.to_string()),
        _ => perch_scx::Package::open(std::path::Path::new(rest))
            .and_then(|package| package.outside(format!("scx:{rest}")))
            .map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Arm, String> {
        Arm::parse(text, Era::V7_2).map_err(|error| error.to_string())
    }

    #[test]
    fn arms_are_named_by_what_comes_first() {
        for (text, name, words) in [
            ("near:cluster=perch", "near", "cluster=perch"),
            ("stock:off", "stock", "off"),
            ("live:", "live", "live:"),
            ("live:cluster=off", "live", "live:cluster=off"),
            ("mine=live:cache=off", "mine", "live:cache=off"),
            ("scx:/a/b/cosmos.scx", "cosmos", "scx:/a/b/cosmos.scx"),
            ("a=scx:b=c:d", "a", "scx:b=c:d"),
        ] {
            let found = named(text).or_else(|| text.split_once(':'));
            assert_eq!(found, Some((name, words)), "{text}");
        }
    }

    #[test]
    fn what_makes_no_arm_is_refused_with_what_was_expected() {
        for (text, expected) in [
            ("near", "expected NAME:MECHANISM=MODE"),
            (":cluster=perch", "the name before `:` is empty"),
            ("=live:", "the name before `=` is empty"),
            ("a:cluster=sideways", "expected"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let old = "6.5".parse().unwrap();
        let error = Arm::parse("live:", old).unwrap_err().to_string();
        assert!(error.contains("expected era 6.12"), "{error}");
    }
}
