// SPDX-License-Identifier: GPL-2.0-or-later
//! The checks in words: what was found, and what to do.

use std::fmt::Display;

use perch_machine::{CapacitySource, Machine, MachineError, cpulist};
use perch_policy::Mode;
use perch_scheduler::doctor::{Diagnosis, Functions, Groups, Load, RealTime, Rights, Task, Unlike};

use super::{CONFIGURATION, Check, Checks, Mark};

/// The oldest kernel into which perch has been loaded.
const OLDEST: (u32, u32) = (6, 16);

/// The first kernel that gives sched_ext's tasks a part of a CPU that real-time tasks keep busy.
const SPARES_TASKS: (u32, u32) = (7, 0);

/// Things that are named before the rest is counted.
const NAMED: usize = 5;

/// Characters of a line of words; only a hostile file has more to say.
const MOST_CHARS: usize = 2000;

impl Checks {
    /// Puts what was found into words.
    pub(super) fn of(found: &Diagnosis) -> Checks {
        let mut checks = vec![
            kernel(found),
            btf(found),
            rights(found.rights),
            scheduler(found),
            functions(found),
            task_groups(found),
            machine(found),
            offline(found),
            capacities(found),
        ];
        checks.extend(mechanisms(found));
        checks.extend([
            memory(found),
            isolated(found),
            cgroups(found),
            limits(found),
            idle_groups(found),
            processes(found),
            real_time(found),
            configuration(found),
        ]);
        let can_run = checks.iter().all(|check| check.mark != Mark::Problem);
        Checks {
            kernel: plain(&found.version),
            can_run,
            modes: found.load.as_ref().ok().map(|load| load.modes.to_string()),
            checks,
        }
    }
}

/// A line of words: characters that end a line or steer a terminal are written out.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        match c {
            _ if at == MOST_CHARS => {
                out.push('…');
                break;
            }
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

fn check(name: &'static str, mark: Mark, found: impl Display) -> Check {
    Check { name, mark, found: plain(&found.to_string()), to_do: None }
}

impl Check {
    fn advise(self, what: impl Display) -> Check {
        Check { to_do: Some(plain(&what.to_string())), ..self }
    }
}

/// The first of some things, and how many more there are.
fn list<T>(things: &[T], words: impl Fn(&T) -> String) -> String {
    let named: Vec<String> = things.iter().take(NAMED).map(words).collect();
    match things.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// A count with its noun.
fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// The first two numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn kernel(found: &Diagnosis) -> Check {
    const NAME: &str = "kernel";
    if let Err(error) = &found.sched_ext {
        let check = check(NAME, Mark::Problem, error);
        return check
            .advise("boot such a kernel (Debian's forky, sid and trixie-backports have one)");
    }
    let has = format!("Linux {} has sched_ext", found.version);
    match version(&found.version) {
        Some(version) if version < OLDEST => {
            let (major, minor) = OLDEST;
            let words = format!("{has}; nobody has loaded perch into one before {major}.{minor}");
            check(NAME, Mark::Note, words)
        }
        _ => check(NAME, Mark::Ok, has),
    }
}

fn btf(found: &Diagnosis) -> Check {
    const NAME: &str = "btf";
    match &found.btf {
        Ok(()) => check(NAME, Mark::Ok, "the kernel describes its types"),
        Err(error) => check(NAME, Mark::Problem, error).advise("boot a kernel that is built so"),
    }
}

fn rights(rights: Rights) -> Check {
    const NAME: &str = "rights";
    match rights {
        Rights::Enough => check(NAME, Mark::Ok, "this user may load a scheduler"),
        Rights::User => check(
            NAME,
            Mark::Note,
            "this user may not load a scheduler, which needs CAP_BPF and CAP_PERFMON",
        )
        .advise("sudo perch run"),
        Rights::Withheld => {
            check(NAME, Mark::Problem, "root lacks CAP_BPF and CAP_PERFMON here, as in a container")
                .advise("run perch on the host, or give the container both")
        }
    }
}

