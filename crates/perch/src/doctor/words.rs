// SPDX-License-Identifier: GPL-2.0-or-later
//! The checks in words: what was found, and what to do.

use std::fmt::Display;

use perch_machine::{CapacitySource, Machine, MachineError, cpulist};
use perch_policy::Mode;
use perch_scheduler::doctor::{Diagnosis, Functions, Groups, Load, RealTime, Rights, Task, Unlike};
use perch_scheduler::stats::processor;

use super::{CONFIGURATION, Check, Checks, Mark};

/// The oldest kernel into which perch has been loaded.
const OLDEST: (u32, u32) = (6, 16);

/// The first kernel that gives sched_ext's tasks a part of a CPU that real-time tasks keep busy.
const SPARES_TASKS: (u32, u32) = (7, 0);

/// Things that are named before the rest is counted.
const NAMED: usize = 5;

/// Characters of a line of words; only a hostile file has more to say.
const MOST_CHARS: usize = 2000;

/// What a check says, whether it came to its end or something that it needs is not there.
type Said = Result<Check, Check>;

/// A check's name, and the check.
type Named = (&'static str, fn(&Diagnosis) -> Said);

/// The checks before those of the mechanisms.
const FIRST: [Named; 9] = [
    ("kernel", kernel),
    ("btf", btf),
    ("rights", rights),
    ("scheduler", scheduler),
    ("functions", functions),
    ("task-groups", task_groups),
    ("machine", machine),
    ("offline-cpus", offline),
    ("capacities", capacities),
];

/// The checks behind them.
const LAST: [Named; 8] = [
    ("memory", memory),
    ("isolated-cpus", isolated),
    ("cgroups", cgroups),
    ("cpu-limits", limits),
    ("idle-groups", idle_groups),
    ("processes", processes),
    ("real-time", real_time),
    (CONFIGURATION, configuration),
];

impl Checks {
    /// Puts what was found into words.
    pub(super) fn of(found: &Diagnosis) -> Checks {
        let all = |named: &[Named]| -> Vec<Check> {
            let said = named.iter().map(|(name, look)| (name, look(found)));
            said.map(|(name, said)| Check { name, ..said.unwrap_or_else(|lack| lack) }).collect()
        };
        let checks = [all(&FIRST), mechanisms(found), all(&LAST)].concat();
        Checks {
            kernel: plain(&found.version),
            can_run: checks.iter().all(|check| check.mark != Mark::Problem),
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

fn check(mark: Mark, found: impl Display) -> Check {
    Check { name: "", mark, found: plain(&found.to_string()), to_do: None }
}

fn ok(found: impl Display) -> Said {
    Ok(check(Mark::Ok, found))
}

fn note(found: impl Display) -> Said {
    Ok(check(Mark::Note, found))
}

fn unknown(error: impl Display) -> Check {
    check(Mark::Unknown, error)
}

/// Something to do about what was found.
fn advise(mark: Mark, found: impl Display, to_do: impl Display) -> Said {
    Ok(Check { to_do: Some(plain(&to_do.to_string())), ..check(mark, found) })
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

fn kernel(found: &Diagnosis) -> Said {
    if let Err(error) = &found.sched_ext {
        let to_do = "boot such a kernel (Debian's forky, sid and trixie-backports have one)";
        return advise(Mark::Problem, error, to_do);
    }
    let has = format!("Linux {} has sched_ext", found.version);
    match version(&found.version) {
        Some(version) if version < OLDEST => {
            let (major, minor) = OLDEST;
            note(format!("{has}; nobody has loaded perch into one before {major}.{minor}"))
        }
        _ => ok(has),
    }
}

fn btf(found: &Diagnosis) -> Said {
    match &found.btf {
        Ok(()) => ok("the kernel describes its types"),
        Err(error) => advise(Mark::Problem, error, "boot a kernel that is built so"),
    }
}

fn rights(found: &Diagnosis) -> Said {
    match found.rights {
        Rights::Enough => ok("this user may load a scheduler"),
        Rights::User => advise(
            Mark::Note,
            "this user may not load a scheduler, which needs CAP_BPF and CAP_PERFMON",
            "sudo perch run",
        ),
        Rights::Withheld => advise(
            Mark::Problem,
            "root lacks CAP_BPF and CAP_PERFMON here, as in a container",
            "run perch on the host, or give the container both",
        ),
    }
}

fn scheduler(found: &Diagnosis) -> Said {
    match &found.free {
        Ok(()) => ok("no sched_ext scheduler is loaded"),
        Err(error) => {
            let words = error.to_string();
            let (what, to_do) = words.split_once("; ").unwrap_or((&words, "stop it first"));
            advise(Mark::Problem, what, to_do)
        }
    }
}

fn functions(found: &Diagnosis) -> Said {
    let found = found.functions.as_ref().map_err(unknown)?;
    let found = found.as_ref().ok_or_else(|| unknown("the kernel has no BTF that names them"))?;
    let Functions { needed, missing, unlike, .. } = found;
    let mut faults = Vec::new();
    let mut to_do = String::new();
    if !unlike.is_empty() {
        faults.push(format!(
            "the kernel describes {} with other arguments than sched_ext's callers pass: {}",
            count(unlike.len(), "function"),
            list(unlike, in_words)
        ));
        to_do =
            "try another build of the kernel; no scheduler that calls these functions loads there"
                .to_string();
    }
    if !missing.is_empty() {
        let (lacks, names) = (missing.len(), list(missing, String::clone));
        faults.insert(0, format!("the kernel lacks {lacks} of {needed} functions: {names}"));
        let (major, minor) = OLDEST;
        to_do = format!("boot Linux {major}.{minor} or newer, with sched_ext");
    }
    match faults.is_empty() {
        true => ok(format!("the kernel has all {needed} functions that perch calls")),
        false => advise(Mark::Problem, faults.join("; "), to_do),
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

fn task_groups(found: &Diagnosis) -> Said {
    let (Ok(()), Ok(Some(functions)), Ok(load)) = (&found.sched_ext, &found.functions, &found.load)
    else {
        return Err(unknown("cannot be told without sched_ext, BTF and a machine"));
    };
    let unknown = found.unknown_callbacks();
    if !unknown.is_empty() {
        let words = format!(
            "the kernel, built without CONFIG_EXT_GROUP_SCHED, would refuse perch's callbacks {}",
            list(&unknown, |name| name.to_string())
        );
        let to_do = "perch run --set groups=0; cpu.weight of cgroups then does nothing";
        return advise(Mark::Problem, words, to_do);
    }
    if functions.callbacks.contains("cgroup_init") || load.left_out.contains(&"cgroup_init") {
        return note("cgroups are not followed: cpu.weight would do nothing");
    }
    ok("perch would follow cgroups' cpu.weight")
}

/// The machine that perch sees.
fn loaded(found: &Diagnosis) -> Result<&Load, Check> {
    found.load.as_ref().map_err(|_| unknown("cannot be told without a machine"))
}

fn machine(found: &Diagnosis) -> Said {
    match &found.load {
        Ok(load) => ok(parts(&load.machine)),
        Err(MachineError::Invalid(problem)) if !problem.expected.is_empty() => {
            let words = format!("{}: {}", problem.key, problem.reason);
            advise(Mark::Problem, words, &problem.expected)
        }
        Err(error) => Ok(check(Mark::Problem, error)),
    }
}

fn parts(machine: &Machine) -> String {
    let clusters = match machine.clusters() {
        0 => "no clusters".to_string(),
        clusters => count(clusters, "cluster"),
    };
    format!(
        "{}: {}, {}, {}, {clusters}, {}",
        processor(machine),
        count(machine.cpus.len(), "CPU"),
        count(machine.cores(), "core"),
        count(machine.llcs(), "last-level cache"),
        count(machine.nodes(), "node")
    )
}

fn cpus(cpus: &[u32]) -> String {
    let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{noun} {}", cpulist::format(cpus))
}

fn offline(found: &Diagnosis) -> Said {
    let offline = &found.cpus.as_ref().map_err(unknown)?.offline;
    match offline.is_empty() {
        true => ok("all CPUs are online"),
        false => note(format!("offline: {}; perch loads again when one comes", cpus(offline))),
    }
}

fn capacities(found: &Diagnosis) -> Said {
    const WRITE: &str = "perch machine detect > my.toml, write their capacity into it, and perch run \
                         --machine my.toml";
    let load = loaded(found)?;
    let machine = &load.machine;
    let with_notes = |first: String| {
        let notes = load.capacity_notes.iter().chain(&load.ranking_note).cloned();
        [first].into_iter().chain(notes).collect::<Vec<_>>().join("; ")
    };
    if machine.is_asymmetric() {
        let mut kinds: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
        kinds.sort_unstable_by(|a, b| b.cmp(a));
        kinds.dedup();
        let words = with_notes(list(&kinds, |kind| {
            let of = machine.cpus.iter().filter(|cpu| cpu.capacity == *kind);
            format!("{} of {kind}", count(of.count(), "CPU"))
        }));
        return match load.capacity_source {
            CapacitySource::Frequency => advise(Mark::Note, words, WRITE),
            _ => ok(words),
        };
    }
    match &found.cpus {
        Ok(found) if !found.slow.is_empty() => {
            let words = with_notes(format!("slower cores: {}", cpus(&found.slow)));
            advise(Mark::Note, words + "; perch takes all CPUs for alike", WRITE)
        }
        _ => ok(with_notes("all CPUs have the same capacity".to_string())),
    }
}

fn mechanisms(found: &Diagnosis) -> Vec<Check> {
    let Ok(load) = &found.load else {
        let all = perch_policy::Mechanism::ALL.into_iter();
        let lack = |name| loaded(found).err().map(|lack| Check { name, ..lack });
        return all.filter_map(|mechanism| lack(mechanism.name())).collect();
    };
    let choices = load.choices.iter().map(|chosen| {
        let (name, help) = (chosen.mechanism.name(), chosen.mechanism.help());
        let noted = load.notes.iter().any(|note| note.starts_with(&format!("{name} ")));
        let mark = if noted { Mark::Note } else { Mark::Ok };
        let words = match chosen.mode {
            Mode::Off => format!("off: {}", chosen.why),
            mode => format!("{mode}: {help} ({})", chosen.why),
        };
        Check { name, ..check(mark, words) }
    });
    choices.collect()
}

fn memory(found: &Diagnosis) -> Said {
    let needed = loaded(found)?.memory.as_ref();
    let needed =
        *needed.map_err(|_| unknown("the configuration asks for more than perch takes"))?;
    let words = format!("perch would fill {} MiB", needed.div_ceil(1 << 20));
    match found.available {
        Some(available) if available < needed => advise(
            Mark::Note,
            format!("{words}, and only {} MiB are free", available >> 20),
            "fewer processes or groups in the configuration (perch run --help)",
        ),
        Some(available) => ok(format!("{words}; {} MiB are free", available >> 20)),
        None => ok(words),
    }
}

fn isolated(found: &Diagnosis) -> Said {
    let apart = found.cpus.as_ref().map_err(unknown)?;
    let mut kinds = Vec::new();
    for (kind, of) in [("isolated", &apart.isolated), ("nohz_full", &apart.tickless)] {
        if !of.is_empty() {
            kinds.push(format!("{kind}: {}", cpus(of)));
        }
    }
    match &found.groups {
        Ok(Groups { isolated, .. }) if !isolated.is_empty() => {
            kinds.push(format!("isolated partitions: {}", list(isolated, String::clone)));
        }
        _ => {}
    }
    if kinds.is_empty() {
        return ok("no CPU is isolated");
    }
    let words = format!(
        "{}; perch, as the kernel, puts no task on an isolated CPU that is not bound to such CPUs, and \
         moves none between them; its slices take a tick",
        kinds.join("; ")
    );
    let to_do = "bind each task there to one CPU (taskset); leave perch where a tick does harm";
    advise(Mark::Note, words, to_do)
}

fn cgroups(found: &Diagnosis) -> Said {
    let groups = found.groups.as_ref().map_err(unknown)?;
    let looked = format!("looked at {}", count(groups.looked, "cgroup"));
    match (groups.cut, groups.unread.is_empty()) {
        (false, true) => ok(looked),
        (true, _) => Err(unknown(format!("{looked}, and there are more"))),
        (false, false) => {
            let unread = list(&groups.unread, String::clone);
            let words = format!("{looked}; could not read {unread}");
            advise(Mark::Unknown, words, "sudo perch doctor")
        }
    }
}

/// Says how many groups have something, how each is shown, and what to do, if anything is.
fn asking<T>(
    groups: &[T],
    show: impl Fn(&T) -> String,
    (have, to_do): (&'static str, Option<&'static str>),
) -> Said {
    let number = count(groups.len(), "cgroup");
    let words = format!("{number} with {have}: {}", list(groups, show));
    match to_do {
        None => ok(words),
        Some(to_do) => advise(Mark::Note, words, to_do),
    }
}

fn limits(found: &Diagnosis) -> Said {
    let limited = &found.groups.as_ref().map_err(unknown)?.limited;
    let words = match found.enforces_limits() {
        _ if limited.is_empty() => return ok("no cgroup limits its CPU time (cpu.max)"),
        true => ("cpu.max, which perch enforces", None),
        false => (
            "cpu.max, which perch enforces from Linux 6.17 on and with groups only, so tasks there may use more",
            Some(
                "leave perch where these limits must hold, or give the groups CPUs of their own (cpuset)",
            ),
        ),
    };
    asking(limited, |(path, percent)| format!("{path} ({percent:.0} % of a CPU)"), words)
}

fn idle_groups(found: &Diagnosis) -> Said {
    let idle = &found.groups.as_ref().map_err(unknown)?.idle;
    let words = match (found.notices_idle_groups(), found.follows_idle_groups()) {
        _ if idle.is_empty() => return ok("no cgroup has cpu.idle"),
        (true, _) => ("cpu.idle, which perch follows", None),
        (false, true) => (
            "cpu.idle, which perch follows as it is when it loads, and from Linux 7.2 on when it changes",
            Some("load perch again after a change"),
        ),
        (false, false) => (
            "cpu.idle, at which perch looks only where it follows groups",
            Some("cpu.idle = 0 and cpu.weight = 1 there"),
        ),
    };
    asking(idle, String::clone, words)
}

fn processes(found: &Diagnosis) -> Said {
    let RealTime { hidden, looked, cut, .. } = found.real_time.as_ref().map_err(unknown)?;
    if *hidden {
        let words = "/proc shows this user no processes of others";
        return advise(Mark::Unknown, words, "sudo perch doctor");
    }
    let looked = format!("looked at {} of user space", count(*looked, "task"));
    match cut {
        true => Err(unknown(format!("{looked}, and there are more"))),
        false => ok(looked),
    }
}

fn real_time(found: &Diagnosis) -> Said {
    let tasks = &found.real_time.as_ref().map_err(unknown)?.tasks;
    if tasks.is_empty() {
        return ok("no task of user space is above sched_ext");
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
    advise(Mark::Note, words, "give such tasks CPUs of their own (taskset, cpuset)")
}

fn configuration(found: &Diagnosis) -> Said {
    let Ok(load) = &found.load else {
        return ok("it is sound, on some machine");
    };
    match &load.memory {
        Err(error) => Ok(check(Mark::Problem, error)),
        Ok(_) if load.notes.is_empty() => ok("perch run takes it"),
        Ok(_) => note(load.notes.join("; ")),
    }
}
