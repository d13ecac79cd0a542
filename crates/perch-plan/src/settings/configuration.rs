// SPDX-License-Identifier: GPL-2.0-or-later
//! The places from which settings come, so that they can be read again.

use std::path::PathBuf;

use super::{Settings, SettingsError};
use crate::band::Band;
use crate::partial::Partial;

/// The places from which settings come.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// What `--set` says, which has the last word.
    pub set: Vec<String>,
    /// What `--band` says, after the rules of the file.
    pub bands: Vec<String>,
    /// What `--partial` says, besides the rules of the file.
    pub partial: Vec<String>,
}

impl Configuration {
    /// Reads them.
    ///
    /// # Errors
    /// [`SettingsError`], with the place, the key and what was expected.
    pub fn read(&self) -> Result<Settings, SettingsError> {
        let mut settings = match &self.file {
            Some(file) => Settings::from_file(file)?,
            None => Settings::default(),
        };
        settings.set_all(&self.set)?;
        for rule in &self.bands {
            settings.add_band(rule.parse::<Band>()?)?;
        }
        for rule in &self.partial {
            settings.add_partial(rule.parse::<Partial>()?);
        }
        Ok(settings)
    }
}