fn scheduler(found: &Diagnosis) -> Check {
    const NAME: &str = "scheduler";
    match &found.free {
        Ok(()) => check(NAME, Mark::Ok, "no sched_ext scheduler is loaded"),
        Err(error) => {
            let words = error.to_string();
            let (what, to_do) = words.split_once("; ").unwrap_or((&words, "stop it first"));
            check(NAME, Mark::Problem, what).advise(to_do)
        }
    }
}

fn functions(found: &Diagnosis) -> Check {
    const NAME: &str = "functions";
    let found = match &found.functions {
        Ok(Some(found)) => found,
        Ok(None) => return check(NAME, Mark::Unknown, "the kernel has no BTF that names them"),
        Err(error) => return check(NAME, Mark::Unknown, error),
    };
    let Functions { needed, missing, unlike, .. } = found;
    let mut faults = Vec::new();
    if !missing.is_empty() {
        faults.push(format!(
            "the kernel lacks {} of {needed} functions: {}",
            missing.len(),
            list(missing, String::clone)
        ));
    }
    if !unlike.is_empty() {
        faults.push(format!(
            "the kernel describes {} with other arguments than sched_ext's callers pass: {}",
            count(unlike.len(), "function"),
            list(unlike, in_words)
        ));
    }
    match (missing.is_empty(), unlike.is_empty()) {
        (true, true) => {
            check(NAME, Mark::Ok, format!("the kernel has all {needed} functions that perch calls"))
        }
        (false, _) => {
            let (major, minor) = OLDEST;
            let to_do = format!("boot Linux {major}.{minor} or newer, with sched_ext");
            check(NAME, Mark::Problem, faults.join("; ")).advise(to_do)
        }
        (true, false) => check(NAME, Mark::Problem, faults.join("; ")).advise(
            "try another build of the kernel; no scheduler that calls these functions loads there",
        ),
    }
}

fn in_words(function: &Unlike) -> String {
    let Unlike { name, takes, passed } = function;
    if takes == passed {
        format!("{name} ({takes}, of other types)")
    } else {
        format!("{name} ({takes}, not {passed})")
    }
}

fn task_groups(found: &Diagnosis) -> Check {
    const NAME: &str = "task-groups";
    let (Ok(()), Ok(Some(functions)), Ok(load)) = (&found.sched_ext, &found.functions, &found.load)
    else {
        let why = "cannot be told without sched_ext, BTF and a machine";
        return check(NAME, Mark::Unknown, why);
    };
    let unknown = found.unknown_callbacks();
    if !unknown.is_empty() {
        let words = format!(
            "the kernel, built without CONFIG_EXT_GROUP_SCHED, would refuse perch's callbacks {}",
            list(&unknown, |name| name.to_string())
        );
        let check = check(NAME, Mark::Problem, words);
        return check.advise("perch run --set groups=0; cpu.weight of cgroups then does nothing");
    }
    if functions.callbacks.contains("cgroup_init") || load.left_out.contains(&"cgroup_init") {
        let words = "cgroups are not followed: cpu.weight would do nothing";
        return check(NAME, Mark::Note, words);
    }
    check(NAME, Mark::Ok, "perch would follow cgroups' cpu.weight")
}

/// The machine that perch sees; else the check's words for its lack.
fn loaded<'a>(found: &'a Diagnosis, name: &'static str) -> Result<&'a Load, Check> {
    let load = found.load.as_ref();
    load.map_err(|_| check(name, Mark::Unknown, "cannot be told without a machine"))
}

fn machine(found: &Diagnosis) -> Check {
    const NAME: &str = "machine";
    match &found.load {
        Ok(load) => check(NAME, Mark::Ok, parts(&load.machine)),
        Err(MachineError::Invalid(problem)) if !problem.expected.is_empty() => {
            let words = format!("{}: {}", problem.key, problem.reason);
            check(NAME, Mark::Problem, words).advise(&problem.expected)
        }
        Err(error) => check(NAME, Mark::Problem, error),
    }
}

