// SPDX-License-Identifier: GPL-2.0-or-later
//! Rules that choose tasks by keys, `[[band]]` and `[[partial]]`: how their keys are read from a table of
//! a file and from the command line. Each kind of rule has a table of its keys.

mod error;

use std::fmt;
use std::ops::Range;

use schemars::{Schema, json_schema};
use toml::Spanned;

use crate::value::{Entry, Raw};
pub use error::{CgroupError, CommError, RuleError};

/// A user, as a rule names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// A name of /etc/passwd.
    Name(String),
    /// A number.
    Number(u32),
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            User::Name(name) => f.write_str(name),
            User::Number(number) => number.fmt(f),
        }
    }
}

/// The highest number of a user: the kernel has one more, which stands for none.
const MOST_USERS: u32 = u32::MAX - 1;

/// A task's name has no more characters (`TASK_COMM_LEN` without its end).
const COMM_CHARS: usize = 15;

pub(crate) struct Key<D: Draft> {
    pub name: &'static str,
    pub range: &'static str,
    /// An example, as a file has it.
    pub example: &'static str,
    pub default: &'static str,
    pub help: &'static str,
    /// Puts a value into its place, if the key takes it.
    pub read: fn(&mut D, &Raw) -> Result<(), RuleError>,
    /// The JSON Schema of the values, as far as it can tell them.
    pub schema: fn() -> Schema,
}

/// A rule of which some keys have been read.
pub(crate) trait Draft: Default + 'static {
    type Rule;
    /// Every key, in the order in which they are read, shown and documented.
    const KEYS: &'static [Key<Self>];
    /// A rule of the command line that would do.
    const EXAMPLE: &'static str;

    /// The rule, if the keys make one.
    fn finish(self) -> Result<Self::Rule, RuleError>;
}

/// A mistake and where it stands in its text, in bytes; nowhere where a key is missing.
pub(crate) type Misplaced = (Option<Range<usize>>, RuleError);

/// Reads a rule from its keys.
///
/// # Errors
/// The mistake and its place.
pub(crate) fn read<D: Draft>(entries: &[Entry]) -> Result<D::Rule, Misplaced> {
    let known = |name: &str| D::KEYS.iter().any(|key| key.name == name);
    if let Some((key, _)) = entries.iter().find(|(key, _)| !known(key.get_ref())) {
        let error = RuleError::Key { given: key.get_ref().clone(), expected: names::<D>() };
        return Err((Some(key.span()), error));
    }
    let find = |name: &str| entries.iter().find(|(key, _)| key.get_ref() == name);
    let place = |error: RuleError| {
        let entry = error.key().and_then(find);
        (entry.map(|(_, value)| value.span()), error)
    };
    let mut draft = D::default();
    for key in D::KEYS {
        if let Some((_, value)) = find(key.name) {
            (key.read)(&mut draft, value.get_ref()).map_err(place)?;
        }
    }
    draft.finish().map_err(place)
}

/// Reads a rule of the command line, the keys of the file's table: `comm=ffmpeg*,priority=50`.
///
/// # Errors
/// The mistake.
pub(crate) fn parse<D: Draft>(text: &str) -> Result<D::Rule, RuleError> {
    let mut entries: Vec<Entry> = Vec::new();
    for part in text.split(',') {
        let Some((key, value)) = part.split_once('=') else {
            return Err(RuleError::NoPair { given: part.to_string(), example: D::EXAMPLE });
        };
        if entries.iter().any(|(other, _)| other.get_ref() == key) {
            return Err(RuleError::Twice(key.to_string()));
        }
        entries.push((Spanned::new(0..0, key.to_string()), Raw::word(value)));
    }
    read::<D>(&entries).map_err(|(_, error)| error)
}

/// The keys in words.
fn names<D: Draft>() -> String {
    let names: Vec<_> = D::KEYS.iter().map(|key| key.name).collect();
    let (last, others) = names.split_last().expect("a rule has keys");
    format!("{} or {last}", others.join(", "))
}

/// Reads a text; `example` is one that would do.
pub(crate) fn text(
    key: &'static str,
    value: &Raw,
    example: &'static str,
) -> Result<String, RuleError> {
    let text = value.text(example);
    text.map(str::to_string).map_err(|source| RuleError::Value { key, source })
}

/// Reads a pattern of commands' names, with `*` for any characters and `?` for one.
pub(crate) fn comm(value: &Raw) -> Result<String, RuleError> {
    let given = text("comm", value, "ffmpeg*")?;
    let source = if given.is_empty() || given.contains('\0') {
        CommError::NoName
    } else if given.bytes().filter(|&byte| byte != b'*').count() > COMM_CHARS {
        CommError::LongName
    } else {
        return Ok(given);
    };
    Err(RuleError::Comm { given, source })
}

/// Reads a cgroup's path below /sys/fs/cgroup, from its root.
pub(crate) fn cgroup(value: &Raw, example: &'static str) -> Result<String, RuleError> {
    let given = text("cgroup", value, example)?;
    let plain =
        !given.contains("//") && !given.contains('\0') && (given == "/" || !given.ends_with('/'));
    if given.starts_with('/') && plain && !folders(&given).any(|f| f == "." || f == "..") {
        return Ok(given);
    }
    Err(RuleError::Cgroup { given, source: CgroupError::NoPath })
}

/// The folders of a cgroup's path.
pub(crate) fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|folder| !folder.is_empty())
}

/// Reads a user's name or number.
pub(crate) fn user(value: &Raw) -> Result<User, RuleError> {
    let refused = || RuleError::User(value.to_string());
    let number = |number: i64| {
        let number = u32::try_from(number).ok().filter(|&number| number <= MOST_USERS);
        number.map(User::Number).ok_or_else(refused)
    };
    match value {
        Raw::Whole(given) => number(*given),
        Raw::Text(text) | Raw::Word(text) => match text.parse() {
            Ok(given) => number(given),
            Err(_) if text.is_empty() || text.contains([':', '\n', '\0']) => Err(refused()),
            Err(_) => Ok(User::Name(text.clone())),
        },
        _ => Err(refused()),
    }
}

/// The schema of what [`user`] reads.
pub(crate) fn user_schema() -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string", "minLength": 1 },
            { "type": "integer", "minimum": 0, "maximum": MOST_USERS },
        ],
    })
}
