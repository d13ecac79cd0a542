// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds out what the running kernel and the user can do, before anything is loaded.

use std::path::{Path, PathBuf};

use perch_file::Kind;
use perch_machine::{MachineError, cpulist};

/// The reason why this kernel, machine or user cannot do what the command asks, with what is
/// missing and what to do.
#[derive(Debug, thiserror::Error)]
pub enum UnableError {
    /// The kernel has no interface for schedulers.
    #[error(
        "Linux {version} has no sched_ext (there is no /sys/kernel/sched_ext): perch needs 6.16 \
         or newer, built with CONFIG_SCHED_CLASS_EXT"
    )]
    NoSchedExt {
        /// The version of the kernel.
        version: String,
    },
    /// The kernel does not describe its types.
    #[error(
        "Linux {version} has no BTF (there is no /sys/kernel/btf/vmlinux): {} needs a kernel \
         built with CONFIG_DEBUG_INFO_BTF",
        purpose.subject()
    )]
    NoBtf {
        /// The version of the kernel.
        version: String,
        /// The purpose for which it is needed.
        purpose: Purpose,
    },
    /// The user may not load programs.
    #[error("{}", .0.rights())]
    NoRights(Purpose),
    /// The right to change tasks' policies was given up when no rule asked for it.
    #[error(
        "[[partial]] needs CAP_SYS_NICE, which perch gave up when it was started without such a rule: \
         start it again"
    )]
    NoPolicies,
    /// Another scheduler is loaded already.
    #[error(
        "another sched_ext scheduler is loaded: {0}; stop it first (the kernel runs one at a time)"
    )]
    Taken(String),
    /// The machine cannot be told from its /sys.
    #[error("{0}")]
    Machine(#[from] MachineError),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason why it cannot be written.
        source: std::io::Error,
    },
    /// No scheduler is loaded whose cost could be measured.
    #[error(
        "no scheduler is loaded whose programs could be measured (or this user may not see BPF \
         programs)"
    )]
    NoScheduler,
    /// The questions to the test program exceed its room.
    #[error("a batch of {bytes} bytes does not fit the arena of {arena}")]
    Batch {
        /// The size of the questions.
        bytes: usize,
        /// The size of the place for them.
        arena: usize,
    },
}

impl UnableError {
    /// True if it would fail again for as long as this kernel runs and this user asks: waiting does not
    /// help.
    pub fn lasts(&self) -> bool {
        !matches!(self, UnableError::Taken(_) | UnableError::Write { .. })
    }
}

/// The name under which perch's programs are loaded.
const PERCH: &str = "perch";

/// The purpose for which a program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To schedule: `perch run`.
    Scheduling,
    /// To schedule in turns: `perch trial`.
    Trying,
    /// To record wake-ups: `perch record`.
    Recording,
    /// To compare the policy in BPF with the native one: `perch self-test`.
    Comparing,
}

impl Purpose {
    fn subject(self) -> &'static str {
        match self {
            Purpose::Scheduling | Purpose::Trying => "perch",
            Purpose::Recording => "recording",
            Purpose::Comparing => "comparing policies",
        }
    }

    fn rights(self) -> &'static str {
        match self {
            Purpose::Scheduling => {
                "loading a scheduler needs root (or CAP_BPF and CAP_PERFMON): sudo perch run"
            }
            Purpose::Trying => "a trial needs root (or CAP_BPF and CAP_PERFMON): sudo perch trial",
            Purpose::Recording => {
                "recording needs root (or CAP_BPF and CAP_PERFMON): sudo perch record -o FILE"
            }
            Purpose::Comparing => "comparing policies needs root (or CAP_BPF and CAP_PERFMON)",
        }
    }
}

/// A kernel by its /proc and /sys.
#[derive(Clone, Debug)]
pub struct Kernel {
    root: PathBuf,
}

/// Bits of CapEff: enough is CAP_SYS_ADMIN, or CAP_BPF with CAP_PERFMON.
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

impl Kernel {
    /// The kernel whose /proc and /sys are below `root`, which is `/` but in tests.
    pub fn new(root: &Path) -> Kernel {
        Kernel { root: root.to_path_buf() }
    }

