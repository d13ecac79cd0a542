// SPDX-License-Identifier: GPL-2.0-or-later
//! The rules of `perch run --partial`: which tasks are perch's where it does not schedule all.

use std::fmt;

use schemars::json_schema;

use crate::rule::{self, Key, RuleError, User};

/// Tasks that perch schedules where it is not to schedule all.
///
/// A task is chosen when all that is named is so, by any of several rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// The name of the command, `/proc/PID/comm`: a pattern with `*` and `?`.
    comm: Option<String>,
    /// A cgroup's path below /sys/fs/cgroup, from its root; those below it are meant, too.
    cgroup: Option<String>,
    /// The user by whose rights the task acts.
    user: Option<User>,
}

impl Partial {
    /// Returns the pattern of the command's name, if the rule has one.
    pub fn comm(&self) -> Option<&str> {
        self.comm.as_deref()
    }

    /// Returns the cgroup's path, if the rule has one.
    pub fn cgroup(&self) -> Option<&str> {
        self.cgroup.as_deref()
    }

    /// Returns the user, if the rule has one.
    pub fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }
}

impl fmt::Display for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(User::to_string);
        let pairs = [("comm", &self.comm), ("cgroup", &self.cgroup), ("user", &user)];
        let pairs = pairs.into_iter().filter_map(|(key, value)| {
            let value = value.as_ref()?;
            Some(format!("{key}={value}"))
        });
        f.write_str(&pairs.collect::<Vec<_>>().join(","))
    }
}

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
    const KEYS: &'static [Key<Draft>] = KEYS;
    const EXAMPLE: &'static str = "cgroup=/web";

    fn finish(self) -> Result<Partial, RuleError> {
        if self.0 == Partial::default() {
            return Err(RuleError::NoTasks("comm, cgroup or user"));
        }
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<Partial>().unwrap_err().to_string()
    }

    #[test]
    fn a_rule_is_read_as_it_is_shown() {
        for text in ["cgroup=/web", "comm=nginx*,cgroup=/,user=33", "user=www-data"] {
            assert_eq!(text.parse::<Partial>().unwrap().to_string(), text);
        }
        // A scope of a container, which is longer than the band has room for.
        let long = format!("cgroup=/docker-{}.scope", "0123456789abcdef".repeat(16));
        assert_eq!(long.parse::<Partial>().unwrap().to_string(), long);
    }

    #[test]
    fn refusals_name_the_key_and_what_was_expected() {
        assert_eq!(
            refusal("cgroup=web"),
            "partial \"cgroup=web\": cgroup: \"web\": expected a cgroup's path below /sys/fs/cgroup, such \
             as /rt or /rt/audio"
        );
        for (text, words) in [
            ("", "\"\": expected KEY=VALUE, such as cgroup=/web"),
            ("cgroup", "\"cgroup\": expected KEY=VALUE"),
            ("nice=3", "unknown key \"nice\": expected comm, cgroup or user"),
            ("user=1,user=2", "user is there twice"),
            ("comm=", "comm: \"\": expected a command's name"),
            ("comm=0123456789abcdef", "at most 15 characters"),
            ("user=", "user: \"\": expected a user's name"),
            ("user=-1", "user: \"-1\": expected a user's name"),
            ("user=4294967295", "user: \"4294967295\": expected a user's name"),
        ] {
            let said = refusal(text);
            assert!(said.contains(words), "{said}");
        }
    }
}
