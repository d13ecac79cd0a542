// SPDX-License-Identifier: GPL-2.0-or-later
//! The experiment format: this module reads TOML and returns a checked [`Experiment`].
//! docs/experiments.md describes the format; each refusal names the file, the line, the key and
//! what was expected.

mod c2c;
mod calibration;
mod raw;
mod refuse;
mod rows;
mod scores;
mod tables;

use std::path::Path;

use perch_file::Kind;
use perch_policy::Era;
use perch_sim::RootDomain;
use perch_sim::workload::Budget;
use schemars::Schema;
use schemars::generate::SchemaSettings;

use crate::arm::Arm;
use crate::error::{ExperimentError, Source};
use crate::model::{BASELINE, Experiment, PATCHED};
use crate::published;
use raw::{RawArm, RawFile};
use refuse::refuse;
use tables::Resolve;

/// The range of ticks per second with which Linux can be configured.
const HZ: std::ops::RangeInclusive<u32> = 100..=1000;

/// Returns the schema of an experiment's TOML. It refuses the keys that the reader refuses, and
/// leaves to the reader what only several keys together tell.
pub fn schema() -> Schema {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<RawFile>()
}

impl Experiment {
    /// Reads the experiment in the file at `path`; the file with the figures stands beside it. Each
    /// workload must be within `budget`.
    ///
    /// # Errors
    /// Returns an error for what cannot be read and for what makes no sense, with the file, the
    /// line, the key and what was expected.
    pub fn from_file(path: &Path, budget: Budget) -> Result<Experiment, ExperimentError> {
        let beside = |name: &str| {
            let figures = path.parent().unwrap_or(Path::new(".")).join(name);
            Ok(perch_file::text(&figures, Kind::FIGURES)?)
        };
        let text = perch_file::text(path, Kind::EXPERIMENT)?;
        let origin = path.display().to_string();
        Experiment::from_toml_within(&text, &origin, &beside, budget, &perch_machine::resolve)
    }

    /// Reads the experiment in `text`; errors use the name `origin` for it, and `beside` returns
    /// the text of the file with the figures.
    ///
    /// # Errors
    /// Returns the errors of [`Experiment::from_file`].
    pub fn from_toml(
        text: &str,
        origin: &str,
        beside: &dyn Fn(&str) -> Result<String, ExperimentError>,
    ) -> Result<Experiment, ExperimentError> {
        Experiment::from_toml_on(text, origin, beside, &perch_machine::resolve)
    }

    /// Reads an experiment as [`Experiment::from_toml`] does; `resolve` finds its machines.
    pub(crate) fn from_toml_on(
        text: &str,
        origin: &str,
        beside: &dyn Fn(&str) -> Result<String, ExperimentError>,
        resolve: Resolve,
    ) -> Result<Experiment, ExperimentError> {
        Experiment::from_toml_within(text, origin, beside, Budget::DEFAULT, resolve)
    }

    fn from_toml_within(
        text: &str,
        origin: &str,
        beside: &dyn Fn(&str) -> Result<String, ExperimentError>,
        budget: Budget,
        resolve: Resolve,
    ) -> Result<Experiment, ExperimentError> {
        let source = Source { origin, text };
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            source.problem(at, "", error.message(), "")
        })?;
        let hz = *raw.hz.get_ref();
        if !HZ.contains(&hz) {
            let reason = format!("{hz} ticks a second");
            let expected = "expected 100 to 1000";
            return Err(refuse(&source, &raw.hz, "hz", &reason, expected));
        }
        let era: Era = raw
            .era
            .get_ref()
            .parse()
            .map_err(|error| refuse(&source, &raw.era, "era", &format!("{error}"), ""))?;
        let root_domain = match &raw.root_domain {
            None => RootDomain::Stock,
            Some(name) => (name.get_ref().parse())
                .map_err(|error| refuse(&source, name, "root_domain", &format!("{error}"), ""))?,
        };
        if raw.name.get_ref().is_empty() {
            let expected = "expected a short name";
            return Err(refuse(&source, &raw.name, "name", "it is empty", expected));
        }
        let arms = arms(&source, era, &raw.arm)?;
        let figures = raw.published.get_ref();
        let text = beside(figures)
            .map_err(|why| refuse(&source, &raw.published, "published", &why.to_string(), ""))?;
        let named = Path::new(origin).with_file_name(figures);
        let lines = published::read(&text, &named.display().to_string())?;
        let (loads, cells) = tables::tables(&source, &raw, era, &lines, budget, resolve)?;
        let c2c = raw.c2c.as_ref().map(|raw| c2c::read(&source, raw, &loads));
        let c2c = c2c.transpose()?;
        Ok(Experiment {
            name: raw.name.into_inner(),
            title: raw.title,
            source: raw.source,
            era,
            hz,
            root_domain,
            seed: raw.seed,
            arms,
            loads,
            cells,
            c2c,
        })
    }
}

fn arms(source: &Source, era: Era, raw: &[RawArm]) -> Result<Vec<Arm>, ExperimentError> {
    let mut arms: Vec<Arm> = Vec::new();
    for arm in raw {
        let name = arm.name.get_ref();
        let wanted = [BASELINE, PATCHED].get(arms.len());
        if wanted.is_some_and(|wanted| wanted != name) {
            let reason = format!("`{name}`");
            let expected = "expected `baseline`, then `patched`, then any others";
            return Err(refuse(source, &arm.name, "arm.name", &reason, expected));
        }
        if arms.iter().any(|other| other.name == *name) {
            let reason = format!("there are two arms `{name}`");
            return Err(refuse(source, &arm.name, "arm.name", &reason, ""));
        }
        let found = Arm::new(name, arm.modes.get_ref(), era);
        arms.push(found.map_err(|why| refuse(source, &arm.modes, "arm.modes", &why, ""))?);
    }
    if arms.len() < 2 {
        let reason = "the arms `baseline` and `patched` are not both there";
        return Err(source.problem(0, "arm", reason, "expected an [[arm]] for each"));
    }
    Ok(arms)
}

#[cfg(test)]
mod tests;
