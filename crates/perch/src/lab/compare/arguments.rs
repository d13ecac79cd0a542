// SPDX-License-Identifier: GPL-2.0-or-later
//! The arguments of `perch lab compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use perch_lab::Cpus;
use perch_lab::topology::DEFAULT_CPUS;
use perch_report::ResultFormat;

use super::super::options::{Limit, limit, time};
use super::arm::Arm;
use super::wanted::Wanted;
use crate::arguments::at_least_one;
use crate::gate;

/// The end of `--help`.
const HELP: &str = "\
Arms: [NAME=]SCHEDULER[@KERNEL] [with CHANGE...]
  stock                      the kernel's own scheduler
  perch[:KEY=VALUE,...]      perch, with modes and settings as perch run --set takes them
  NAME=PROGRAM ARGUMENTS     any other scheduler's program. perch takes it along, waits until the
                             kernel says that it is loaded, and ends it by SIGINT

An arm's KERNEL is what --kernel takes, a version or a file: stock@7.2, stock@/path/to/bzImage,
perch:cluster=perch@7.2. It comes right behind the scheduler, before a program's arguments. An arm
without one runs on the kernel of --kernel.

Changes of an arm's kernel, whatever its scheduler:
  clusters=off               the kernel does not know of clusters: no scan, no domain of them. What
                             a transfer costs stays the same
  cache=off                  no cache-aware balancing (Linux 7.2 and newer)
  feature=NAME               a feature of the scheduler, such as NO_SIS_UTIL
  kernel.NAME=VALUE          a sysctl
  /FILE=VALUE                a value for a file below /proc or /sys, debugfs included
  boot=WORD                  a word of the kernel's command line

Scores are read from the output of hackbench, tbench, dbench, sysbench, perf bench sched, schbench,
netperf (TCP_RR, UDP_RR), cyclictest and perch lab ping, and of any other program by --score. A
command with several results prints a line `label: WORDS` before each.

Example:
  perch lab compare -m kunpeng920 --cpus 8 --arm stock --arm 'noscan=stock with clusters=off' \\
      --arm perch:cluster=perch -- hackbench -g 1 -l 50
  perch lab compare -m kunpeng920 --cpus 8 --arm old=stock@7.2 --arm new=stock@arch/x86/boot/bzImage \\
      --fail-if 'time>2%' -- hackbench -g 1 -l 50";

/// The arguments of `perch lab compare`.
#[derive(Args)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// The machine that the guests show, by name or TOML file
    #[arg(long, short, value_name = "MACHINE")]
    pub machine: String,
    /// An arm: `[NAME=]SCHEDULER[@KERNEL] [with CHANGE...]`, see below; changes are shown from the first
    #[arg(long = "arm", value_name = "ARM", required = true, value_parser = Arm::parse)]
    pub arms: Vec<Arm>,
    /// Guests per arm, each with a seed of its own; repetitions of the same number share it
    #[arg(long, default_value = "3", value_name = "N", value_parser = at_least_one)]
    pub repetitions: u32,
    /// How to read a score that perch does not know: the first number behind the words, or the one in
    /// the place of a # in them; more is better unless the unit is a time. May be repeated, and
    /// replaces all others
    #[arg(long = "score", value_name = "NAME[/UNIT][:less|more]=WORDS")]
    pub scores: Vec<Wanted>,
    /// What tables call the load [default: the command]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The kernel of arms that name none of their own: a version such as 7.2, or a file [default: the
    /// newest 7.2 at hand]
    #[arg(long, value_name = "VERSION|FILE", default_value = "", hide_default_value = true)]
    pub kernel: String,
    /// CPUs of the machine to keep, a number or `all`
    #[arg(long, value_name = "N", default_value_t = Limit(Cpus::AtMost(DEFAULT_CPUS)),
          value_parser = limit)]
    pub cpus: Limit,
    /// Another program that the command needs, by name or path; may be repeated
    #[arg(long, value_name = "PROGRAM")]
    pub with: Vec<String>,
    /// How long the command may take in each guest
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    pub timeout: Duration,
    /// The guest's time from the end of its boot to the start of the command, the same in all arms: schedulers
    /// are loaded in it, and the kernel comes to rest
    #[arg(long, value_name = "TIME", default_value = "6s", value_parser = time)]
    pub settle: Duration,
    /// Also show by which reasons the kernel put woken tasks where it did, and how their shares change
    /// from the first arm. Another guest per measurement records them, and the model of the kernel's
    /// era names the reasons. Takes --untimed, and arms with the kernel's own scheduler
    #[arg(long)]
    pub decisions: bool,
    /// The guests' clocks count instructions and don't show modelled time: faster, and what a line
    /// costs on its way between caches does not count
    #[arg(long)]
    pub untimed: bool,
    /// How to write the result: table, markdown, csv or json; lkml, for a mail to a kernel list;
    /// mmtests, as its compare-mmtests.pl prints comparisons
    #[arg(long, default_value = "table", value_name = "FORMAT")]
    pub format: ResultFormat,
    /// Also show std, min, percentiles and max over the repetitions
    #[arg(long)]
    pub statistics: bool,
    /// Also keep what the command wrote in each guest, in a folder: ARM.REPETITION.txt
    #[arg(long, value_name = "FOLDER")]
    pub outputs: Option<PathBuf>,
    #[command(flatten)]
    pub gates: gate::Gates,
    /// The seed that those of the repetitions are derived from
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Guests at a time; the result does not depend on them [default: one per CPU of this host, and
    /// no more than its memory has room for]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub jobs: Option<u32>,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// The command: a program of this host, a packaged benchmark, or one of busybox
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
