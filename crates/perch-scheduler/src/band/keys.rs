// SPDX-License-Identifier: GPL-2.0-or-later
//! The keys of a rule of the real-time band: what they take, what they mean, and how they are
//! read, from a `[[band]]` of a file and from `--band`.

use std::ops::{Range, RangeInclusive};

use schemars::{Schema, json_schema};

use super::error::{BandError, CgroupError, CommError};
use super::{Band, folders};
use crate::interface::{BAND_GLOB, BAND_NAME, BAND_PATH};
use crate::value::{Entry, Millis, Raw, ValueError};

/// Priorities, as of `SCHED_FIFO`: the highest goes first.
pub(super) const PRIORITIES: RangeInclusive<i64> = 1..=99;
const NICENESSES: RangeInclusive<i64> = -20..=19;
/// Turns of a round robin, milliseconds.
const SLICES_MS: RangeInclusive<i64> = 1..=1_000;
/// The kernel's (`RR_TIMESLICE`).
const SLICE: Millis = Millis(100);
/// A task's name has no more characters (`TASK_COMM_LEN` without its end).
const COMM_CHARS: usize = 15;

/// A rule of which some keys have been read.
#[derive(Default)]
pub(crate) struct Draft {
    comm: Option<String>,
    cgroup: Option<String>,
    nice: Option<i8>,
    priority: Option<u8>,
    policy: Option<Policy>,
    slice: Option<Millis>,
}

/// The order in which tasks of one priority run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// The task that came first runs until it sleeps.
    Fifo,
    /// The tasks take turns.
    RoundRobin,
}

/// A key of a rule.
pub(crate) struct Key {
    pub name: &'static str,
    pub range: &'static str,
    /// An example, as a file has it.
    pub example: &'static str,
    pub default: &'static str,
    pub help: &'static str,
    /// Puts a value into its place, if the key takes it.
    read: fn(&mut Draft, &Raw) -> Result<(), BandError>,
    /// The JSON Schema of the values, as far as it can tell them.
    pub schema: fn() -> Schema,
}

/// Every key, in the order in which they are read, shown and documented.
pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "comm",
        range: "1 to 15 characters, * and ?",
        example: "\"ffmpeg*\"",
        default: "any command",
        help: "the command's name, as /proc/PID/comm has it",
        read: |draft, value| {
            let given = text("comm", value, "ffmpeg*")?;
            check_comm(&given).map_err(|source| BandError::Comm {
                given: given.clone(),
                source,
            })?;
            draft.comm = Some(given);
            Ok(())
        },
        schema: || json_schema!({ "type": "string", "minLength": 1 }),
    },
    Key {
        name: "cgroup",
        range: "a path of up to 191 characters",
        example: "\"/rt\"",
        default: "any cgroup",
        help: "the cgroup below /sys/fs/cgroup, with the cgroups in it",
        read: |draft, value| {
            let given = text("cgroup", value, "/rt")?;
            check_cgroup(&given).map_err(|source| BandError::Cgroup {
                given: given.clone(),
                source,
            })?;
            draft.cgroup = Some(given);
            Ok(())
        },
        schema: || json_schema!({ "type": "string", "pattern": "^/" }),
    },
    Key {
        name: "nice",
        range: "-20 to 19",
        example: "-20",
        default: "any niceness",
        help: "the niceness; a rule has at least one of these three keys, and matches the tasks \
               for which all of them hold",
        read: |draft, value| {
            draft.nice = Some(whole("nice", value, NICENESSES)?);
            Ok(())
        },
        schema: || integer(NICENESSES),
    },
    Key {
        name: "priority",
        range: "1 to 99",
        example: "50",
        default: "must be there",
        help: "the task of the highest priority goes first",
        read: |draft, value| {
            draft.priority = Some(whole("priority", value, PRIORITIES)?);
            Ok(())
        },
        schema: || integer(PRIORITIES),
    },
    Key {
        name: "policy",
        range: "fifo, rr",
        example: "\"rr\"",
        default: "`fifo`, or `rr` where there is a `slice_ms`",
        help: "rr: tasks of one priority take turns; fifo: the first of them runs until it sleeps",
        read: |draft, value| {
            let given = text("policy", value, "rr")?;
            draft.policy = Some(match given.as_str() {
                "fifo" => Policy::Fifo,
                "rr" => Policy::RoundRobin,
                _ => return Err(BandError::Policy(given)),
            });
            Ok(())
        },
        schema: || json_schema!({ "type": "string", "enum": ["fifo", "rr"] }),
    },
    Key {
        name: "slice_ms",
        range: "1 to 1000 ms",
        example: "100",
        default: "100 with `rr`",
        help: "the length of a turn",
        read: |draft, value| {
            let ms: i64 = whole("slice_ms", value, SLICES_MS)?;
            draft.slice = Some(Millis(ms.unsigned_abs()));
            Ok(())
        },
        schema: || integer(SLICES_MS),
    },
];

