// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether a task fits a rule, on a system whose users are known.

use perch_plan::{Partial, RuleError, User};

use crate::tree::Tree;

/// A rule whose user is known by number.
#[derive(Clone, Debug)]
pub(crate) struct Fits {
    comm: Option<String>,
    /// The cgroup's path, if the rule names one; whoever asks about a task has found it there.
    pub cgroup: Option<String>,
    user: Option<u32>,
}

impl Fits {
    /// Looks the user of a rule up.
    ///
    /// # Errors
    /// [`RuleError::NoUser`] when /etc/passwd does not have the name.
    pub fn of(rule: &Partial, tree: &Tree) -> Result<Fits, RuleError> {
        let user = rule.user().map(|user| number_of(tree, user)).transpose()?;
        Ok(Fits {
            comm: rule.comm().map(str::to_string),
            cgroup: rule.cgroup().map(str::to_string),
            user,
        })
    }
}

/// The number of a user. perch is linked statically, so it cannot ask the C library, which would load a
/// library for each other place of names.
///
/// # Errors
/// [`RuleError::NoUser`] when /etc/passwd does not have the name.
pub(crate) fn number_of(tree: &Tree, user: &User) -> Result<u32, RuleError> {
    let name = match user {
        User::Number(number) => return Ok(*number),
        User::Name(name) => name,
    };
    let text = tree.text("etc/passwd").ok().flatten().unwrap_or_default();
    let number = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        // The second one is the password.
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    });
    number.ok_or_else(|| RuleError::NoUser(name.clone()))
}

impl Fits {
    /// True if the rule asks for more than a cgroup, so that the task itself must be looked at.
    pub fn asks_more(&self) -> bool {
        self.comm.is_some() || self.user.is_some()
    }

    /// True if a task of this command's name fits, as far as that goes; `user` tells the user's number, if
    /// the task is still there, and is asked only if it matters.
    pub fn task(&self, comm: &str, user: impl FnOnce() -> Option<u32>) -> bool {
        let named = |pattern: &String| matches(pattern.as_bytes(), comm.as_bytes());
        self.comm.as_ref().is_none_or(named) && self.user.is_none_or(|uid| user() == Some(uid))
    }
}

/// True if a name fits a pattern, in which `*` stands for any bytes and `?` for one, as the BPF program
/// has it for the real-time band. Whenever what follows a `*` does not fit, it is tried again one byte
/// later in the name.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The place behind the last *, and the byte of the name at which it was tried last.
    let mut star = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, from));
            }
            Some(&byte) if byte == b'?' || byte == name[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((behind, tried)) = star else {
                    return false;
                };
                (at, from) = (behind, tried + 1);
                star = Some((at, from));
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn patterns_have_stars_and_question_marks() {
        let fits = |pattern: &str, name: &str| matches(pattern.as_bytes(), name.as_bytes());
        for (pattern, name) in [
            ("nginx", "nginx"),
            ("ngin*", "nginx: worker"),
            ("*", ""),
            ("?ginx", "nginx"),
            ("*a*b", "xaxaxb"),
            ("a**", "a"),
            ("*worker", "workworker"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("nginx", "nginx2"),
            ("nginx?", "nginx"),
            ("*a*b", "xaxax"),
            ("b*", "ab"),
            ("[n]ginx", "nginx"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_user_is_looked_up() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("etc")).unwrap();
        let passwd = "root:x:0:0::/root:/bin/sh\nwww-data:x:33:33::/:/bin/false\n";
        fs::write(root.path().join("etc/passwd"), passwd).unwrap();
        let tree = Tree::new(root.path());
        let rule: Partial = "comm=a*,user=www-data".parse().unwrap();
        let fits = Fits::of(&rule, &tree).unwrap();
        assert!(fits.task("ab", || Some(33)));
        assert!(!fits.task("ab", || Some(0)) && !fits.task("ab", || None));
        assert!(!fits.task("b", || panic!("the name does not fit")));
        let rule: Partial = "user=www".parse().unwrap();
        let said = Fits::of(&rule, &tree).unwrap_err().to_string();
        assert!(said.starts_with("user: /etc/passwd has no \"www\": "), "{said}");
    }
}
