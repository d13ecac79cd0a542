// SPDX-License-Identifier: GPL-2.0-or-later
//! A command under a scheduler, in the guest: this module loads the scheduler, runs the command and
//! unloads the scheduler. The host asks for all of it with one command, so that the host's timing
//! has no influence and a deterministic guest stays deterministic.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The exit code of a run that failed for another reason than the command; the file
/// [`Scheduled::failure`] has that reason.
pub const FAILED: u8 = 125;

/// How long a scheduler may take to load or to unload. The verifier alone takes seconds in a guest
/// without KVM; its largest neighbours take half a minute.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time between two looks at whether the kernel has the scheduler loaded.
const INTERVAL: Duration = Duration::from_millis(50);

/// The kernel's word while a scheduler is loaded.
const LOADED: &str = "enabled";

/// The number of lines that a scheduler may need to say why it unloaded itself.
const LAST_WORDS: usize = 40;

/// A scheduler, a command to run under it, and the files that the run reads and writes.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The scheduler's program and arguments; it unloads on SIGINT.
    pub scheduler: Vec<String>,
    /// The command's.
    pub command: Vec<String>,
    /// The file that says "enabled" while a scheduler is loaded.
    pub state: PathBuf,
    /// The file that takes the scheduler's output until the scheduler has ended.
    pub log: PathBuf,
    /// The file that says why the run failed when the exit code is [`FAILED`].
    pub failure: PathBuf,
}

impl Scheduled {
    /// A run that uses the files at their places in a guest.
    pub fn new(scheduler: Vec<String>, command: Vec<String>) -> Scheduled {
        Scheduled {
            scheduler,
            command,
            state: "/sys/kernel/sched_ext/state".into(),
            log: "/run/perch-scheduler.log".into(),
            failure: Scheduled::failure().into(),
        }
    }