fn parts(machine: &Machine) -> String {
    let clusters = match machine.clusters() {
        0 => "no clusters".to_string(),
        clusters => count(clusters, "cluster"),
    };
    let cpus = machine.cpus.len();
    // The processor's name, which comes first where the machine was detected.
    let name = machine.description.split_once(&format!(", {cpus} CPUs"));
    format!(
        "{}: {}, {}, {}, {clusters}, {}",
        name.map_or(machine.name.as_str(), |(name, _)| name),
        count(cpus, "CPU"),
        count(machine.cores(), "core"),
        count(machine.llcs(), "last-level cache"),
        count(machine.nodes(), "node")
    )
}

fn cpus(cpus: &[u32]) -> String {
    let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{noun} {}", cpulist::format(cpus))
}

fn offline(found: &Diagnosis) -> Check {
    const NAME: &str = "offline-cpus";
    match &found.cpus {
        Err(error) => check(NAME, Mark::Unknown, error),
        Ok(found) if found.offline.is_empty() => check(NAME, Mark::Ok, "all CPUs are online"),
        Ok(found) => {
            let words =
                format!("offline: {}; perch loads again when one comes", cpus(&found.offline));
            check(NAME, Mark::Note, words)
        }
    }
}

fn capacities(found: &Diagnosis) -> Check {
    const NAME: &str = "capacities";
    const WRITE: &str = "perch machine detect > my.toml, write their capacity into it, and perch run \
                         --machine my.toml";
    let load = match loaded(found, NAME) {
        Ok(load) => load,
        Err(check) => return check,
    };
    let machine = &load.machine;
    let notes = || {
        let notes = load.capacity_notes.iter().chain(&load.ranking_note);
        notes.map(String::as_str)
    };
    if machine.is_asymmetric() {
        let mut kinds: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
        kinds.sort_unstable_by(|a, b| b.cmp(a));
        kinds.dedup();
        let kinds = list(&kinds, |kind| {
            let of = machine.cpus.iter().filter(|cpu| cpu.capacity == *kind);
            format!("{} of {kind}", count(of.count(), "CPU"))
        });
        let words: Vec<&str> = std::iter::once(kinds.as_str()).chain(notes()).collect();
        let words = words.join("; ");
        return match load.capacity_source {
            CapacitySource::Frequency => check(NAME, Mark::Note, words).advise(WRITE),
            _ => check(NAME, Mark::Ok, words),
        };
    }
    match &found.cpus {
        Ok(found) if !found.slow.is_empty() => {
            let mut words = vec![format!("slower cores: {}", cpus(&found.slow))];
            words.extend(notes().map(String::from));
            words.push("perch takes all CPUs for alike".to_string());
            check(NAME, Mark::Note, words.join("; ")).advise(WRITE)
        }
        _ => {
            let words: Vec<&str> =
                std::iter::once("all CPUs have the same capacity").chain(notes()).collect();
            check(NAME, Mark::Ok, words.join("; "))
        }
    }
}

fn mechanisms(found: &Diagnosis) -> Vec<Check> {
    let Ok(load) = &found.load else {
        let all = perch_policy::Mechanism::ALL.into_iter();
        let names = all.map(perch_policy::Mechanism::name);
        return names.filter_map(|name| loaded(found, name).err()).collect();
    };
    let choices = load.choices.iter().map(|chosen| {
        let (name, help) = (chosen.mechanism.name(), chosen.mechanism.help());
        let noted = load.notes.iter().any(|note| note.starts_with(&format!("{name} ")));
        let mark = if noted { Mark::Note } else { Mark::Ok };
        match chosen.mode {
            Mode::Off => check(name, mark, format!("off: {}", chosen.why)),
            mode => check(name, mark, format!("{mode}: {help} ({})", chosen.why)),
        }
    });
    choices.collect()
}

