// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time band of the configuration: which tasks have which priority.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Deserialize;
use toml::Spanned;

use crate::error::SchedulerError;
use crate::interface;

/// Priorities, as of `SCHED_FIFO`: the highest goes first.
const PRIORITIES: RangeInclusive<i64> = 1..=99;
const NICENESSES: RangeInclusive<i64> = -20..=19;
/// Turns of a round robin, milliseconds.
const SLICES_MS: RangeInclusive<i64> = 1..=1000;
/// The kernel's (`RR_TIMESLICE`).
const SLICE_MS: u64 = 100;
/// A task's name has no more characters (`TASK_COMM_LEN` without its end).
const COMM_CHARS: usize = 15;

/// Tasks that go before all others, and among each other by priority.
///
/// A task is chosen when all that is named is so; the first rule that fits a task counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Band {
    /// The name of the command, `/proc/PID/comm`: a pattern with `*` and `?`.
    pub comm: Option<String>,
    /// A cgroup's path below /sys/fs/cgroup, from its root; those below it are meant, too.
    pub cgroup: Option<String>,
    /// The niceness.
    pub nice: Option<i8>,
    /// 1 to 99, the highest goes first.
    pub priority: u8,
    /// Round robin: the turn of each of equal priority, milliseconds (1 to 1000); without it, who
    /// was first goes on until it sleeps.
    pub slice_ms: Option<u64>,
}

/// As the file has it; [`RULE_KEYS`] in words.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    comm: Option<Spanned<String>>,
    cgroup: Option<Spanned<String>>,
    nice: Option<Spanned<i64>>,
    priority: Option<Spanned<i64>>,
    policy: Option<Spanned<String>>,
    slice_ms: Option<Spanned<i64>>,
}

const RULE_KEYS: &str = "comm, cgroup, nice, priority, policy or slice_ms";

/// A key's place in its file, and what is wrong with it; no place: it is missing.
type Complaint = (Option<std::ops::Range<usize>>, String);

fn within<T: TryFrom<i64>>(
    key: &str,
    given: &Spanned<i64>,
    range: &RangeInclusive<i64>,
) -> Result<T, Complaint> {
    let value = *given.get_ref();
    let fits = range.contains(&value).then(|| T::try_from(value).ok());
    fits.flatten().ok_or_else(|| {
        let (low, high) = (range.start(), range.end());
        let message = format!("{key}: {value}: expected {low} to {high}");
        (Some(given.span()), message)
    })
}

fn check_comm(pattern: &str) -> Result<(), &'static str> {
    if pattern.is_empty() || pattern.contains('\0') {
        return Err("expected a command's name, with * for any characters and ? for one");
    }
    if pattern.bytes().filter(|&byte| byte != b'*').count() > COMM_CHARS {
        return Err(
            "expected at most 15 characters besides *: the kernel keeps no more of a command's \
             name (see /proc/PID/comm)",
        );
    }
    if pattern.len() >= interface::BAND_GLOB {
        return Err("expected at most 31 characters");
    }
    Ok(())
}

/// The folders of a cgroup's path.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|folder| !folder.is_empty())
}

fn check_cgroup(path: &str) -> Result<(), &'static str> {
    let plain =
        !path.contains("//") && !path.contains('\0') && (path == "/" || !path.ends_with('/'));
    if !path.starts_with('/') || !plain || folders(path).any(|f| f == "." || f == "..") {
        return Err("expected a cgroup's path below /sys/fs/cgroup, such as /rt or /rt/audio");
    }
    if folders(path).any(|folder| folder.len() >= interface::BAND_NAME) {
        return Err("expected folders of at most 63 characters");
    }
    if path.len() >= interface::BAND_PATH {
        return Err("expected at most 191 characters");
    }
    Ok(())
}

