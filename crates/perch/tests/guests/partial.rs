// SPDX-License-Identifier: GPL-2.0-or-later
//! Where perch schedules only some tasks: those that fit a rule are in SCHED_EXT, all others stay with
//! the kernel's scheduler, and all are back there when perch ends.

use perch_lab::guest::Status;

use crate::guest::{Lab, SHELL};
use crate::loaded::Perch;
use crate::service::pid;

const CONFIG: &str = "/etc/perch.toml";

/// Policies of sched(7).
const OTHER: u32 = 0;
const FIFO: u32 = 1;
const EXT: u32 = 7;

/// Makes two cgroups that do not contain each other, and one below the first.
fn make_cgroups(lab: &Lab) {
    lab.text(&format!("{SHELL} cgroups; mkdir -p $ROOT/web/below $ROOT/rest"));
}

/// Starts a task of cgroup `rest`, of another user and of niceness 3, that sleeps and wakes for ever. A
/// task may change no name but its own: this one does on SIGUSR1 and SIGUSR2.
fn start_as_nobody(lab: &Lab) -> u32 {
    let script = "exec 9<>/tmp/never; trap \"printf other > /proc/self/comm\" USR1
         trap \"printf shell > /proc/self/comm\" USR2; while :; do read -t 0.002 never <&9; done";
    let text = lab.text(&format!(
        "sed -i 's,/bin/false,/bin/sh,' /etc/passwd; chmod 666 /tmp/never
         nice -n 3 su nobody -c '{script}' >/dev/null 2>&1 & echo $!"
    ));
    let task = text.trim().parse().unwrap();
    move_to(lab, "rest", task);
    let uid = format!("stat -c %u /proc/{task}");
    lab.until("su is done", || lab.text(&uid) == "65534\n");
    task
}

/// Starts a task of a cgroup that sleeps and wakes for ever without a child.
fn start(lab: &Lab, cgroup: &str) -> u32 {
    let script = format!(
        "echo $$ > /sys/fs/cgroup/{cgroup}/cgroup.procs; exec 9<>/tmp/never
         while :; do read -t 0.002 never <&9; done"
    );
    let text = lab.text(&format!("sh -c '{script}' >/dev/null 2>&1 & echo $!"));
    let task = text.trim().parse().unwrap();
    let at = format!("cat /proc/{task}/cgroup");
    lab.until("it is in its cgroup", || lab.text(&at).ends_with(&format!("/{cgroup}\n")));
    task
}

/// Starts a process of cgroup `web` with a thread of SCHED_FIFO, which it returns.
fn start_fifo(lab: &Lab) -> u32 {
    let text = lab.text(
        "sh -c 'echo $$ > /sys/fs/cgroup/web/cgroup.procs
             exec cyclictest --policy=fifo -p 5 -t1 -i 2000 -q' >/dev/null 2>&1 & echo $!",
    );
    let process: u32 = text.trim().parse().unwrap();
    let mut threads = String::new();
    lab.until("it has two threads", || {
        threads = lab.text(&format!("ls /proc/{process}/task"));
        threads.lines().count() == 2
    });
    let last = threads.lines().last().unwrap();
    last.parse().unwrap()
}

fn move_to(lab: &Lab, cgroup: &str, task: u32) {
    lab.text(&format!("echo {task} > /sys/fs/cgroup/{cgroup}/cgroup.procs"));
}

/// The policies of tasks, which must all be alive.
fn policies(lab: &Lab, tasks: &[u32]) -> Vec<u32> {
    let names: Vec<String> = tasks.iter().map(|task| format!("/proc/{task}/stat")).collect();
    let text = lab.text(&format!("cat {}", names.join(" ")));
    assert_eq!(text.lines().count(), tasks.len(), "{text}");
    let policy = |line: &str| {
        // Field 41; the first one behind the name is 3.
        let fields = line.rsplit_once(')')?.1;
        fields.split_whitespace().nth(41 - 3)?.parse().ok()
    };
    let lines = text.lines().map(|line| policy(line).unwrap_or_else(|| panic!("{line}")));
    lines.collect()
}

/// Waits until the tasks have these policies.
fn become_so(lab: &Lab, what: &str, tasks: &[u32], expected: &[u32]) {
    lab.until(what, || policies(lab, tasks) == expected);
}

/// Waits until so many more wake-ups were decided.
fn wakes(lab: &Lab, perch: &Perch<'_>, more: u64) {
    let before = perch.report().wakeups();
    lab.until("perch decides wake-ups", || perch.report().wakeups() >= before + more);
}

