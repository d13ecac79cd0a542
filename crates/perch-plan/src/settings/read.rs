// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads settings: from TOML and from `--set`, both by the table.

use std::ops::Range;
use std::path::Path;

use perch_file::Kind;
use perch_policy::{Layout, Modes};
use toml::Spanned;

use super::Settings;
use super::error::{Problem, SettingsError};
use super::table::{BAND, MODES, PARTIAL, SETTINGS, Setting, Tuning};
use crate::band::{self, Band};
use crate::partial::{self, Partial};
use crate::rule::{self, RuleError};
use crate::value::{Entry, Raw, Slot, ValueError};

/// A problem and where it is in its text, in bytes.
type Fault = Placed<Problem>;

/// A thing and where it is in its text, in bytes.
type Placed<T> = (Range<usize>, T);

impl Settings {
    /// Reads a TOML file; what it does not name keeps its default.
    ///
    /// # Errors
    /// [`SettingsError`], with the file, the line, the key and what was expected.
    pub fn from_file(path: &Path) -> Result<Settings, SettingsError> {
        let text = perch_file::text(path, Kind::CONFIGURATION)?;
        Settings::from_toml(&text, &path.display().to_string())
    }

    /// Reads TOML that came from `origin`.
    ///
    /// # Errors
    /// As [`Settings::from_file`].
    pub fn from_toml(text: &str, origin: &str) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        match settings.read(text) {
            Ok(()) => Ok(settings),
            Err((at, source)) => {
                let before = text.get(..at.start).unwrap_or(text);
                Err(SettingsError::File {
                    origin: origin.to_string(),
                    line: before.matches('\n').count() + 1,
                    source: Box::new(source),
                })
            }
        }
    }

    fn read(&mut self, text: &str) -> Result<(), Fault> {
        let file: Raw = toml::from_str(text)
            .map_err(|error| (error.span().unwrap_or(0..0), Problem::Toml(Box::new(error))))?;
        let Raw::Table(entries) = file else {
            unreachable!("a file of TOML is a table");
        };
        for (key, value) in &entries {
            match key.get_ref().as_str() {
                name if name == MODES.name => self.read_modes(value)?,
                name if name == BAND.name => self.read_bands(value)?,
                name if name == PARTIAL.name => self.read_partial(value)?,
                name if SETTINGS.iter().any(|setting| setting.name == name) => {}
                other => return Err((key.span(), Problem::Key(other.to_string()))),
            }
        }
        self.tune(&entries)
    }

    fn read_modes(&mut self, value: &Spanned<Raw>) -> Result<(), Fault> {
        let text = value.get_ref().text("cluster=perch").map_err(|source| {
            let key = MODES.name;
            (value.span(), Problem::Value { key, source })
        })?;
        let modes = text.parse();
        let modes = modes.map_err(|error| (value.span(), Problem::Modes(error)))?;
        self.set_modes(text, modes);
        Ok(())
    }

    fn read_bands(&mut self, value: &Spanned<Raw>) -> Result<(), Fault> {
        for (at, band) in rules::<band::Draft>(BAND.name, value)? {
            let added = self.add_band(band);
            added.map_err(|_| (at, Problem::TooManyBands))?;
        }
        Ok(())
    }

    fn read_partial(&mut self, value: &Spanned<Raw>) -> Result<(), Fault> {
        for (_, rule) in rules::<partial::Draft>(PARTIAL.name, value)? {
            self.add_partial(rule);
        }
        Ok(())
    }

    /// Takes every setting of the table that is among the entries: of equal ones the last.
    fn tune(&mut self, entries: &[Entry]) -> Result<(), Fault> {
        for setting in SETTINGS {
            let named = |(key, _): &&Entry| key.get_ref() == setting.name;
            let Some((_, value)) = entries.iter().rev().find(named) else {
                continue;
            };
            setting.put(&mut self.tuning, value.get_ref()).map_err(|source| {
                let key = setting.name;
                (value.span(), Problem::Value { key, source })
            })?;
            self.asked.push(setting.name);
        }
        Ok(())
    }

    /// Reads what `--set` takes: `cluster=perch`, `balance_ms=8`, or several, separated by commas.
    ///
    /// # Errors
    /// [`SettingsError`] when it names neither a mechanism nor a setting, or one twice, or gives
    /// it a mode or value that it does not have.
    pub fn set(&mut self, text: &str) -> Result<(), SettingsError> {
        self.set_all(&[text])
    }

    /// Reads several of what [`Settings::set`] takes, of which the last word on each counts.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn set_all(&mut self, texts: &[impl AsRef<str>]) -> Result<(), SettingsError> {
        let mut entries: Vec<Entry> = Vec::new();
        for text in texts {
            let (mut modes, before) = (Vec::new(), entries.len());
            for part in text.as_ref().split(',') {
                let Some((name, value)) = part.split_once('=') else {
                    modes.push(part);
                    continue;
                };
                if !SETTINGS.iter().any(|setting| setting.name == name) {
                    if !is_mechanism(name) {
                        return Err(Problem::Name(name.to_string()).into());
                    }
                    modes.push(part);
                    continue;
                }
                if entries[before..].iter().any(|(key, _)| key.get_ref() == name) {
                    return Err(Problem::Twice(name.to_string()).into());
                }
                entries.push((Spanned::new(0..0, name.to_string()), Raw::word(value)));
            }
            if !modes.is_empty() {
                let text = modes.join(",");
                let modes = text.parse().map_err(SettingsError::Modes)?;
                self.set_modes(&text, modes);
            }
        }
        self.tune(&entries).map_err(|(_, problem)| problem.into())
    }

    /// Takes over the modes that `text` names.
    fn set_modes(&mut self, text: &str, modes: Modes) {
        self.layout = modes.layout.or(self.layout);
        for (mechanism, mode) in modes.iter() {
            let name = mechanism.name();
            let named = |part: &str| part.split('=').next() == Some(name);
            if text.split(',').any(named) {
                self.modes.retain(|(other, _)| *other != name);
                self.modes.push((name, mode));
            }
        }
    }
}