/// The schema of a whole number of a range.
fn integer(range: RangeInclusive<i64>) -> Schema {
    json_schema!({ "type": "integer", "minimum": range.start(), "maximum": range.end() })
}

fn text(key: &'static str, value: &Raw, example: &'static str) -> Result<String, BandError> {
    let text = value.text(example);
    text.map(str::to_string)
        .map_err(|source| BandError::Value { key, source })
}

/// A whole number of a range that the type holds.
fn whole<T: TryFrom<i64>>(
    key: &'static str,
    value: &Raw,
    range: RangeInclusive<i64>,
) -> Result<T, BandError> {
    let number = value.whole(range.clone());
    let number = number.map_err(|source| BandError::Value { key, source })?;
    T::try_from(number).map_err(|_| {
        let (least, most) = range.into_inner();
        let given = number;
        let source = ValueError::OutOfRange { given, least, most };
        BandError::Value { key, source }
    })
}

fn check_comm(pattern: &str) -> Result<(), CommError> {
    if pattern.is_empty() || pattern.contains('\0') {
        return Err(CommError::NoName);
    }
    if pattern.bytes().filter(|&byte| byte != b'*').count() > COMM_CHARS {
        return Err(CommError::LongName);
    }
    match pattern.len() < BAND_GLOB {
        true => Ok(()),
        false => Err(CommError::LongPattern),
    }
}

fn check_cgroup(path: &str) -> Result<(), CgroupError> {
    let plain =
        !path.contains("//") && !path.contains('\0') && (path == "/" || !path.ends_with('/'));
    if !path.starts_with('/') || !plain || folders(path).any(|f| f == "." || f == "..") {
        return Err(CgroupError::NoPath);
    }
    if folders(path).any(|folder| folder.len() >= BAND_NAME) {
        return Err(CgroupError::LongFolder);
    }
    match path.len() < BAND_PATH {
        true => Ok(()),
        false => Err(CgroupError::LongPath),
    }
}

impl Draft {
    /// The rule, if the keys make one.
    fn finish(self) -> Result<Band, BandError> {
        if self.comm.is_none() && self.cgroup.is_none() && self.nice.is_none() {
            return Err(BandError::NoTasks);
        }
        let priority = self.priority.ok_or(BandError::NoPriority)?;
        let turn = match (self.policy, self.slice) {
            (None, slice) => slice,
            (Some(Policy::RoundRobin), slice) => Some(slice.unwrap_or(SLICE)),
            (Some(Policy::Fifo), None) => None,
            (Some(Policy::Fifo), Some(_)) => return Err(BandError::SliceOfFifo),
        };
        Ok(Band {
            comm: self.comm,
            cgroup: self.cgroup,
            nice: self.nice,
            priority,
            slice_ms: turn,
        })
    }
}

impl Band {
    /// Reads a rule from its keys.
    ///
    /// # Errors
    /// The mistake and its place; no place where a key is missing.
    pub(crate) fn read(entries: &[Entry]) -> Result<Band, (Option<Range<usize>>, BandError)> {
        let known = |name: &str| KEYS.iter().any(|key| key.name == name);
        if let Some((key, _)) = entries.iter().find(|(key, _)| !known(key.get_ref())) {
            return Err((Some(key.span()), BandError::Key(key.get_ref().clone())));
        }
        let find = |name: &str| entries.iter().find(|(key, _)| key.get_ref() == name);
        let place = |error: BandError| {
            let entry = error.key().and_then(find);
            (entry.map(|(_, value)| value.span()), error)
        };
        let mut draft = Draft::default();
        for key in KEYS {
            if let Some((_, value)) = find(key.name) {
                (key.read)(&mut draft, value.get_ref()).map_err(place)?;
            }
        }
        draft.finish().map_err(place)
    }
}