/// Only the tasks of the cgroup are perch's, as they come and go.
fn only_the_cgroup_s(lab: &Lab) {
    make_cgroups(lab);
    let web = start(lab, "web");
    let below = start(lab, "web/below");
    let rest = start(lab, "rest");
    let fifo = start_fifo(lab);
    let tasks = [web, below, rest, fifo];
    become_so(lab, "they have begun", &tasks, &[OTHER, OTHER, OTHER, FIFO]);
    let perch = lab.load("--partial cgroup=/web");
    // The first look came before perch said so.
    assert_eq!(policies(lab, &tasks), [EXT, EXT, OTHER, FIFO]);
    let state = lab.text("cat /sys/kernel/sched_ext/switch_all");
    assert_eq!(state, "0\n");
    wakes(lab, &perch, 100);
    let report = perch.report();
    assert_eq!(report.about.partial, "cgroup=/web");
    // The two, and cyclictest's main thread.
    assert_eq!((report.partial_tasks, report.partial_refused), (3, 0));

    move_to(lab, "rest", web);
    move_to(lab, "web", rest);
    become_so(lab, "one goes and one comes", &tasks, &[OTHER, EXT, EXT, FIFO]);
    move_to(lab, "web", web);
    become_so(lab, "it is back", &tasks, &[EXT, EXT, EXT, FIFO]);

    // Without a task in the cgroup, perch counts nothing, whatever else wakes.
    for task in [web, below, rest, fifo] {
        move_to(lab, "rest", task);
    }
    become_so(lab, "all have gone", &tasks, &[OTHER, OTHER, OTHER, FIFO]);
    lab.until("nobody is counted", || perch.report().partial_tasks == 0);
    let before = perch.report();
    lab.text("hackbench -p -g 1 -l 100");
    let after = perch.report();
    assert_eq!(before.wakeups(), after.wakeups());
    assert_eq!(before.busy_ns, after.busy_ns);

    for task in [web, below] {
        move_to(lab, "web", task);
    }
    become_so(lab, "two are in again", &tasks, &[EXT, EXT, OTHER, FIFO]);
    perch.unload();
    assert_eq!(policies(lab, &tasks), [OTHER, OTHER, OTHER, FIFO]);
    lab.kill(&tasks);
}

#[test]
fn only_tasks_of_the_cgroup_are_perch_s() {
    only_the_cgroup_s(&Lab::boot("7.2", 8));
}

#[test]
#[ignore = "7.2 is tested anyway, for --long"]
fn only_tasks_of_the_cgroup_are_perch_s_on_6_18() {
    only_the_cgroup_s(&Lab::boot("6.18", 8));
}

#[test]
#[ignore = "loads perch four times, for --long"]
fn rules_are_read_again_and_a_kill_leaves_tasks_running() {
    let lab = Lab::boot("7.2", 8);
    make_cgroups(&lab);
    let (web, rest) = (start(&lab, "web"), start(&lab, "rest"));
    let nobody = start_as_nobody(&lab);
    let tasks = [web, rest, nobody];
    lab.put(CONFIG, "[[partial]]\ncgroup = \"/web\"\n");
    let perch = lab.load(&format!("--config {CONFIG}"));
    assert_eq!(policies(&lab, &tasks), [EXT, OTHER, OTHER]);
    // By name, user and cgroup, which needs a walk of all tasks.
    lab.put(
        CONFIG,
        "[[partial]]\ncgroup = \"/rest\"\nuser = \"root\"\n[[partial]]\nuser = 65534\ncomm = \"s*\"\n",
    );
    lab.text(&format!("kill -HUP {}", pid(&lab)));
    perch.says_often("Ctrl-C unloads", 2);
    become_so(&lab, "the new rules count", &tasks, &[OTHER, EXT, EXT]);
    assert_eq!(lab.text(&format!("cut -d' ' -f19 /proc/{nobody}/stat")), "3\n");
    lab.text(&format!("kill -USR1 {nobody}"));
    become_so(&lab, "its name fits no more", &tasks, &[OTHER, EXT, OTHER]);
    lab.text(&format!("kill -USR2 {nobody}"));
    become_so(&lab, "its name fits", &tasks, &[OTHER, EXT, EXT]);

    // A policy of a task that nobody schedules is the fair class's.
    perch.kill();
    lab.until("perch has left", || lab.scheduler().is_empty());
    assert_eq!(policies(&lab, &tasks), [OTHER, EXT, EXT]);
    let ran = || lab.text(&format!("cut -d' ' -f3 /proc/{rest}/schedstat"));
    let before = ran();
    lab.until("it goes on", || ran() != before);
    // The next perch finds those that fit no rule of its own, and puts all back at its end.
    let perch = lab.load("--partial cgroup=/web");
    become_so(&lab, "the others are back", &tasks, &[EXT, OTHER, OTHER]);
    perch.unload();
    assert_eq!(policies(&lab, &tasks), [OTHER, OTHER, OTHER]);

    // Started for all tasks, perch has no right to choose.
    lab.put(CONFIG, "");
    let perch = lab.load(&format!("--config {CONFIG}"));
    lab.put(CONFIG, "[[partial]]\ncgroup = \"/web\"\n");
    lab.text(&format!("kill -HUP {}", pid(&lab)));
    perch.says_often("needs CAP_SYS_NICE", 1);
    assert_eq!(policies(&lab, &tasks), [OTHER, OTHER, OTHER]);
    perch.unload();
    let output = lab.run("perch run --check --partial cgroup=/web --partial user=nosuch");
    assert_eq!(output.status, Status::Code(2));
    let said = output.error_text();
    assert!(said.contains("user: /etc/passwd has no \"nosuch\""), "{said}");
    let said = lab.run("perch run --check --partial cgroup=/web,comm=n*").error_text();
    assert!(said.contains("perch: only tasks of: comm=n*,cgroup=/web\n"), "{said}");
    lab.kill(&tasks);
}
