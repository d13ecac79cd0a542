// SPDX-License-Identifier: GPL-2.0-or-later
//! The numbers that grow while a machine works, and where they are read.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perch_file::Kind;
use perch_scheduler::Signals;
use perch_scheduler::waits::Group;

use super::child::die_with_parent;
use super::conduct::Interruption;
use crate::arguments::BadValue;
use crate::cgroup::{self, number};

/// The time that a counter's command may take. It is asked at both ends of each turn, so one that
/// takes longer would stretch the trial.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A cgroup that the user names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its path below the root, with a slash before each folder and none at the end.
    pub path: String,
}

/// Reads a cgroup's path.
pub fn cgroup(text: &str) -> Result<Cgroup, BadValue> {
    let folders: Vec<&str> = text.split('/').filter(|folder| !folder.is_empty()).collect();
    let upward = folders.iter().any(|folder| [".", ".."].contains(folder));
    if !text.starts_with('/') || folders.is_empty() || upward {
        return Err("expected a cgroup's path from the root, for example /web".into());
    }
    let path = folders.iter().map(|folder| format!("/{folder}")).collect();
    Ok(Cgroup { path })
}

impl Cgroup {
    /// One of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}{}/{name}", cgroup::ROOT, self.path))
    }

    /// The cgroup as the kernel knows it.
    ///
    /// # Errors
    /// Words for the user, where there is none.
    pub fn find(&self) -> Result<Group, String> {
        // The first hierarchy's folders lack this file.
        let is_one = self.file("cgroup.controllers").exists();
        let folder = self.file("");
        let found = fs::metadata(&folder).ok().filter(|_| is_one);
        let found = found.ok_or_else(|| {
            format!(
                "--cgroup {}: {} is not a cgroup (of the second hierarchy); expected one that exists \
                 and stays for the trial",
                self.path,
                folder.display()
            )
        })?;
        Ok(Group { id: found.ino(), level: self.path.matches('/').count() as u64 })
    }
}

/// Reads a file of /proc or /sys.
pub fn text(path: &Path) -> Result<String, String> {
    perch_file::text(path, Kind::SYSFS).map_err(|error| error.to_string())
}

/// The ticks in which CPUs ran tasks, of /proc/stat: of users, of users at low priority, and in the
/// kernel.
pub fn ticks(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let numbers: Option<Vec<f64>> = line.split_whitespace().take(3).map(number).collect();
    numbers.filter(|all| all.len() == 3).map(|all| all.iter().sum())
}

/// A counter that the user names: a command that prints a number which grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// What a shell is to run.
    command: String,
}

/// Reads `NAME=COMMAND`.
pub fn counter(text: &str) -> Result<Counter, BadValue> {
    let (name, command) = text.split_once('=').unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || !name.chars().all(plain) || command.trim().is_empty() {
        let words = "expected NAME=COMMAND, where the name has letters, digits, _, - and . only, for \
                     example 'requests=cat /run/web/requests'";
        return Err(words.into());
    }
    Ok(Counter { name: name.to_string(), command: command.to_string() })
}

/// A command that runs, which does not outlive this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Counter {
    /// When the command was started, and the number that it printed; words where it printed none, or
    /// took longer than `patience`.
    ///
    /// # Errors
    /// [`Interruption::Stopped`] when somebody asks to stop meanwhile.
    pub fn read(
        &self,
        signals: &Signals,
        patience: Duration,
    ) -> Result<Result<(Instant, f64), String>, Interruption> {
        const GLANCE: Duration = Duration::from_millis(2);
        let wrong = |why: String| Ok(Err(format!("counter {}: {why}", self.name)));
        let at = Instant::now();
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]).stdin(Stdio::null());
        die_with_parent(&mut command);
        let mut running = match command.stdout(Stdio::piped()).spawn() {
            Ok(child) => Running(child),
            Err(error) => return wrong(format!("sh: {error}")),
        };
        let status = loop {
            match running.0.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if at.elapsed() > patience => {
                    let seconds = patience.as_secs();
                    return wrong(format!("the command did not end within {seconds} s"));
                }
                Ok(None) if signals.wait(GLANCE).is_some() => return Err(Interruption::Stopped),
                Ok(None) => {}
                Err(error) => return wrong(error.to_string()),
            }
        };
        let mut said = Vec::new();
        if let Some(stdout) = &mut running.0.stdout {
            // A number is short; whoever the command left behind may keep the pipe open.
            let mut first = [0; 256];
            let length = stdout.read(&mut first).unwrap_or(0);
            said.extend_from_slice(&first[..length]);
        }
        let said = String::from_utf8_lossy(&said);
        match number(&said) {
            _ if !status.success() => wrong(format!("the command failed ({status})")),
            Some(value) => Ok(Ok((at, value))),
            None => wrong(format!("the command printed `{}`: expected a number", said.trim())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_those_of_tasks() {
        let stat = "cpu  10 20 30 4000 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(ticks(stat), Some(60.0));
        for bad in ["", "cpu 1 2\n", "cpu 1 2 x\n"] {
            assert_eq!(ticks(bad), None, "{bad}");
        }
    }

    #[test]
    fn cgroups_have_paths_from_the_root() {
        let group = cgroup("//web/front/").unwrap();
        assert_eq!(group.path, "/web/front");
        assert_eq!(group.file("cpu.pressure"), Path::new("/sys/fs/cgroup/web/front/cpu.pressure"));
        for bad in ["", "/", "web", "/web/../db"] {
            assert!(cgroup(bad).is_err(), "{bad}");
        }
        let words = cgroup("/perch-has-none").unwrap().find().unwrap_err();
        assert!(words.contains("/sys/fs/cgroup/perch-has-none"), "{words}");
    }

    #[test]
    fn counters_print_numbers_or_say_why_not() {
        let signals = Signals::block();
        let read = |text: &str| {
            let read = counter(text).unwrap().read(&signals, Duration::MAX).unwrap();
            read.map(|(_, value)| value)
        };
        assert_eq!(read("a=echo 12"), Ok(12.0));
        assert_eq!(read("a=echo 1.5e3; exit 0"), Ok(1500.0));
        let words = read("a=echo many").unwrap_err();
        assert!(words.contains("counter a: the command printed `many`"), "{words}");
        assert!(read("a=exit 3").unwrap_err().contains("failed"));
        for bad in ["", "a", "=echo", "a=", "a b=echo"] {
            assert!(counter(bad).is_err(), "{bad}");
        }
    }
}