/// True if the policy knows a key of this name: with a mode, or with a layout of counters.
fn is_mechanism(name: &str) -> bool {
    let known = |value: &str| format!("{name}={value}").parse::<Modes>().is_ok();
    known("off") || known(Layout::ALL[0].name())
}

/// Reads the tables of a kind of rules, with their places.
fn rules<D: rule::Draft>(
    key: &'static str,
    value: &Spanned<Raw>,
) -> Result<Vec<Placed<D::Rule>>, Fault> {
    let none = |found: &Spanned<Raw>| {
        let given = found.get_ref().to_string();
        Err((found.span(), Problem::NoRules { key, given }))
    };
    let Raw::List(tables) = value.get_ref() else {
        return none(value);
    };
    let mut read = Vec::new();
    for table in tables {
        let Raw::Table(entries) = table.get_ref() else {
            return none(table);
        };
        let rule = rule::read::<D>(entries).map_err(|(at, source)| {
            let at = at.unwrap_or_else(|| table.span());
            (at, Problem::Rule { key, source })
        })?;
        read.push((table.span(), rule));
    }
    Ok(read)
}

/// The error of a rule of the command line.
fn misread(key: &'static str, text: &str) -> impl FnOnce(RuleError) -> SettingsError {
    let rule = text.to_string();
    move |source| SettingsError::Rule { key, rule, source }
}

impl std::str::FromStr for Band {
    type Err = SettingsError;

    /// Reads what `--band` takes, the keys of the file's `[[band]]`: `comm=ffmpeg*,priority=50`.
    fn from_str(text: &str) -> Result<Band, SettingsError> {
        rule::parse::<band::Draft>(text).map_err(misread(BAND.name, text))
    }
}

impl std::str::FromStr for Partial {
    type Err = SettingsError;

    /// Reads what `--partial` takes, the keys of the file's `[[partial]]`: `cgroup=/web`.
    fn from_str(text: &str) -> Result<Partial, SettingsError> {
        rule::parse::<partial::Draft>(text).map_err(misread(PARTIAL.name, text))
    }
}

impl Setting {
    /// Puts a value into its place, if the setting may have it.
    fn put(&self, tuning: &mut Tuning, value: &Raw) -> Result<(), ValueError> {
        let (least, most) = (self.range.least as i64, self.most(tuning) as i64);
        let number = || value.whole(least..=most).map(|number| number as u64);
        match (self.slot)(tuning) {
            Slot::Number(place) => *place = number()?,
            Slot::Maybe(place) => *place = Some(number()?),
            Slot::Switch(place) => *place = value.switch()?,
        }
        Ok(())
    }
}
