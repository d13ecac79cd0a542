// SPDX-License-Identifier: GPL-2.0-or-later
//! The keys of a rule of `--partial`: what they take, what they mean, and how they are read.

use schemars::json_schema;

use super::Partial;
use super::error::PartialError;
use crate::rule::{self, Key};

/// A rule of which some keys have been read.
#[derive(Default)]
pub(crate) struct Draft(Partial);

/// Every key, in the order in which they are read, shown and documented.
const KEYS: &[Key<Draft>] = &[
    Key {
        name: "comm",
        range: "1 to 15 characters, * and ?",
        example: "\"nginx*\"",
        default: "any command",
        help: "the command's name, as /proc/PID/comm has it",
        read: |draft, value| {
            draft.0.comm = Some(rule::comm(value)?);
            Ok(())
        },
        schema: || json_schema!({ "type": "string", "minLength": 1 }),
    },
    Key {
        name: "cgroup",
        range: "a path",
        example: "\"/web\"",
        default: "any cgroup",
        help: "the cgroup below /sys/fs/cgroup, with the cgroups in it",
        read: |draft, value| {
            draft.0.cgroup = Some(rule::cgroup(value, "/web")?);
            Ok(())
        },
        schema: || json_schema!({ "type": "string", "pattern": "^/" }),
    },
    Key {
        name: "user",
        range: "a name, or a number",
        example: "\"www-data\"",
        default: "any user",
        help: "the user by whose rights the task acts (its effective one); a rule has at least one of \
               these keys, and matches the tasks for which all of them hold",
        read: |draft, value| {
            draft.0.user = Some(rule::user(value)?);
            Ok(())
        },
        schema: rule::user_schema,
    },
];

impl rule::Draft for Draft {
    type Rule = Partial;
    type Error = PartialError;
    const KEYS: &'static [Key<Draft>] = KEYS;
    const EXAMPLE: &'static str = "cgroup=/web";

    fn key_of(error: &PartialError) -> Option<&str> {
        error.key()
    }

    fn finish(self) -> Result<Partial, PartialError> {
        if self.0 == Partial::default() { Err(PartialError::NoTasks) } else { Ok(self.0) }
    }
}
