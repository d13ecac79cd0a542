// SPDX-License-Identifier: GPL-2.0-or-later
//! The members of SCHED_EXT where perch does not schedule all tasks: puts those tasks into that policy
//! that fit a rule, and all others back.
//!
//! The kernel tells nobody of a task that changes its cgroup, name or user, so this module looks, as
//! often as the session asks. A look at cgroups reads the named ones and those below; a rule without a
//! cgroup costs a walk of /proc. A child inherits its parent's policy, and may have left the parent's
//! cgroup before the next look: a walk now and then finds it.

mod system;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

use crate::fits::Fits;
use crate::stat::Stat;
use crate::tree::Tree;
pub(super) use system::{Calls, System};

/// Policies of sched(7), and the flag that a task's children begin with SCHED_OTHER.
const OTHER: i32 = 0;
const BATCH: i32 = 3;
const EXT: i32 = 7;
const RESET_ON_FORK: i32 = 0x4000_0000;

/// Where the kernel shows cgroups, of the second version.
const CGROUPS: &str = "sys/fs/cgroup";

/// Looks of which one walks /proc though no rule asks for it.
const WALK_EVERY: u64 = 16;

/// The most walks by which [`Members::release`] finds children that were born meanwhile. Those of a task
/// that is back begin where it is, so the second walk finds few and the third seldom any.
const RELEASES: usize = 8;

/// The tasks of SCHED_EXT, as far as perch decides about them.
pub(super) struct Members<S: System = Calls> {
    tree: Tree,
    system: S,
    rules: Vec<Fits>,
    /// The members, with the policy that each had. A number may be another task's since: that one had the
    /// policy from a member at its birth, and goes back with it.
    before: BTreeMap<u32, i32>,
    /// Looks since the rules were set.
    looks: u64,
    /// Some trouble since then was told.
    told: bool,
}

/// What a look found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Tasks that are in.
    pub members: u64,
    /// Tasks that fit and that the kernel did not let in.
    pub refused: u64,
    /// The first thing that did not work since the rules were set, in words.
    pub trouble: Option<String>,
}

impl<S: System> Members<S> {
    /// Of the kernel whose /proc, /sys and /etc the tree has. There are no members yet.
    pub fn new(tree: Tree, system: S) -> Members<S> {
        Members { tree, system, rules: Vec::new(), before: BTreeMap::new(), looks: 0, told: false }
    }

    /// Goes by these rules from the next look on. Without a rule there are no members, and those that
    /// there are go back at once.
    pub fn follow(&mut self, rules: Vec<Fits>) {
        if rules.is_empty() {
            self.release();
        }
        self.rules = rules;
        self.looks = 0;
        self.told = false;
    }

    /// Lets those in that fit a rule, and puts all others back.
    pub fn look(&mut self) -> Found {
        if self.rules.is_empty() {
            return Found::default();
        }
        let mut round = Round {
            own: self.tree.numbers("proc/self/task").into_iter().collect(),
            ..Round::default()
        };
        let walks = self.rules.iter().any(|rule| rule.cgroup.is_none());
        self.find_in_cgroups(&mut round);
        if walks || self.looks % WALK_EVERY == 0 {
            self.walk(&mut round);
        }
        self.looks += 1;
        let Round { fit, seen, mut trouble, .. } = round;
        let mut refused = 0;
        for &tid in &fit {
            if let Err(error) = self.let_in(tid) {
                refused += 1;
                trouble.get_or_insert(format!("the kernel keeps task {tid} out: {error}"));
            }
        }
        let gone: Vec<u32> = self.before.keys().copied().collect();
        for tid in gone.into_iter().filter(|tid| !fit.contains(tid)) {
            self.put_back(tid);
        }
        for &tid in seen.difference(&fit) {
            self.put_back(tid);
        }
        Found {
            members: self.before.len() as u64,
            refused,
            trouble: trouble.filter(|_| !std::mem::replace(&mut self.told, true)),
        }
    }

    /// Puts every task of SCHED_EXT back, perch's own and kernel threads left out.
    pub fn release(&mut self) {
        if self.rules.is_empty() {
            return;
        }
        self.rules.clear();
        for _ in 0..RELEASES {
            let mut round = Round::default();
            self.walk(&mut round);
            let members: Vec<u32> = self.before.keys().copied().collect();
            let all = round.seen.iter().copied().chain(members);
            if all.filter(|&tid| self.put_back(tid)).count() == 0 {
                break;
            }
        }
    }