/// Bytes as MiB, at least one.
fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn memory(found: &Diagnosis) -> Check {
    const NAME: &str = "memory";
    let load = match loaded(found, NAME) {
        Ok(load) => load,
        Err(check) => return check,
    };
    let Ok(needed) = load.memory else {
        return check(NAME, Mark::Unknown, "the configuration asks for more than perch takes");
    };
    let words = format!("perch would fill {} MiB", mib(needed));
    match found.available {
        Some(available) if available < needed => {
            let words = format!("{words}, and only {} MiB are free", available >> 20);
            let check = check(NAME, Mark::Note, words);
            check.advise("fewer processes or groups in the configuration (perch run --help)")
        }
        Some(available) => {
            check(NAME, Mark::Ok, format!("{words}; {} MiB are free", available >> 20))
        }
        None => check(NAME, Mark::Ok, words),
    }
}

fn isolated(found: &Diagnosis) -> Check {
    const NAME: &str = "isolated-cpus";
    let apart = match &found.cpus {
        Ok(apart) => apart,
        Err(error) => return check(NAME, Mark::Unknown, error),
    };
    let mut kinds = Vec::new();
    if !apart.isolated.is_empty() {
        kinds.push(format!("isolated: {}", cpus(&apart.isolated)));
    }
    if !apart.tickless.is_empty() {
        kinds.push(format!("nohz_full: {}", cpus(&apart.tickless)));
    }
    if let Ok(Groups { isolated, .. }) = &found.groups {
        if !isolated.is_empty() {
            let groups = list(isolated, String::clone);
            kinds.push(format!("isolated partitions: {groups}"));
        }
    }
    if kinds.is_empty() {
        return check(NAME, Mark::Ok, "no CPU is isolated");
    }
    let words = format!(
        "{}; perch, as the kernel, puts no task on an isolated CPU that is not bound to such CPUs, and \
         moves none between them; its slices take a tick",
        kinds.join("; ")
    );
    let to_do = "bind each task there to one CPU (taskset); leave perch where a tick does harm";
    check(NAME, Mark::Note, words).advise(to_do)
}

/// The cgroups that were looked at; else the check's words for their lack.
fn looked<'a>(found: &'a Diagnosis, name: &'static str) -> Result<&'a Groups, Check> {
    let groups = found.groups.as_ref();
    groups.map_err(|error| check(name, Mark::Unknown, error))
}

fn cgroups(found: &Diagnosis) -> Check {
    const NAME: &str = "cgroups";
    let groups = match looked(found, NAME) {
        Ok(groups) => groups,
        Err(check) => return check,
    };
    let looked = format!("looked at {}", count(groups.looked, "cgroup"));
    match (groups.cut, groups.unread.is_empty()) {
        (false, true) => check(NAME, Mark::Ok, looked),
        (true, _) => check(NAME, Mark::Unknown, format!("{looked}, and there are more")),
        (false, false) => {
            let unread = list(&groups.unread, String::clone);
            let words = format!("{looked}; could not read {unread}");
            check(NAME, Mark::Unknown, words).advise("sudo perch doctor")
        }
    }
}

/// A check of the groups `of` which ask for something: the words where there are none, what the others
/// have and what to do, if anything is, and how one is shown.
fn asking<T>(
    found: &Diagnosis,
    name: &'static str,
    of: impl Fn(&Groups) -> &[T],
    show: impl Fn(&T) -> String,
    none: &'static str,
    (have, to_do): (&'static str, Option<&'static str>),
) -> Check {
    let groups = match looked(found, name) {
        Ok(groups) => of(groups),
        Err(check) => return check,
    };
    if groups.is_empty() {
        return check(name, Mark::Ok, none);
    }
    let number = count(groups.len(), "cgroup");
    let words = format!("{number} with {have}: {}", list(groups, show));
    match to_do {
        None => check(name, Mark::Ok, words),
        Some(to_do) => check(name, Mark::Note, words).advise(to_do),
    }
}