    /// The path of the file in a guest that explains [`FAILED`].
    pub fn failure() -> &'static str {
        "/run/perch-scheduler.failure"
    }

    /// Runs the command under the scheduler and returns the exit code: that of the command (128
    /// plus the signal when one ended it), or [`FAILED`].
    pub fn run(&self) -> u8 {
        self.attempt().unwrap_or_else(|words| {
            // The host shows the file; when the file cannot be written, standard error still
            // reaches it.
            if fs::write(&self.failure, &words).is_err() {
                eprintln!("perch: {words}");
            }
            FAILED
        })
    }

    fn attempt(&self) -> Result<u8, String> {
        let log = File::create(&self.log).map_err(|error| at(&self.log, error))?;
        let err = log.try_clone().map_err(|error| at(&self.log, error))?;
        let mut scheduler = spawn(&self.scheduler, Stdio::from(log), Stdio::from(err))?;
        if let Err(words) = self.await_loaded(&mut scheduler) {
            let _ = scheduler.kill();
            let _ = scheduler.wait();
            return Err(words);
        }
        let command = spawn(&self.command, Stdio::inherit(), Stdio::inherit());
        let ended = command.and_then(|mut command| {
            let program = Path::new(&self.command[0]);
            command.wait().map_err(|error| at(program, error))
        });
        let left = scheduler.try_wait().ok().flatten();
        let state = self.state();
        let status = match left {
            Some(status) => Some(status),
            None => stop(&mut scheduler),
        };
        let ended = ended?;
        // A program may stay after the kernel has unloaded its scheduler; the command then ran under
        // the kernel's own.
        if let (None, Ok(state)) = (left, &state)
            && state != LOADED
        {
            return Err(format!(
                "the kernel unloaded the scheduler before the command ended (it says `{state}`):\n{}",
                self.last_words()
            ));
        }
        match (left.is_some(), status) {
            (true, Some(status)) => Err(format!(
                "the scheduler left before the command ended, with {}:\n{}",
                words(status),
                self.last_words()
            )),
            (false, Some(status)) if status.success() => {
                let _ = io::stderr().write_all(&fs::read(&self.log).unwrap_or_default());
                let signal = ended.signal().map(|signal| 128 + signal);
                Ok(ended.code().or(signal).unwrap_or(1) as u8)
            }
            (_, Some(status)) => {
                Err(format!("the scheduler ended with {}:\n{}", words(status), self.last_words()))
            }
            (_, None) => Err(format!(
                "the scheduler did not unload within {} s of SIGINT:\n{}",
                PATIENCE.as_secs(),
                self.last_words()
            )),
        }
    }

    fn await_loaded(&self, scheduler: &mut Child) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let state = self.state()?;
            if state == LOADED {
                return Ok(());
            }
            if let Ok(Some(status)) = scheduler.try_wait() {
                return Err(format!(
                    "the scheduler could not be loaded; {} ended with {}:\n{}",
                    self.scheduler.join(" "),
                    words(status),
                    self.last_words()
                ));
            }
            if began.elapsed() > PATIENCE {
                return Err(format!(
                    "the scheduler was not loaded within {} s (the kernel says `{}`):\n{}",
                    PATIENCE.as_secs(),
                    state,
                    self.last_words()
                ));
            }
            sleep(INTERVAL);
        }
    }

    /// The kernel's word for whether a scheduler is loaded.
    fn state(&self) -> Result<String, String> {
        let state = fs::read_to_string(&self.state);
        let state = state.map_err(|error| at(&self.state, error))?;
        Ok(state.trim().to_string())
    }

    /// The end of what the scheduler wrote.
    fn last_words(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
        last.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn at(path: &Path, error: io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn spawn(argv: &[String], out: Stdio, err: Stdio) -> Result<Child, String> {
    let (program, arguments) = argv.split_first().ok_or("no program was named")?;
    let mut command = Command::new(program);
    command.args(arguments).stdout(out).stderr(err);
    let spawned = command.spawn();
    spawned.map_err(|error| at(Path::new(program), error))
}

/// Sends SIGINT to the scheduler and waits for its end; kills a scheduler that does not end and
/// returns `None`.
fn stop(scheduler: &mut Child) -> Option<ExitStatus> {
    let _ = kill_process(Pid::from_child(scheduler), Signal::INT);
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Ok(Some(status)) = scheduler.try_wait() {
            return Some(status);
        }
        sleep(INTERVAL);
    }
    let _ = scheduler.kill();
    let _ = scheduler.wait();
    None
}

fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that can trap SIGINT; a plain one cannot where the parent of the tests ignores that
    /// signal.
    fn shell(script: &str) -> Vec<String> {
        ["env", "--default-signal=INT", "sh", "-c", script].map(str::to_string).to_vec()
    }

    /// A scheduler and a command as shell scripts, and a kernel that is a file.
    fn run(scheduler: &str, command: &str) -> (u8, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("state"), "disabled\n").unwrap();
        let argv = |script: &str| shell(&script.replace("STATE", path("state").to_str().unwrap()));
        let scheduled = Scheduled {
            scheduler: argv(scheduler),
            command: argv(command),
            state: path("state"),
            log: path("log"),
            failure: path("failure"),
        };
        let code = scheduled.run();
        let failure = fs::read_to_string(path("failure")).unwrap_or_default();
        (code, failure)
    }

    const LOADS: &str = "trap 'echo disabled > STATE; exit 0' INT; echo enabled > STATE; \
                         while :; do sleep 0.05; done";

    #[test]
    fn the_command_runs_while_the_scheduler_is_loaded() {
        assert_eq!(run(LOADS, "grep -q enabled STATE").0, 0);
        assert_eq!(run(LOADS, "exit 3"), (3, String::new()));
        assert_eq!(run(LOADS, "kill -9 $$").0, 137);
    }

    #[test]
    fn a_scheduler_that_fails_is_to_blame() {
        let (code, words) = run("echo no BTF; exit 1", "exit 0");
        assert_eq!(code, FAILED);
        assert!(words.contains("could not be loaded"), "{words}");
        assert!(words.contains("exit code 1:\nno BTF\n"), "{words}");

        // Each waits for the other, so that neither's pace matters; a process that has ended is a
        // zombie until somebody asks for its status.
        let begun = "until [ -e STATE.begun ]; do sleep 0.01; done";
        let leaves =
            format!("echo $$ > STATE.pid; echo enabled > STATE; {begun}; echo stalled; exit 2");
        let outlasts = "pid=$(cat STATE.pid); touch STATE.begun; \
                        while grep '^State' /proc/$pid/status 2>/dev/null | grep -qv zombie; \
                        do sleep 0.01; done";
        let (code, words) = run(&leaves, outlasts);
        assert_eq!(code, FAILED);
        assert!(words.contains("before the command ended"), "{words}");
        assert!(words.contains("exit code 2:\nstalled\n"), "{words}");

        let stays = format!(
            "echo enabled > STATE; {begun}; echo disabled > STATE; echo stalled; \
             touch STATE.stalled; exec sleep 1000"
        );
        let outlasts = "touch STATE.begun; until [ -e STATE.stalled ]; do sleep 0.01; done";
        let (code, words) = run(&stays, outlasts);
        assert_eq!(code, FAILED);
        assert!(words.contains("it says `disabled`):\nstalled\n"), "{words}");
    }

    #[test]
    fn a_command_that_does_not_exist_leaves_no_scheduler_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (pid, state) = (path("pid"), path("state"));
        fs::write(&state, "disabled\n").unwrap();
        let script = format!("echo $$ > {}; {LOADS}", pid.display());
        let script = script.replace("STATE", state.to_str().unwrap());
        let scheduled = Scheduled {
            scheduler: shell(&script),
            command: vec!["/nonexistent/program".into()],
            state,
            log: path("log"),
            failure: path("failure"),
        };
        assert_eq!(scheduled.run(), FAILED);
        let words = fs::read_to_string(path("failure")).unwrap();
        assert!(words.contains("/nonexistent/program: No such file"), "{words}");
        let pid = fs::read_to_string(pid).unwrap();
        assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
    }
}