    fn read(&self, file: &str) -> Option<String> {
        let bytes = perch_file::bytes(&self.root.join(file), Kind::SYSFS).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_string())
    }

    /// Its version, for example `7.2.12+deb13-cloud-amd64`.
    pub fn version(&self) -> String {
        let version = self.read("proc/sys/kernel/osrelease");
        version.unwrap_or_else(|| "of unknown version".to_string())
    }

    /// How often CPUs went or came since boot; a scheduler that is loaded with an older number
    /// is asked to restart at once. None on kernels that do not count (before 6.11).
    pub fn hotplug_seq(&self) -> Option<u64> {
        self.read("sys/kernel/sched_ext/hotplug_seq")?.parse().ok()
    }

    /// How many CPUs may come online: the highest number of a possible one, plus one. None where
    /// it cannot be told.
    pub fn possible(&self) -> Option<usize> {
        let cpus = self.cpus("possible")?;
        cpus.last().map(|&cpu| cpu as usize + 1)
    }

    /// The CPUs that are online, ascending and at least one. None where it cannot be told.
    pub fn online(&self) -> Option<Vec<u32>> {
        self.cpus("online")
    }

    /// True while a CPU goes offline or comes online: /sys then tells some of its files and not others,
    /// so that caches and nodes may contradict each other. False where it cannot be told.
    pub fn cpus_change(&self) -> bool {
        let possible = self.cpus("possible").unwrap_or_default();
        possible.iter().any(|cpu| {
            let step =
                |which| self.read(&format!("sys/devices/system/cpu/cpu{cpu}/hotplug/{which}"));
            step("state") != step("target")
        })
    }

    /// One of the kernel's lists of CPUs.
    fn cpus(&self, which: &str) -> Option<Vec<u32>> {
        let list = self.read(&format!("sys/devices/system/cpu/{which}"))?;
        let cpus = cpulist::parse(&list).ok()?;
        (!cpus.is_empty()).then_some(cpus)
    }

    /// The sched_ext scheduler that is loaded, by name.
    pub fn loaded(&self) -> Option<String> {
        match self.read("sys/kernel/sched_ext/state")?.as_str() {
            "disabled" => None,
            state => Some(
                self.read("sys/kernel/sched_ext/root/ops")
                    .filter(|name| !name.is_empty())
                    .unwrap_or_else(|| format!("one that is {state}")),
            ),
        }
    }

    /// Checks that this process can load a sched_ext scheduler now.
    ///
    /// # Errors
    /// [`UnableError`], with what is missing and what to do.
    pub fn check(&self) -> Result<(), UnableError> {
        self.check_sched_ext()?;
        self.check_btf(Purpose::Scheduling)?;
        self.check_rights(Purpose::Scheduling)?;
        self.check_free()
    }

    /// As [`Kernel::check`], but takes a perch that schedules already: a service asks before a reload
    /// whether the configuration could be loaded.
    ///
    /// # Errors
    /// [`UnableError`], with what is missing and what to do.
    pub fn check_reload(&self) -> Result<(), UnableError> {
        match self.check() {
            Err(UnableError::Taken(name)) if name == PERCH => Ok(()),
            other => other,
        }
    }

    /// Checks that the kernel has the interface for schedulers.
    ///
    /// # Errors
    /// [`UnableError::NoSchedExt`] when it has not.
    pub fn check_sched_ext(&self) -> Result<(), UnableError> {
        if self.root.join("sys/kernel/sched_ext").is_dir() {
            return Ok(());
        }
        let version = self.version();
        Err(UnableError::NoSchedExt { version })
    }

    /// Checks that this process can record wake-ups on this machine.
    ///
    /// # Errors
    /// [`UnableError`], with what is missing and what to do.
    pub fn check_record(&self) -> Result<(), UnableError> {
        self.check_btf(Purpose::Recording)?;
        self.check_rights(Purpose::Recording)
    }

    /// Checks that the kernel describes its types, without which no program can be loaded.
    ///
    /// # Errors
    /// [`UnableError::NoBtf`] when it does not.
    pub fn check_btf(&self, purpose: Purpose) -> Result<(), UnableError> {
        if self.root.join("sys/kernel/btf/vmlinux").exists() {
            return Ok(());
        }
        let version = self.version();
        Err(UnableError::NoBtf { version, purpose })
    }

    /// Checks that this process may load BPF programs.
    ///
    /// # Errors
    /// [`UnableError::NoRights`] when it may not.
    pub fn check_rights(&self, purpose: Purpose) -> Result<(), UnableError> {
        if self.may_load() { Ok(()) } else { Err(UnableError::NoRights(purpose)) }
    }

    /// Checks that no other scheduler is loaded.
    ///
    /// # Errors
    /// [`UnableError::Taken`], with its name.
    pub fn check_free(&self) -> Result<(), UnableError> {
        match self.loaded() {
            None => Ok(()),
            Some(name) => Err(UnableError::Taken(name)),
        }
    }

    fn may_load(&self) -> bool {
        let status = self.read("proc/self/status").unwrap_or_default();
        let capabilities = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))
            .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        // Where it cannot be told, the kernel will.
        let has = capabilities.unwrap_or(u64::MAX);
        has & CAP_SYS_ADMIN != 0 || has & CAP_BPF != 0 && has & CAP_PERFMON != 0
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn refusal(files: &[(&str, &str)]) -> String {
        let result = Kernel::new(tree(files).path()).check();
        result.map_or_else(|error| error.to_string(), |()| String::new())
    }

    const ROOT: (&str, &str) = ("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
    const NOBODY: (&str, &str) = ("proc/self/status", "CapEff:\t0000000000000000\n");
    const RELEASE: (&str, &str) = ("proc/sys/kernel/osrelease", "6.12.9\n");
    const BTF: (&str, &str) = ("sys/kernel/btf/vmlinux", "");
    const DISABLED: (&str, &str) = ("sys/kernel/sched_ext/state", "disabled\n");

    #[test]
    fn a_kernel_without_sched_ext_is_named() {
        let why = refusal(&[ROOT, RELEASE, BTF]);
        assert!(why.starts_with("Linux 6.12.9 has no sched_ext"), "{why}");
    }

    #[test]
    fn users_without_capabilities_are_told_to_use_sudo() {
        assert!(refusal(&[NOBODY, RELEASE, BTF, DISABLED]).contains("sudo perch run"));
    }

    #[test]
    fn another_scheduler_is_named() {
        let enabled = ("sys/kernel/sched_ext/state", "enabled\n");
        let ops = ("sys/kernel/sched_ext/root/ops", "bpfland_1.1.4\n");
        let why = refusal(&[ROOT, RELEASE, BTF, enabled, ops]);
        assert!(why.contains("is loaded: bpfland_1.1.4;"), "{why}");
    }

    #[test]
    fn a_reload_is_checked_while_perch_schedules_and_no_other() {
        let enabled = ("sys/kernel/sched_ext/state", "enabled\n");
        let reload = |name| {
            let ops = ("sys/kernel/sched_ext/root/ops", name);
            let tree = tree(&[ROOT, RELEASE, BTF, enabled, ops]);
            let kernel = Kernel::new(tree.path());
            (kernel.check().is_ok(), kernel.check_reload().is_ok())
        };
        assert_eq!(reload("perch\n"), (false, true));
        assert_eq!(reload("bpfland_1.1.4\n"), (false, false));
    }

    #[test]
    fn a_free_kernel_passes() {
        let seq = ("sys/kernel/sched_ext/hotplug_seq", "7\n");
        let files = [ROOT, RELEASE, BTF, DISABLED, seq];
        assert_eq!(refusal(&files), "");
        assert_eq!(Kernel::new(tree(&files).path()).hotplug_seq(), Some(7));
    }

    #[test]
    fn a_cpu_changes_until_it_is_where_it_goes() {
        let possible = ("sys/devices/system/cpu/possible", "0-1\n");
        let step = |cpu, which| format!("sys/devices/system/cpu/cpu{cpu}/hotplug/{which}");
        let files = [
            (step(0, "state"), "240\n"),
            (step(0, "target"), "240\n"),
            (step(1, "state"), "185\n"),
            (step(1, "target"), "0\n"),
        ];
        let mut files: Vec<(&str, &str)> = files.iter().map(|f| (f.0.as_str(), f.1)).collect();
        files.push(possible);
        let change = |files: &[(&str, &str)]| Kernel::new(tree(files).path()).cpus_change();
        assert!(change(&files));
        files[3].1 = "185\n";
        assert!(!change(&files) && !change(&[possible]));
    }

    #[test]
    fn online_cpus_may_have_holes() {
        let tree_of = tree(&[("sys/devices/system/cpu/online", "0-2,4-5\n")]);
        assert_eq!(Kernel::new(tree_of.path()).online(), Some(vec![0, 1, 2, 4, 5]));
        assert_eq!(Kernel::new("/nowhere".as_ref()).online(), None);
        let empty = tree(&[("sys/devices/system/cpu/possible", "\n")]);
        assert_eq!(Kernel::new(empty.path()).possible(), None);
    }
}
