// SPDX-License-Identifier: GPL-2.0-or-later
//! A mode for each mechanism, as `--set` takes them.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::str::FromStr;

use crate::mechanism::Mechanism;
use crate::mode::{Mode, ParseError};
use crate::overload::Layout;

/// The key beside the mechanisms' that chooses how the overload counters lie in memory.
pub(crate) const OVERLOAD_LAYOUT: &str = "overload-layout";

include!(concat!(env!("OUT_DIR"), "/modes.rs"));

impl Modes {
    /// Sets one mechanism's mode by its name.
    ///
    /// # Errors
    /// Naming the mechanisms that there are, or the modes that this one has.
    pub fn set(&mut self, mechanism: &str, mode: Mode) -> Result<(), ParseError> {
        let Some(found) = Mechanism::named(mechanism) else {
            let known = Mechanism::ALL.map(Mechanism::name).join(", ");
            return Err(ParseError(format!(
                "unknown mechanism \"{mechanism}\": this version has {known}"
            )));
        };
        if !found.modes().contains(&mode) {
            let has: Vec<_> = found.modes().iter().map(|mode| mode.name()).collect();
            let has = has.join(", ");
            return Err(ParseError(format!(
                "mechanism \"{found}\" has no mode \"{mode}\": expected {has}"
            )));
        }
        self[found] = mode;
        Ok(())
    }

    /// The modes as `--set` would take them.
    pub fn iter(&self) -> impl Iterator<Item = (Mechanism, Mode)> {
        Mechanism::ALL.into_iter().map(|m| (m, self[m]))
    }

    /// How the overload counters lie in memory.
    pub fn overload_layout(&self) -> Layout {
        self.layout.unwrap_or_else(|| Layout::of(self.overload))
    }
}

impl fmt::Display for Modes {
    /// Writes what is on, as `--set` takes it; `off` where nothing is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.iter().filter(|(_, mode)| *mode != Mode::Off);
        let mut words: Vec<String> = on.map(|(name, mode)| format!("{name}={mode}")).collect();
        words.extend(self.layout.map(|layout| format!("{OVERLOAD_LAYOUT}={layout}")));
        if words.is_empty() {
            words.push("off".to_string());
        }
        f.write_str(&words.join(","))
    }
}

impl FromStr for Modes {
    type Err = ParseError;

    /// Reads `cluster=posted` or several, separated by commas, or `off`; what is not named is off.
    fn from_str(s: &str) -> Result<Modes, ParseError> {
        let mut modes = Modes::default();
        if s == "off" {
            return Ok(modes);
        }
        let mut seen = Vec::new();
        for part in s.split(',') {
            let (name, mode) = part.split_once('=').ok_or_else(|| {
                ParseError(format!(
                    "\"{part}\" names no mechanism and mode: expected MECHANISM=MODE, \
                     for example cluster=perch"
                ))
            })?;
            if seen.contains(&name) {
                return Err(ParseError(format!("mechanism \"{name}\" is set twice in \"{s}\"")));
            }
            match name {
                OVERLOAD_LAYOUT => modes.layout = Some(mode.parse()?),
                _ => modes.set(name, mode.parse()?)?,
            }
            seen.push(name);
        }
        Ok(modes)
    }
}

impl Index<Mechanism> for Modes {
    type Output = Mode;

    fn index(&self, mechanism: Mechanism) -> &Mode {
        self.field(mechanism)
    }
}

impl IndexMut<Mechanism> for Modes {
    fn index_mut(&mut self, mechanism: Mechanism) -> &mut Mode {
        self.field_mut(mechanism)
    }
}