impl Table {
    /// What it says, checked.
    pub(crate) fn band(&self) -> Result<Band, Complaint> {
        let text = |key: &str,
                    given: &Option<Spanned<String>>,
                    check: fn(&str) -> Result<(), &'static str>| {
            let Some(given) = given else { return Ok(None) };
            match check(given.get_ref()) {
                Ok(()) => Ok(Some(given.get_ref().clone())),
                Err(expected) => {
                    let message = format!("{key}: {:?}: {expected}", given.get_ref());
                    Err((Some(given.span()), message))
                }
            }
        };
        let comm = text("comm", &self.comm, check_comm)?;
        let cgroup = text("cgroup", &self.cgroup, check_cgroup)?;
        let nice = self.nice.as_ref();
        let nice = nice
            .map(|nice| within("nice", nice, &NICENESSES))
            .transpose()?;
        if comm.is_none() && cgroup.is_none() && nice.is_none() {
            let message = "it names no tasks: expected comm, cgroup or nice, or several of them";
            return Err((None, message.to_string()));
        }
        let Some(priority) = &self.priority else {
            return Err((None, "no priority: expected priority = 1 to 99".to_string()));
        };
        let priority = within("priority", priority, &PRIORITIES)?;
        let turns = match &self.policy {
            None => self.slice_ms.is_some(),
            Some(policy) => match policy.get_ref().as_str() {
                "fifo" => false,
                "rr" => true,
                other => {
                    let message = format!("policy: {other:?}: expected fifo or rr");
                    return Err((Some(policy.span()), message));
                }
            },
        };
        let slice_ms = match (&self.slice_ms, turns) {
            (None, false) => None,
            (None, true) => Some(SLICE_MS),
            (Some(slice), true) => Some(within("slice_ms", slice, &SLICES_MS)?),
            (Some(slice), false) => {
                let message = "slice_ms: who is first in goes on: expected policy = \"rr\" with it";
                return Err((Some(slice.span()), message.to_string()));
            }
        };
        Ok(Band {
            comm,
            cgroup,
            nice,
            priority,
            slice_ms,
        })
    }
}

impl std::str::FromStr for Band {
    type Err = SchedulerError;

    /// `comm=ffmpeg*,priority=50`: the keys of the file's `[[band]]`.
    fn from_str(text: &str) -> Result<Band, SchedulerError> {
        let refuse = |why: String| SchedulerError::Settings(format!("band \"{text}\": {why}"));
        let mut table = Table::default();
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(refuse(format!(
                    "\"{part}\": expected KEY=VALUE, such as comm=ffmpeg*,priority=50"
                )));
            };
            let word = || Some(Spanned::new(0..0, value.to_string()));
            let number = || match value.parse() {
                Ok(number) => Ok(Some(Spanned::new(0..0, number))),
                Err(_) => Err(refuse(format!(
                    "{key}: \"{value}\": expected a whole number"
                ))),
            };
            let twice = match key {
                "comm" => std::mem::replace(&mut table.comm, word()).is_some(),
                "cgroup" => std::mem::replace(&mut table.cgroup, word()).is_some(),
                "policy" => std::mem::replace(&mut table.policy, word()).is_some(),
                "nice" => std::mem::replace(&mut table.nice, number()?).is_some(),
                "priority" => std::mem::replace(&mut table.priority, number()?).is_some(),
                "slice_ms" => std::mem::replace(&mut table.slice_ms, number()?).is_some(),
                _ => {
                    return Err(refuse(format!(
                        "unknown key \"{key}\": expected {RULE_KEYS}"
                    )));
                }
            };
            if twice {
                return Err(refuse(format!("{key} is there twice")));
            }
        }
        table.band().map_err(|(_, message)| refuse(message))
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(comm) = &self.comm {
            write!(f, "comm={comm},")?;
        }
        if let Some(cgroup) = &self.cgroup {
            write!(f, "cgroup={cgroup},")?;
        }
        if let Some(nice) = self.nice {
            write!(f, "nice={nice},")?;
        }
        write!(f, "priority={}", self.priority)?;
        match self.slice_ms {
            Some(slice) => write!(f, ",slice_ms={slice}"),
            None => Ok(()),
        }
    }
}

