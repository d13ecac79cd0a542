// SPDX-License-Identifier: GPL-2.0-or-later
//! A round from its beginning to its end.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use crate::calls::{self, Class, now_ns};
use crate::field::Field;
use crate::loader::{self, Loader};
use crate::plan::Plan;
use crate::report::Report;
use crate::storm::{self, tree};
use crate::tasks::{Pulses, Task, Work};

const SECOND_NS: u64 = 1_000_000_000;
/// The longest time for which a canary may not run, and for which a victim may not once the storms
/// are over.
const LONGEST_NS: u64 = 5 * SECOND_NS;
/// The time that storms may take to end, the scheduler's loading included.
const CALM_NS: u64 = 700 * SECOND_NS;

/// Carries out a plan on this machine, which should be a guest: CPUs go offline, cgroups come and go,
/// and tasks are killed.
pub fn run(plan: &Plan) -> Report {
    let began = now_ns();
    let mut report = Report {
        plan: plan.clone(),
        seconds: 0.0,
        done: BTreeMap::new(),
        starts: 0,
        longest_ms: 0.0,
        faults: Vec::new(),
        log: String::new(),
    };
    if let Err(fault) = carry_out(plan, &mut report) {
        report.faults.push(fault);
    }
    judge_log(&mut report);
    report.seconds = (now_ns() - began) as f64 / 1e9;
    report
}

/// Looks for trouble in the kernel's log, which the report has where there is a fault, with the tasks that
/// are blocked then.
fn judge_log(report: &mut Report) {
    let log = match kernel_log() {
        Ok(log) => log,
        Err(error) => return report.faults.push(format!("no kernel log: {error}")),
    };
    for line in perch_lab::guest::trouble(&log) {
        report.faults.push(format!("the kernel: {line}"));
    }
    if report.faults.is_empty() {
        return;
    }
    // Where the kernel has no such key the report goes without.
    let _ = fs::write("/proc/sysrq-trigger", "w");
    let log = kernel_log().unwrap_or(log);
    let lines: Vec<&str> = log.lines().collect();
    report.log = lines[lines.len().saturating_sub(400)..].join("\n");
}

fn kernel_log() -> std::io::Result<String> {
    let output = Command::new("/bin/busybox").arg("dmesg").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn carry_out(plan: &Plan, report: &mut Report) -> Result<(), String> {
    calls::set_class(0, Class::Fifo { priority: 50 })
        .map_err(|error| format!("the round needs to be a real-time task: {error}"))?;
    calls::survive();
    fs::create_dir_all(loader::FOLDER).map_err(|error| format!("{}: {error}", loader::FOLDER))?;
    loader::write_config(4)?;
    tree::create()?;
    let cpus = cpus();
    let pulses = Pulses::new().map_err(|error| format!("no memory for the tasks: {error}"))?;
    let mut loader = Loader::new(plan.perch.clone());
    if plan.loaded_first {
        loader.start()?;
    }
    let failed = |error: std::io::Error| format!("a task cannot be started: {error}");
    let canaries = canaries(&pulses, cpus).map_err(failed)?;
    let victims = victims(&pulses, plan).map_err(failed)?;
    loader.start()?;

    let field = Field::new(plan, cpus, &pulses, victims, loader);
    blow(plan, &field, &canaries, report);
    calm(&field);
    if field.faults().is_empty() {
        all_run(&field, &canaries);
    }
    report.starts = field.loader().loads();
    let unloaded = field.loader().stop(libc::SIGINT);
    if let Err(fault) = unloaded {
        field.fault(fault);
    }
    if field.faults().is_empty() {
        all_run(&field, &canaries);
    }
    let longest = canaries.iter().map(|canary| canary.pulse.longest_ns());
    report.longest_ms = longest.max().unwrap_or(0) as f64 / 1e6;
    bury(&field, &canaries);
    report.faults.extend(field.faults());
    Ok(())
}

/// The number of CPUs, which are 0 and those after it.
fn cpus() -> usize {
    let present = fs::read_to_string("/sys/devices/system/cpu/present").unwrap_or_default();
    let last = present.trim().rsplit(['-', ',']).next();
    last.and_then(|last| last.parse::<usize>().ok()).map_or(1, |last| last + 1)
}

/// A canary on each CPU, and one that may be anywhere.
fn canaries(pulses: &Pulses, cpus: usize) -> std::io::Result<Vec<Task<'_>>> {
    let work = Work::Sleeper { sleep_us: 5000, run_us: 50 };
    let mut canaries = Vec::new();
    for cpu in 0..cpus {
        let canary = pulses.fork(c"canary", work)?;
        calls::set_affinity(canary.pid, &[cpu])?;
        canaries.push(canary);
    }
    canaries.push(pulses.fork(c"canary", work)?);
    Ok(canaries)
}

/// The tasks that storms chase.
fn victims<'a>(pulses: &'a Pulses, plan: &Plan) -> std::io::Result<Vec<Task<'a>>> {
    let mut victims = Vec::new();
    for _ in 0..plan.hogs {
        victims.push(pulses.fork(c"hog", Work::Hog)?);
    }
    for index in 0..plan.sleepers as u64 {
        let work =
            Work::Sleeper { sleep_us: 500 + 700 * (index % 7), run_us: 50 + 50 * (index % 7) };
        victims.push(pulses.fork(c"sleeper", work)?);
    }
    for _ in 0..plan.pipes {
        victims.extend(pair(pulses)?);
    }
    Ok(victims)
}

