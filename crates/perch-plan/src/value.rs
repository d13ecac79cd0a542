// SPDX-License-Identifier: GPL-2.0-or-later
//! Values of settings: as they are given, in a file or on the command line, and as they are kept,
//! each in a type that knows its unit.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

/// Microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Micros(pub u64);

/// Milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millis(pub u64);

/// Hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Percent(pub u64);

impl Micros {
    /// The same time in nanoseconds.
    pub fn ns(self) -> u64 {
        self.0 * 1_000
    }
}

impl Millis {
    /// The same time in nanoseconds.
    pub fn ns(self) -> u64 {
        self.0 * 1_000_000
    }
}

impl Percent {
    /// So much of a time, nanoseconds.
    pub fn of_ns(self, time: Millis) -> u64 {
        time.ns() / 100 * self.0
    }
}

/// A setting's place in the tuning, whatever its type.
pub(crate) enum Slot<'a> {
    /// A whole number of the setting's unit.
    Number(&'a mut u64),
    /// A whole number, or none where the user asks for none.
    Maybe(&'a mut Option<u64>),
    /// True or false.
    Switch(&'a mut bool),
}

/// A type that a setting may have.
pub(crate) trait Kind {
    /// The unit as the documentation writes it; empty for a count and for a switch.
    const UNIT: &'static str;
    /// The place of a value of this type.
    fn slot(&mut self) -> Slot<'_>;
}

macro_rules! kinds {
    ($($kind:ty, $unit:literal, $value:ident => $slot:expr;)*) => {
        $(impl Kind for $kind {
            const UNIT: &'static str = $unit;
            fn slot(&mut self) -> Slot<'_> {
                let $value = self;
                $slot
            }
        })*
    };
}

kinds! {
    Micros, "µs", value => Slot::Number(&mut value.0);
    Millis, "ms", value => Slot::Number(&mut value.0);
    Percent, "%", value => Slot::Number(&mut value.0);
    u64, "", value => Slot::Number(value);
    Option<u64>, "", value => Slot::Maybe(value);
    bool, "", value => Slot::Switch(value);
}

/// A key with its value and where both stand. On the command line nothing stands anywhere, and
/// every place is empty.
pub(crate) type Entry = (Spanned<String>, Spanned<Raw>);

/// A value as it was given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Raw {
    /// A whole number of a file.
    Whole(i64),
    /// `true` or `false` of a file.
    Switch(bool),
    /// A text of a file, which stands in quotation marks there.
    Text(String),
    /// A word of the command line: of any type, as the setting has it.
    Word(String),
    /// A list of a file.
    List(Vec<Spanned<Raw>>),
    /// A table of a file.
    Table(Vec<Entry>),
    /// A number with a point.
    Fraction(f64),
}

/// The reason why a key does not take a value. The reader, which knows the key, puts the key before it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// Not a whole number.
    #[error("{given}: expected a whole number, {least} to {most}")]
    NotWhole {
        /// The value, as it was written.
        given: String,
        /// The lowest that there may be.
        least: i64,
        /// The highest.
        most: i64,
    },
    /// A number out of bounds.
    #[error("{given}: expected {least} to {most}")]
    OutOfRange {
        /// The number.
        given: i64,
        /// The lowest that there may be.
        least: i64,
        /// The highest.
        most: i64,
    },
    /// Neither true nor false.
    #[error("{given}: expected true or false")]
    NotSwitch {
        /// The value, as it was written.
        given: String,
    },
    #[error("{given}: expected a text in quotation marks, for example \"{example}\"")]
    NotText {
        /// The value, as it was written.
        given: String,
        /// A text that would do.
        example: &'static str,
    },
}

impl Raw {
    /// A word of the command line.
    pub fn word(text: &str) -> Spanned<Raw> {
        Spanned::new(0..0, Raw::Word(text.to_string()))
    }

    /// A whole number of this range.
    pub fn whole(&self, range: RangeInclusive<i64>) -> Result<i64, ValueError> {
        let (&least, &most) = (range.start(), range.end());
        let number = match self {
            Raw::Whole(number) => Some(*number),
            Raw::Word(word) => word.parse().ok(),
            _ => None,
        };
        match number {
            Some(given) if range.contains(&given) => Ok(given),
            Some(given) => Err(ValueError::OutOfRange { given, least, most }),
            None => Err(ValueError::NotWhole { given: self.to_string(), least, most }),
        }
    }

    /// True or false.
    pub fn switch(&self) -> Result<bool, ValueError> {
        let given = || ValueError::NotSwitch { given: self.to_string() };
        match self {
            Raw::Switch(switch) => Ok(*switch),
            Raw::Word(word) => word.parse().map_err(|_| given()),
            _ => Err(given()),
        }
    }

    /// A text; `example` is one that would do.
    pub fn text(&self, example: &'static str) -> Result<&str, ValueError> {
        match self {
            Raw::Text(text) | Raw::Word(text) => Ok(text),
            _ => Err(ValueError::NotText { given: self.to_string(), example }),
        }
    }
}

impl fmt::Display for Raw {
    /// The value for an error text, without what is in a list or table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Whole(number) => write!(f, "{number}"),
            Raw::Switch(switch) => write!(f, "{switch}"),
            Raw::Text(text) | Raw::Word(text) => write!(f, "{text:?}"),
            Raw::Fraction(number) => write!(f, "{number:?}"),
            Raw::List(_) => f.write_str("a list"),
            Raw::Table(_) => f.write_str("a table"),
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

/// Takes every value that TOML has.
struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of TOML")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Whole(number))
    }

    fn visit_bool<E>(self, switch: bool) -> Result<Raw, E> {
        Ok(Raw::Switch(switch))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Raw, E> {
        Ok(Raw::Fraction(number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = list.next_element()? {
            all.push(value);
        }
        Ok(Raw::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Raw, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = table.next_entry()? {
            all.push(entry);
        }
        Ok(Raw::Table(all))
    }
}