fn limits(found: &Diagnosis) -> Check {
    let words = if found.enforces_limits() {
        ("cpu.max, which perch enforces", None)
    } else {
        (
            "cpu.max, which perch enforces from Linux 6.17 on and with groups only, so tasks there may use more",
            Some(
                "leave perch where these limits must hold, or give the groups CPUs of their own (cpuset)",
            ),
        )
    };
    asking(
        found,
        "cpu-limits",
        |groups| &groups.limited,
        |(path, percent)| format!("{path} ({percent:.0} % of a CPU)"),
        "no cgroup limits its CPU time (cpu.max)",
        words,
    )
}

fn idle_groups(found: &Diagnosis) -> Check {
    let words = if found.notices_idle_groups() {
        ("cpu.idle, which perch follows", None)
    } else if found.follows_idle_groups() {
        (
            "cpu.idle, which perch follows as it is when it loads, and from Linux 7.2 on when it changes",
            Some("load perch again after a change"),
        )
    } else {
        (
            "cpu.idle, at which perch looks only where it follows groups",
            Some("cpu.idle = 0 and cpu.weight = 1 there"),
        )
    };
    asking(
        found,
        "idle-groups",
        |groups| &groups.idle,
        String::clone,
        "no cgroup has cpu.idle",
        words,
    )
}

fn processes(found: &Diagnosis) -> Check {
    const NAME: &str = "processes";
    match &found.real_time {
        Err(error) => check(NAME, Mark::Unknown, error),
        Ok(RealTime { hidden: true, .. }) => {
            let words = "/proc shows this user no processes of others";
            check(NAME, Mark::Unknown, words).advise("sudo perch doctor")
        }
        Ok(found) => {
            let looked = format!("looked at {} of user space", count(found.looked, "task"));
            if found.cut {
                check(NAME, Mark::Unknown, format!("{looked}, and there are more"))
            } else {
                check(NAME, Mark::Ok, looked)
            }
        }
    }
}

fn real_time(found: &Diagnosis) -> Check {
    const NAME: &str = "real-time";
    let tasks = match &found.real_time {
        Ok(found) => &found.tasks,
        Err(error) => return check(NAME, Mark::Unknown, error),
    };
    if tasks.is_empty() {
        return check(NAME, Mark::Ok, "no task of user space is above sched_ext");
    }
    // Those that run now are named first.
    let mut tasks: Vec<&Task> = tasks.iter().collect();
    tasks.sort_by_key(|task| !task.runs);
    let mut words = format!(
        "{} of user space above sched_ext: {}",
        count(tasks.len(), "task"),
        list(&tasks, |task| {
            let Task { tid, comm, .. } = task;
            let policy = match task.policy {
                "deadline" => "deadline".to_string(),
                policy => format!("{policy} {}", task.priority),
            };
            let runs = if task.runs { ", running" } else { "" };
            format!("{comm} ({tid}, {policy}{runs})")
        })
    );
    if version(&found.version).is_some_and(|version| version < SPARES_TASKS) {
        let (major, minor) = SPARES_TASKS;
        words += &format!(
            "; before Linux {major}.{minor} one that never sleeps starves perch's tasks on its CPU, and \
             the kernel then ejects perch"
        );
    }
    check(NAME, Mark::Note, words).advise("give such tasks CPUs of their own (taskset, cpuset)")
}

fn configuration(found: &Diagnosis) -> Check {
    let Ok(load) = &found.load else {
        return check(CONFIGURATION, Mark::Ok, "it is sound, on some machine");
    };
    match (&load.memory, load.notes.is_empty()) {
        (Err(error), _) => check(CONFIGURATION, Mark::Problem, error),
        (Ok(_), true) => check(CONFIGURATION, Mark::Ok, "perch run takes it"),
        (Ok(_), false) => check(CONFIGURATION, Mark::Note, load.notes.join("; ")),
    }
}
