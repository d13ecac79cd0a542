// SPDX-License-Identifier: GPL-2.0-or-later
//! Options that several commands of the lab have, and the command that they run.

use std::time::Duration;

use clap::Args;
use perch_lab::kernel::Kernel;
use perch_lab::tools::Tool;
use perch_lab::{Arch, Cpus, Topology};

use super::waits;
use super::watched::WATCHED;
use crate::agent;
use crate::arguments::{BadValue, with_unit};
use crate::output::{Failure, say};

/// A guest's kernel as an argument.
#[derive(Args)]
pub struct GuestKernel {
    /// The kernel: a version such as 7.2, or a file [default: the newest 7.2 at hand]
    #[arg(long, value_name = "VERSION|FILE", default_value = "", hide_default_value = true)]
    pub kernel: String,
}

/// What to say of a kernel without sched_ext where one is needed; there are `others` to take.
pub fn no_sched_ext(kernel: &Kernel, others: &str) -> String {
    format!(
        "kernel {} has no sched_ext (CONFIG_SCHED_CLASS_EXT), so no other scheduler can be loaded into \
         it; take another ({others})",
        kernel.release
    )
}

/// [`Cpus`] as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub Cpus);

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Cpus::All => f.write_str("all"),
            Cpus::AtMost(count) => write!(f, "{count}"),
        }
    }
}

/// Reads [`Limit`].
pub fn limit(text: &str) -> Result<Limit, BadValue> {
    match text.parse() {
        _ if text == "all" => Ok(Limit(Cpus::All)),
        Ok(count) if count > 0 => Ok(Limit(Cpus::AtMost(count))),
        _ => Err("expected a whole number, at least 1, or `all`".into()),
    }
}

/// Says on stderr what of its machine a guest lacks.
pub fn say_left_out(topology: &Topology) {
    for sentence in topology.left_out() {
        say(format_args!("left out: {sentence}"));
    }
}

/// A time of the host's clock, such as `90s`, `10m` or `2h`.
pub fn time(text: &str) -> Result<Duration, BadValue> {
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    match with_unit(text, &units, "90s, 10m or 2h")? {
        Some(seconds @ 1..=604_800) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected at least a second and at most a week".into()),
    }
}

/// The command in the guest's words, and the programs that it needs besides busybox.
pub fn in_guest(command: &[String], with: &[String]) -> (Vec<String>, Vec<String>) {
    /// The programs of every guest.
    const THERE: [&str; 4] = ["sh", "ash", "perch", "busybox"];
    let mut argv = command.to_vec();
    let mut tools = with.to_vec();
    let program = &command[0];
    let name = program.rsplit('/').next().unwrap_or(program);
    if !THERE.contains(&name) {
        tools.push(program.clone());
    }
    argv[0] = name.to_string();
    (argv, tools)
}

/// Refuses a program that no guest of `arch` could have, before anything is fetched.
pub fn foresee(tools: &[String], arch: Arch) -> Result<(), Failure> {
    let mut tools = tools.iter();
    Ok(tools.try_for_each(|tool| Tool::foresee(tool, arch))?)
}

/// The command as it is watched; with a seed, in modelled time, in which it begins at a moment
/// that the seed chooses; with `waits`, its tasks' waits are counted, with `marks` its lines.
pub fn watched(seed: Option<u64>, waits: bool, marks: bool, command: Vec<String>) -> Vec<String> {
    let mut argv = agent::in_guest(WATCHED);
    argv.extend(seed.map(|seed| format!("--seed={seed}")));
    argv.extend(waits.then(|| format!("--waits={}", waits::FILE)));
    argv.extend(marks.then(|| "--marks".to_string()));
    argv.push("--".to_string());
    argv.extend(command);
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_refused() {
        assert_eq!(limit("all"), Ok(Limit(Cpus::All)));
        assert_eq!(limit("8"), Ok(Limit(Cpus::AtMost(8))));
        assert!(limit("0").is_err() && limit("-1").is_err() && limit("many").is_err());
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        for bad in ["", "10", "m", "0s", "1.5h", "200h", "99999999999999999999h"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_program_by_path_is_called_by_name_in_the_guest() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let (argv, tools) = in_guest(&words(&["/opt/bench/mine", "-x"]), &words(&["tbench_srv"]));
        assert_eq!(argv, ["mine", "-x"]);
        assert_eq!(tools, ["tbench_srv", "/opt/bench/mine"]);
        let (argv, tools) = in_guest(&words(&["sh", "-c", "true"]), &[]);
        assert_eq!(argv[0], "sh");
        assert!(tools.is_empty());
    }
}
