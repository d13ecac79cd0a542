// SPDX-License-Identifier: GPL-2.0-or-later
//! The changes that an arm makes to its guest's kernel, whatever scheduler runs on it.

use std::str::FromStr;

use crate::arguments::BadValue;
use crate::output::Failure;

/// The folder of the scheduler's files in debugfs.
const SCHED: &str = "/sys/kernel/debug/sched";

/// The file that turns cache-aware balancing on and off.
pub const CACHE_AWARE: &str = "/sys/kernel/debug/sched/llc_balancing/enabled";

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The kernel does not know of the clusters.
    HideClusters,
    /// A word of the kernel's command line.
    Boot(String),
    /// A file of the running kernel gets a value.
    Write(Write),
}

/// A value for a file of the guest's kernel, which is written before the scheduler is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The file's path.
    pub file: String,
    /// The value.
    pub value: String,
}

/// All changes of an arm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// True where the kernel does not know of the clusters.
    pub clusters_hidden: bool,
    /// Words for its command line.
    pub boot: Vec<String>,
    /// Values for its files, in the order in which they are written.
    pub writes: Vec<Write>,
}

impl Kernel {
    /// Sorts changes by the way in which they are made.
    pub fn of(changes: Vec<Change>) -> Kernel {
        let mut kernel = Kernel::default();
        for change in changes {
            match change {
                Change::HideClusters => kernel.clusters_hidden = true,
                Change::Boot(word) => kernel.boot.push(word),
                Change::Write(write) => kernel.writes.push(write),
            }
        }
        kernel
    }
}

impl FromStr for Change {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Change, BadValue> {
        let expected = || {
            format!(
                "`{text}` changes nothing: expected clusters=off, cache=off, feature=NAME, \
                 boot=WORD, a sysctl (kernel.sched_rr_timeslice_ms=50) or /FILE=VALUE"
            )
        };
        let (key, value) = text.split_once('=').ok_or_else(expected)?;
        if value.is_empty() {
            return Err(format!("`{text}`: nothing comes after `=`").into());
        }
        let write = |file: String, value: &str| {
            let value = value.to_string();
            Ok(Change::Write(Write { file, value }))
        };
        match key {
            "clusters" if value == "off" => Ok(Change::HideClusters),
            "cache" if value == "off" => write(CACHE_AWARE.to_string(), "0"),
            "cache" if value == "on" => write(CACHE_AWARE.to_string(), "1"),
            "clusters" | "cache" => Err(format!("`{text}`: expected {key}=off").into()),
            // The kernel's names of features are words; a kernel behind one would be lost on it.
            "feature" if value.contains('@') => {
                Err(format!("`{text}`: expected a feature's name").into())
            }
            "feature" => write(format!("{SCHED}/features"), value),
            "boot" => Ok(Change::Boot(value.to_string())),
            _ if key.starts_with('/') => write(key.to_string(), value),
            _ if key.contains('.') && !key.contains('/') => {
                write(format!("/proc/sys/{}", key.replace('.', "/")), value)
            }
            _ => Err(expected().into()),
        }
    }
}

impl Write {
    /// The change as an argument of the command in the guest.
    pub fn argument(&self) -> String {
        format!("{}={}", self.file, self.value)
    }

    /// Reads [`Write::argument`].
    pub fn parse(text: &str) -> Result<Write, BadValue> {
        let (file, value) = text.split_once('=').ok_or("expected FILE=VALUE")?;
        Ok(Write { file: file.to_string(), value: value.to_string() })
    }

    /// Writes the value.
    ///
    /// # Errors
    /// Names the file and says what the kernel takes, where it tells.
    pub fn make(&self) -> Result<(), Failure> {
        let Write { file, value } = self;
        let Err(error) = std::fs::write(file, value) else {
            return Ok(());
        };
        let hint = match error.raw_os_error() {
            Some(libc::ENOENT) => "; this kernel has no such file".to_string(),
            Some(libc::EINVAL) => match std::fs::read_to_string(file) {
                Ok(now) => format!("; it holds: {}", now.trim()),
                Err(_) => String::new(),
            },
            _ => String::new(),
        };
        Err(Failure::run(format!("cannot write {value} to {file}: {error}{hint}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_become_words_and_writes() {
        let write = |text: &str| match text.parse() {
            Ok(Change::Write(write)) => write.argument(),
            other => panic!("{other:?}"),
        };
        assert_eq!(write("feature=NO_SIS_UTIL"), "/sys/kernel/debug/sched/features=NO_SIS_UTIL");
        assert_eq!(write("cache=off"), "/sys/kernel/debug/sched/llc_balancing/enabled=0");
        assert_eq!(
            write("kernel.sched_autogroup_enabled=0"),
            "/proc/sys/kernel/sched_autogroup_enabled=0"
        );
        assert_eq!(write("/sys/x=a=b"), "/sys/x=a=b");
        assert_eq!("boot=isolcpus=2,3".parse(), Ok(Change::Boot("isolcpus=2,3".to_string())));
        assert_eq!("clusters=off".parse(), Ok(Change::HideClusters));
        for bad in ["clusters", "clusters=", "clusters=on", "NO_SIS_UTIL", "x=1", "cache=maybe"] {
            assert!(bad.parse::<Change>().unwrap_err().to_string().contains(bad), "{bad}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let write = Write::parse("/nonexistent/file=1").unwrap();
        let words = write.make().unwrap_err().message;
        assert!(words.contains("cannot write 1 to /nonexistent/file"), "{words}");
        assert!(words.contains("no such file"), "{words}");
    }
}