    /// Finds the tasks of the named cgroups that fit.
    fn find_in_cgroups(&self, round: &mut Round) {
        for rule in &self.rules {
            let Some(path) = &rule.cgroup else { continue };
            let mut folders = VecDeque::from([format!("{CGROUPS}{}", path.trim_end_matches('/'))]);
            while let Some(folder) = folders.pop_front() {
                match self.tree.text(&format!("{folder}/cgroup.threads")) {
                    Ok(text) => {
                        let text = text.unwrap_or_default();
                        let tids = text.lines().filter_map(|line| line.parse().ok());
                        round.fit.extend(tids.filter(|&tid| {
                            !round.own.contains(&tid)
                                && (!rule.asks_more() || self.fits(&format!("proc/{tid}"), rule))
                        }));
                    }
                    Err(error) => round.tell(error.to_string()),
                }
                match self.tree.folders(&folder) {
                    Ok(names) => {
                        folders.extend(names.iter().map(|name| format!("{folder}/{name}")));
                    }
                    Err(error) => round.tell(error.to_string()),
                }
            }
        }
    }

    /// Looks at every thread of user space: which ones there are, and which fit a rule that names no
    /// cgroup.
    fn walk(&self, round: &mut Round) {
        let rules: Vec<&Fits> = self.rules.iter().filter(|r| r.cgroup.is_none()).collect();
        for process in self.tree.numbers("proc") {
            if !self.is_of_user_space(process) {
                continue;
            }
            let folder = format!("proc/{process}/task");
            for tid in self.tree.numbers(&folder) {
                if round.own.contains(&tid) {
                    continue;
                }
                round.seen.insert(tid);
                let folder = format!("{folder}/{tid}");
                if rules.iter().any(|rule| self.fits(&folder, rule)) {
                    round.fit.insert(tid);
                }
            }
        }
    }

    /// True if the task, whose folder of /proc this is, fits what a rule asks for besides a cgroup.
    fn fits(&self, folder: &str, rule: &Fits) -> bool {
        let text = self.tree.text(&format!("{folder}/comm")).ok().flatten();
        text.is_some_and(|comm| rule.task(&comm, || self.user(folder)))
    }

    /// The number of the user by whose rights a task acts; none where the task has ended.
    fn user(&self, folder: &str) -> Option<u32> {
        let text = self.tree.text(&format!("{folder}/status")).ok().flatten()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        // Real, effective, saved and of files.
        line.split_whitespace().nth(1)?.parse().ok()
    }

    fn is_of_user_space(&self, tid: u32) -> bool {
        let text = self.tree.text(&format!("proc/{tid}/stat")).ok().flatten();
        let stat = text.as_deref().and_then(Stat::read);
        stat.is_some_and(|stat| !stat.is_kernel_s())
    }

    /// Lets a task in that the kernel's fair class has, and takes note of one that is in.
    fn let_in(&mut self, tid: u32) -> io::Result<()> {
        let Ok(found) = self.system.policy(tid) else {
            self.before.remove(&tid);
            return Ok(());
        };
        let (policy, flag) = (found & !RESET_ON_FORK, found & RESET_ON_FORK);
        match policy {
            EXT => {
                // A child of a member, or of a perch that was killed.
                if !self.before.contains_key(&tid) && self.is_of_user_space(tid) {
                    self.before.insert(tid, OTHER);
                }
                Ok(())
            }
            OTHER | BATCH if self.is_of_user_space(tid) => {
                self.before.remove(&tid);
                match self.system.set_policy(tid, EXT | flag) {
                    Ok(()) => {
                        self.before.insert(tid, policy);
                        Ok(())
                    }
                    Err(error) if has_ended(&error) => Ok(()),
                    Err(error) => Err(error),
                }
            }
            _ => {
                self.before.remove(&tid);
                Ok(())
            }
        }
    }

    /// Puts a task back that is in; false if it was not.
    fn put_back(&mut self, tid: u32) -> bool {
        let policy = self.before.remove(&tid).unwrap_or(OTHER);
        let Ok(found) = self.system.policy(tid) else {
            return false;
        };
        // One that ended meanwhile, or that the kernel does not give back, is the next look's.
        found & !RESET_ON_FORK == EXT
            && self.system.set_policy(tid, policy | found & RESET_ON_FORK).is_ok()
    }
}

/// One look.
#[derive(Default)]
struct Round {
    /// perch's own threads.
    own: BTreeSet<u32>,
    /// Tasks that fit a rule.
    fit: BTreeSet<u32>,
    /// Tasks that a walk met.
    seen: BTreeSet<u32>,
    trouble: Option<String>,
}

impl Round {
    fn tell(&mut self, trouble: String) {
        self.trouble.get_or_insert(trouble);
    }
}

/// True if a task could not be changed because it is gone.
fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests;
