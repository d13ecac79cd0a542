// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of who is let in and put back, over a tree of /proc and /sys that a test lays out.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use super::*;
use perch_plan::Partial;

/// Policies by task; a task that is missing has ended.
#[derive(Clone, Default)]
struct Tasks {
    policies: Rc<RefCell<BTreeMap<u32, i32>>>,
    /// Those that may not be changed.
    barred: Rc<RefCell<BTreeSet<u32>>>,
    /// One that ends between the look and the change.
    ends: Rc<RefCell<Option<u32>>>,
}

impl System for Tasks {
    fn policy(&self, tid: u32) -> io::Result<i32> {
        let found = self.policies.borrow().get(&tid).copied();
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
    }

    fn set_policy(&mut self, tid: u32, policy: i32) -> io::Result<()> {
        if self.barred.borrow().contains(&tid) {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        if *self.ends.borrow() == Some(tid) {
            self.policies.borrow_mut().remove(&tid);
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        self.policies.borrow_mut().insert(tid, policy);
        Ok(())
    }
}

/// A system of a few tasks.
struct Lab {
    root: tempfile::TempDir,
    tasks: Tasks,
    members: Members<Tasks>,
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Lab {
    fn new(rules: &[&str]) -> Lab {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self/task/1")).unwrap();
        let tasks = Tasks::default();
        let members = Members::new(Tree::new(root.path()), tasks.clone());
        let mut lab = Lab { root, tasks, members };
        lab.follow(rules);
        lab
    }

    fn follow(&mut self, rules: &[&str]) {
        let tree = Tree::new(self.root.path());
        let rules = rules.iter().map(|rule| {
            let rule: Partial = rule.parse().unwrap();
            Fits::of(&rule, &tree).unwrap()
        });
        self.members.follow(rules.collect());
    }

    /// A thread of a process, with the flags of its stat.
    fn task(&self, process: u32, tid: u32, comm: &str, user: u32, (flags, policy): (u32, i32)) {
        let stat =
            format!("{tid} ({comm}) S 1 1 1 0 -1 {flags} {}0 {policy} 0 0\n", "0 ".repeat(30));
        let status = format!("Name:\t{comm}\nUid:\t7\t{user}\t7\t7\n");
        let root = self.root.path().join("proc");
        for folder in [root.join(format!("{process}/task/{tid}")), root.join(tid.to_string())] {
            // The folder of a thread that is not its process's first is there, and not listed.
            write(&folder.join("stat"), &stat);
            write(&folder.join("comm"), &format!("{comm}\n"));
            write(&folder.join("status"), &status);
        }
        self.tasks.policies.borrow_mut().insert(tid, policy);
    }

    fn cgroup(&self, path: &str, tids: &str) {
        let file = format!("sys/fs/cgroup{path}/cgroup.threads");
        write(&self.root.path().join(file), tids);
    }

    fn policies(&self) -> Vec<(u32, i32)> {
        self.tasks.policies.borrow().clone().into_iter().collect()
    }
}

const USER: (u32, i32) = (0, OTHER);

#[test]
fn a_cgroup_has_its_tasks_in_and_nobody_else() {
    let mut lab = Lab::new(&["cgroup=/web"]);
    lab.task(10, 10, "web", 0, USER);
    lab.task(10, 11, "thread", 0, (0, BATCH | RESET_ON_FORK));
    lab.task(12, 12, "fifo", 0, (0, 1));
    lab.task(13, 13, "idle", 0, (0, 5));
    lab.task(14, 14, "kworker", 0, (0x0020_0000, OTHER));
    lab.task(15, 15, "below", 0, USER);
    lab.task(16, 16, "other", 0, USER);
    lab.cgroup("/web", "10\n11\n12\n13\n14\n1\n999\n");
    lab.cgroup("/web/a/b", "15\n");
    lab.cgroup("/webs", "16\n");
    lab.tasks.policies.borrow_mut().insert(1, OTHER);
    let found = lab.members.look();
    let expected = Found { members: 3, ..Found::default() };
    assert_eq!(found, expected);
    let inside = [
        (1, OTHER),
        (10, EXT),
        (11, EXT | RESET_ON_FORK),
        (12, 1),
        (13, 5),
        (14, OTHER),
        (15, EXT),
        (16, OTHER),
    ];
    assert_eq!(lab.policies(), inside);

    // One moves out, one in.
    lab.cgroup("/web/a/b", "16\n");
    assert_eq!(lab.members.look().members, 3);
    assert_eq!(lab.policies()[6..], [(15, OTHER), (16, EXT)]);

    lab.members.release();
    let back = [(10, OTHER), (11, BATCH | RESET_ON_FORK)];
    assert_eq!(lab.policies()[1..3], back);
    assert_eq!(lab.policies()[7], (16, OTHER));
    assert_eq!(lab.members.look(), Found::default());
}

#[test]
fn a_child_that_left_before_a_look_is_put_back() {
    let mut lab = Lab::new(&["cgroup=/web"]);
    lab.cgroup("/web", "10\n");
    lab.task(10, 10, "web", 0, USER);
    lab.members.look();
    lab.task(20, 20, "child", 0, (0, EXT));
    for _ in 1..WALK_EVERY {
        lab.members.look();
        assert_eq!(lab.policies(), [(10, EXT), (20, EXT)], "only a walk finds it");
    }
    lab.members.look();
    assert_eq!(lab.policies(), [(10, EXT), (20, OTHER)]);
    // One that is born while all go back.
    lab.task(21, 21, "child", 0, (0, EXT));
    lab.members.release();
    assert_eq!(lab.policies(), [(10, OTHER), (20, OTHER), (21, OTHER)]);
}

#[test]
fn names_and_users_are_those_of_threads() {
    let mut lab = Lab::new(&["comm=work*", "cgroup=/web,user=33", "comm=x,user=33"]);
    lab.cgroup("/web", "10\n11\n");
    lab.task(10, 10, "main", 0, USER);
    lab.task(10, 11, "worker", 0, USER);
    lab.task(12, 12, "y", 33, USER);
    lab.task(13, 13, "x", 33, USER);
    lab.task(14, 14, "x", 7, USER);
    assert_eq!(lab.members.look().members, 2);
    let inside = [(10, OTHER), (11, EXT), (12, OTHER), (13, EXT), (14, OTHER)];
    assert_eq!(lab.policies(), inside);
    // The thread gets another name, and process 10 another user.
    lab.task(10, 11, "idler", 0, (0, EXT));
    lab.task(10, 10, "main", 33, USER);
    assert_eq!(lab.members.look().members, 2);
    let inside = [(10, EXT), (11, OTHER), (12, OTHER), (13, EXT), (14, OTHER)];
    assert_eq!(lab.policies(), inside);
}

#[test]
fn new_rules_count_from_the_next_look() {
    let mut lab = Lab::new(&["cgroup=/a"]);
    lab.cgroup("/a", "10\n");
    lab.cgroup("/b", "11\n");
    lab.task(10, 10, "a", 0, (0, BATCH));
    lab.task(11, 11, "b", 0, USER);
    lab.members.look();
    lab.follow(&["cgroup=/b"]);
    assert_eq!(lab.policies(), [(10, EXT), (11, OTHER)]);
    lab.members.look();
    assert_eq!(lab.policies(), [(10, BATCH), (11, EXT)]);
    lab.follow(&[]);
    assert_eq!(lab.policies(), [(10, BATCH), (11, OTHER)]);
}

#[test]
fn a_task_that_ends_is_no_trouble_and_a_refusal_is_told_once() {
    let mut lab = Lab::new(&["cgroup=/web"]);
    lab.cgroup("/web", "10\n11\n12\n");
    for tid in [10, 11, 12] {
        lab.task(tid, tid, "a", 0, USER);
    }
    *lab.tasks.ends.borrow_mut() = Some(10);
    lab.tasks.barred.borrow_mut().extend([11, 12]);
    let found = lab.members.look();
    assert_eq!((found.members, found.refused), (0, 2));
    let said = found.trouble.unwrap();
    assert!(said.starts_with("the kernel keeps task 11 out: "), "{said}");
    let found = lab.members.look();
    assert_eq!((found.refused, found.trouble), (2, None));
    lab.tasks.barred.borrow_mut().clear();
    let found = lab.members.look();
    assert_eq!((found.members, found.refused), (2, 0));
}