impl Band {
    /// As the BPF program reads it.
    pub(crate) fn image(&self) -> interface::Band {
        let mut out = interface::Band {
            slice_ns: self.slice_ms.unwrap_or(0) * 1_000_000,
            flags: 0,
            prio: self.priority.into(),
            nice: self.nice.unwrap_or(0).into(),
            depth: 0,
            comm: [0; interface::BAND_GLOB],
            path: [0; interface::BAND_PATH],
            line: 0,
        };
        if let Some(comm) = &self.comm {
            out.flags |= interface::BAND_COMM;
            out.comm[..comm.len()].copy_from_slice(comm.as_bytes());
        }
        if let Some(cgroup) = &self.cgroup {
            out.flags |= interface::BAND_CGROUP;
            let mut at = 0;
            for folder in folders(cgroup) {
                out.path[at..at + folder.len()].copy_from_slice(folder.as_bytes());
                at += folder.len() + 1;
                out.depth += 1;
            }
        }
        if self.nice.is_some() {
            out.flags |= interface::BAND_NICE;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<Band>().unwrap_err().to_string()
    }

    #[test]
    fn a_rule_is_read_as_it_is_shown() {
        for text in [
            "comm=ffmpeg*,priority=50",
            "cgroup=/rt/audio,priority=99,slice_ms=10",
            "nice=-20,priority=1",
            "comm=a?c,cgroup=/,nice=5,priority=7",
        ] {
            let band: Band = text.parse().unwrap();
            assert_eq!(band.to_string(), text);
        }
        let band: Band = "nice=3,policy=rr,priority=2".parse().unwrap();
        assert_eq!(band.slice_ms, Some(100));
        let band: Band = "nice=3,policy=fifo,priority=2".parse().unwrap();
        assert_eq!(band.slice_ms, None);
    }

    #[test]
    fn refusals_name_the_key_and_what_was_expected() {
        let said = refusal("comm=x,priority=100");
        assert_eq!(
            said,
            "band \"comm=x,priority=100\": priority: 100: expected 1 to 99"
        );
        for (text, words) in [
            ("comm=x", "no priority: expected priority = 1 to 99"),
            ("priority=5", "expected comm, cgroup or nice"),
            ("priority", "expected KEY=VALUE"),
            (
                "nice=high,priority=5",
                "nice: \"high\": expected a whole number",
            ),
            ("nice=20,priority=5", "nice: 20: expected -20 to 19"),
            ("nice=1,priority=300", "priority: 300: expected 1 to 99"),
            (
                "prio=5,comm=x",
                "unknown key \"prio\": expected comm, cgroup, nice",
            ),
            ("comm=,priority=5", "comm: \"\": expected a command's name"),
            ("comm=0123456789abcdef,priority=5", "at most 15 characters"),
            ("cgroup=rt,priority=5", "expected a cgroup's path"),
            ("cgroup=/rt/,priority=5", "expected a cgroup's path"),
            ("cgroup=/a/../b,priority=5", "expected a cgroup's path"),
            (
                "comm=x,priority=5,policy=edf",
                "policy: \"edf\": expected fifo or rr",
            ),
            (
                "comm=x,priority=5,policy=fifo,slice_ms=3",
                "expected policy = \"rr\"",
            ),
            (
                "comm=x,priority=5,slice_ms=0",
                "slice_ms: 0: expected 1 to 1000",
            ),
            ("comm=x,priority=5,comm=y", "comm is there twice"),
        ] {
            let said = refusal(text);
            assert!(said.contains(words), "{said}");
        }
        let long = format!("cgroup=/{},priority=5", "x".repeat(64));
        assert!(refusal(&long).contains("at most 63 characters"));
        let long = format!("cgroup={},priority=5", "/xxxxxxxx".repeat(25));
        assert!(refusal(&long).contains("at most 191 characters"));
    }

    #[test]
    fn a_path_becomes_its_folders() {
        let band: Band = "cgroup=/rt/audio,priority=9".parse().unwrap();
        let image = band.image();
        assert_eq!((image.depth, image.flags), (2, interface::BAND_CGROUP));
        assert!(image.path.starts_with(b"rt\0audio\0\0"));
        let root: Band = "cgroup=/,priority=9".parse().unwrap();
        assert_eq!(root.image().depth, 0);
    }
}
