// SPDX-License-Identifier: GPL-2.0-or-later
//! Values of an rt-app file: readers of single members, what holds for the whole file, and limits.

use super::error::{KeyError, RtAppError};
use super::json::{Member, Value};
use crate::FutexCall;

/// An error that names the line and the key of `member`.
pub fn wrong<T>(member: &Member, why: KeyError) -> Result<T, RtAppError> {
    Err(RtAppError::Key { line: member.line, key: member.key.clone(), why })
}

/// The members of `member`'s value, which has to be an object.
pub fn members(member: &Member) -> Result<&[Member], RtAppError> {
    match &member.value {
        Value::Object(members) => Ok(members),
        _ => wrong(member, KeyError::NoObject),
    }
}

/// The value of `member`, which has to be a number from `low` to `high`.
pub fn number(member: &Member, low: i64, high: i64) -> Result<i64, RtAppError> {
    match member.value {
        Value::Number(number) if (low..=high).contains(&number) => Ok(number),
        _ => wrong(member, KeyError::Number { low, high }),
    }
}

/// The value of `member`, which has to be a text.
pub fn text(member: &Member) -> Result<&str, RtAppError> {
    match &member.value {
        Value::Text(text) => Ok(text),
        _ => wrong(member, KeyError::NoText),
    }
}

/// Costs of futex calls, of writes to memory and of writes to a device.
pub struct Costs {
    pub wait: FutexCall,
    pub wake: FutexCall,
    /// Bytes that a task writes to memory in a microsecond.
    pub mem_rate: u64,
    /// Time of a write to /dev/null of any length, nanoseconds.
    pub write_ns: u64,
}

/// The values that `global` sets for all tasks of the file.
pub struct Global {
    /// The capacity of the CPU on which `run` would be calibrated.
    pub capacity: u32,
    /// Policy of a task that names none.
    pub policy: String,
    /// Bytes that a `mem` or `iorun` writes at a time.
    pub buffer: u64,
    /// The time after which rt-app kills its tasks, nanoseconds; `None` if they end by themselves.
    pub duration_ns: Option<u64>,
    pub costs: Costs,
}