/// Two tasks that wake each other.
fn pair(pulses: &Pulses) -> std::io::Result<[Task<'_>; 2]> {
    const NAME: &CStr = c"pipe";
    let (mut there, mut back) = ([0; 2], [0; 2]);
    // SAFETY: each call writes two numbers, and the byte is there for its call.
    let made = unsafe {
        libc::pipe(there.as_mut_ptr()) == 0
            && libc::pipe(back.as_mut_ptr()) == 0
            && libc::write(there[1], c"x".as_ptr().cast(), 1) == 1
    };
    if !made {
        return Err(std::io::Error::last_os_error());
    }
    let first = Work::Pipe { from: there[0], to: back[1] };
    let second = Work::Pipe { from: back[0], to: there[1] };
    Ok([pulses.fork(NAME, first)?, pulses.fork(NAME, second)?])
}

/// Has the storms blow, and looks after the canaries and the scheduler meanwhile.
fn blow(plan: &Plan, field: &Field, canaries: &[Task], report: &mut Report) {
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for storm in &plan.storms {
            let tell = tell.clone();
            scope.spawn(move || {
                let done = storm::run(*storm, plan.seed, field);
                // Nobody listens any more when it took too long.
                let _ = tell.send((*storm, done));
            });
        }
        let until = now_ns() + plan.seconds * SECOND_NS;
        while now_ns() < until && field.faults().is_empty() {
            std::thread::sleep(Duration::from_millis(50));
            look(field, canaries);
        }
        field.end();
        let deadline = now_ns() + CALM_NS;
        for _ in &plan.storms {
            let left = Duration::from_nanos(deadline.saturating_sub(now_ns()));
            match told.recv_timeout(left) {
                Ok((storm, done)) => {
                    report.done.insert(storm.name().to_string(), done);
                }
                Err(_) => {
                    let all = plan.storms.iter().map(|storm| storm.name());
                    let hang = all.filter(|name| !report.done.contains_key(*name));
                    let hang: Vec<_> = hang.collect();
                    let seconds = CALM_NS / SECOND_NS;
                    // The threads cannot be joined, so the process ends with this.
                    report.faults.extend(field.faults());
                    report
                        .faults
                        .push(format!("not within {seconds} s: the end of {}", hang.join(", ")));
                    abandon(report);
                }
            }
        }
    });
}

/// Prints the report of a round that cannot end, and ends the process.
fn abandon(report: &mut Report) -> ! {
    judge_log(report);
    println!("{}", report.json());
    std::process::exit(0)
}

/// Looks after the canaries and the scheduler.
fn look(field: &Field, canaries: &[Task]) {
    for canary in canaries {
        let ns = canary.pulse.longest_ns();
        if ns > LONGEST_NS {
            let seconds = LONGEST_NS / SECOND_NS;
            field.fault(format!("{} waited for more than {seconds} s", canary.title()));
        }
    }
    if let Some(mut loader) = field.try_loader() {
        if let Err(fault) = loader.check() {
            field.fault(fault);
        }
    }
}

/// Frees the victims of their groups, and waits until the scheduler is loaded.
fn calm(field: &Field) {
    for victim in field.victims() {
        if let Err(fault) = tree::leave(victim.pid) {
            field.fault(fault);
        }
    }
    tree::each(&mut |group| tree::remove(group));
    let settled = field.loader().settle();
    if let Err(fault) = settled {
        field.fault(fault);
    }
}

/// Demands that each task runs, as soon as none is kept from it.
fn all_run(field: &Field, canaries: &[Task]) {
    let tasks = || field.victims().iter().chain(canaries);
    let before: Vec<u64> = tasks().map(|task| task.pulse.beats()).collect();
    let waiting = || {
        let pairs = tasks().zip(&before);
        pairs
            .filter(|(task, before)| task.pulse.beats() == **before)
            .map(|(task, _)| task.title())
            .collect::<Vec<_>>()
    };
    if !calls::comes(LONGEST_NS, || waiting().is_empty()) {
        let (tasks, seconds) = (waiting().join(", "), LONGEST_NS / SECOND_NS);
        field.fault(format!("after the storms, not within {seconds} s: a turn of {tasks}"));
    }
}

/// Kills all tasks, each of which must end.
fn bury(field: &Field, canaries: &[Task]) {
    let tasks = || field.victims().iter().chain(canaries);
    for task in tasks() {
        calls::signal(task.pid, libc::SIGKILL);
    }
    let mut left: Vec<i32> = tasks().map(|task| task.pid).collect();
    calls::reap_all(&mut left, 4 * LONGEST_NS);
    if !left.is_empty() {
        let stays = |task: &&Task| left.contains(&task.pid);
        let titles: Vec<String> = tasks().filter(stays).map(|task| task.title()).collect();
        field.fault(format!("killed and not gone: {}", titles.join(", ")));
    }
}
