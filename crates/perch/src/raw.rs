// SPDX-License-Identifier: GPL-2.0-or-later
//! `--raw FILE`: writes every repetition's scores, besides the tables made of them.

use std::io::BufWriter;
use std::path::Path;

use perch_experiment::{ExperimentError, Repetition};
use perch_report::{RawFormat, RawWriter};

use crate::fresh::Fresh;
use crate::output::Failure;

/// A file of repetitions; `None` where the user asked for none.
pub struct Raw(Option<RawWriter<BufWriter<Fresh>>>, String);

impl Raw {
    /// Begins the file, so that an error of the file shows before anything runs.
    pub fn begin(path: Option<&Path>) -> Result<Raw, Failure> {
        let Some(path) = path else {
            return Ok(Raw(None, String::new()));
        };
        let format = RawFormat::of(path).map_err(|why| Failure::input(format!("--raw {why}")))?;
        let name = path.display().to_string();
        let writer =
            Fresh::create(path).and_then(|file| RawWriter::new(BufWriter::new(file), format));
        let writer = writer.map_err(|error| Failure::run(cannot(&name, &error)))?;
        Ok(Raw(Some(writer), name))
    }

    /// Adds a repetition.
    pub fn add(&mut self, repetition: &Repetition) -> Result<(), ExperimentError> {
        let Raw(Some(writer), name) = self else {
            return Ok(());
        };
        writer.add(repetition).map_err(|error| ExperimentError::Run {
            what: "--raw".to_string(),
            reason: cannot(name, &error),
        })
    }

    /// Ends the file, which only now replaces one that was there before.
    pub fn finish(self) -> Result<(), Failure> {
        let Raw(Some(writer), name) = self else {
            return Ok(());
        };
        let file = writer.finish().and_then(|out| Ok(out.into_inner()?));
        let kept = file.and_then(Fresh::keep);
        kept.map_err(|error| Failure::run(cannot(&name, &error)))
    }
}

fn cannot(name: &str, error: &std::io::Error) -> String {
    format!("cannot write {name}: {error}")
}
