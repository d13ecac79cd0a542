// SPDX-License-Identifier: GPL-2.0-or-later
//! The keys of a rule of the real-time band: what they take, what they mean, and how they are
//! read, from a `[[band]]` of a file and from `--band`.

use std::ops::RangeInclusive;

use schemars::{Schema, json_schema};

use super::Band;
use crate::interface::{BAND_GLOB, BAND_NAME, BAND_PATH};
use crate::rule::{self, CgroupError, CommError, Key, RuleError, User, folders};
use crate::value::{Millis, Raw, ValueError};

/// Priorities, as of `SCHED_FIFO`: the highest goes first.
const PRIORITIES: RangeInclusive<i64> = 1..=99;
const NICENESSES: RangeInclusive<i64> = -20..=19;
/// Turns of a round robin, milliseconds.
const SLICES_MS: RangeInclusive<i64> = 1..=1_000;
/// The kernel's (`RR_TIMESLICE`).
const SLICE: Millis = Millis(100);

/// A rule of which some keys have been read.
#[derive(Default)]
pub(crate) struct Draft {
    comm: Option<String>,
    cgroup: Option<String>,
    nice: Option<i8>,
    user: Option<User>,
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

/// Every key, in the order in which they are read, shown and documented.
const KEYS: &[Key<Draft>] = &[
    Key {
        name: "comm",
        range: "1 to 15 characters, * and ?",
        example: "\"ffmpeg*\"",
        default: "any command",
        help: "the command's name, as /proc/PID/comm has it",
        read: |draft, value| {
            draft.comm = Some(check_comm(rule::comm(value)?)?);
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
            draft.cgroup = Some(check_cgroup(rule::cgroup(value, "/rt")?)?);
            Ok(())
        },
        schema: || json_schema!({ "type": "string", "pattern": "^/" }),
    },
    Key {
        name: "nice",
        range: "-20 to 19",
        example: "-20",
        default: "any niceness",
        help: "the niceness",
        read: |draft, value| {
            draft.nice = Some(whole("nice", value, NICENESSES)?);
            Ok(())
        },
        schema: || integer(NICENESSES),
    },
    Key {
        name: "user",
        range: "a name, or a number",
        example: "\"audio\"",
        default: "any user",
        help: "the task's real and effective user; a rule has at least one of these four keys, and \
               matches the tasks for which all of them hold",
        read: |draft, value| {
            draft.user = Some(rule::user(value)?);
            Ok(())
        },
        schema: rule::user_schema,
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
            let given = rule::text("policy", value, "rr")?;
            draft.policy = Some(match given.as_str() {
                "fifo" => Policy::Fifo,
                "rr" => Policy::RoundRobin,
                _ => return Err(RuleError::Policy(given)),
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

/// A whole number of a range that the type holds.
fn whole<T: TryFrom<i64>>(
    key: &'static str,
    value: &Raw,
    range: RangeInclusive<i64>,
) -> Result<T, RuleError> {
    let number = value.whole(range.clone());
    let number = number.map_err(|source| RuleError::Value { key, source })?;
    T::try_from(number).map_err(|_| {
        let (least, most) = range.into_inner();
        let given = number;
        let source = ValueError::OutOfRange { given, least, most };
        RuleError::Value { key, source }
    })
}

/// Checks that the BPF program has room for a pattern.
fn check_comm(given: String) -> Result<String, RuleError> {
    let source = CommError::LongPattern;
    if given.len() < BAND_GLOB { Ok(given) } else { Err(RuleError::Comm { given, source }) }
}

/// Checks that the BPF program has room for a path.
fn check_cgroup(given: String) -> Result<String, RuleError> {
    let source = if folders(&given).any(|folder| folder.len() >= BAND_NAME) {
        CgroupError::LongFolder
    } else if given.len() >= BAND_PATH {
        CgroupError::LongPath
    } else {
        return Ok(given);
    };
    Err(RuleError::Cgroup { given, source })
}

impl rule::Draft for Draft {
    type Rule = Band;
    const KEYS: &'static [Key<Draft>] = KEYS;
    const EXAMPLE: &'static str = "comm=ffmpeg*,priority=50";

    fn finish(self) -> Result<Band, RuleError> {
        let named = self.comm.is_some() || self.cgroup.is_some() || self.nice.is_some();
        if !named && self.user.is_none() {
            return Err(RuleError::NoTasks("comm, cgroup, nice or user"));
        }
        let priority = self.priority.ok_or(RuleError::NoPriority(PRIORITIES))?;
        let turn = match (self.policy, self.slice) {
            (None, slice) => slice,
            (Some(Policy::RoundRobin), slice) => Some(slice.unwrap_or(SLICE)),
            (Some(Policy::Fifo), None) => None,
            (Some(Policy::Fifo), Some(_)) => return Err(RuleError::SliceOfFifo),
        };
        Ok(Band {
            comm: self.comm,
            cgroup: self.cgroup,
            nice: self.nice,
            user: self.user,
            priority,
            slice_ms: turn,
        })
    }
}
