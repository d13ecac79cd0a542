// SPDX-License-Identifier: GPL-2.0-or-later
//! The memory that a user's request may take. It is foreseen from counts, and a request that is too
//! large is refused before anything is allocated for it.
//!
//! The sizes below were measured as resident memory of `perch compare` on x86-64, each on a load of
//! many of one thing, and rounded up. docs/formats.md has them.

use std::fmt;
use std::str::FromStr;

use crate::{Op, Workload};

/// Bytes that a task takes: its description, and its state in the simulator. Measured: 640.
const TASK: u64 = 768;
/// Bytes of an operation of a program.
const OPERATION: u64 = size_of::<Op>() as u64;
/// Bytes of a channel, with the message and the reader that wait there now and then. Measured with
/// what a program of a task's own takes beside its operations: 480.
const CHANNEL: u64 = 512;
/// Bytes of a message in a channel.
const MESSAGE: u64 = 32;
/// Bytes of a CPU of the machine, and of one more CPU of a task group.
const CPU: u64 = 4096;
const GROUP_CPU: u64 = 128;
/// Bytes that are kept of a simulation when it is over: its scores, and their copies while
/// intervals are computed.
const SIMULATION: u64 = 256;

const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// The memory that a request may take.
///
/// ```
/// use perch_workload::{Budget, Demand};
/// let budget: Budget = "512MiB".parse().unwrap();
/// let demand = Demand { tasks: 1_000_000, ..Demand::default() };
/// let refused = budget.check("tasks=1000000", demand).unwrap_err();
/// assert!(refused.to_string().ends_with("expected less, or a larger budget: --budget 733MiB"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(u64);

/// The things that take memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Tasks.
    pub tasks: u64,
    /// Operations in the programs of all tasks; a program that tasks share counts once.
    pub operations: u64,
    /// Channels and pipes between the tasks, mutexes and counters.
    pub channels: u64,
    /// The most messages that wait in channels at a time.
    pub messages: u64,
    /// CPUs of the machine.
    pub cpus: u64,
    /// Task groups.
    pub groups: u64,
    /// Simulations whose scores are kept.
    pub simulations: u64,
}

impl Demand {
    /// Returns what so many tasks take, with the operations of their programs and their channels.
    pub fn new(tasks: u64, operations: u64, channels: u64) -> Demand {
        Demand { tasks, operations, channels, ..Demand::default() }
    }

    /// Returns what a workload takes that is built already, on a machine of so many CPUs.
    pub fn of(workload: &Workload, cpus: usize) -> Demand {
        let tasks = &workload.tasks;
        // Tasks that share a program lie beside each other.
        let is_new = |&at: &usize| {
            at == 0 || !std::sync::Arc::ptr_eq(&tasks[at].program, &tasks[at - 1].program)
        };
        let own = (0..tasks.len()).filter(is_new);
        Demand {
            tasks: tasks.len() as u64,
            operations: own.map(|at| tasks[at].program.len() as u64).sum(),
            channels: [workload.channels, workload.pipes, workload.mutexes, workload.counters]
                .map(|number| number as u64)
                .iter()
                .sum(),
            cpus: cpus as u64,
            groups: workload.groups.len() as u64,
            ..Demand::default()
        }
    }

    /// Returns the bytes that are foreseen for it.
    pub fn bytes(&self) -> u64 {
        let parts = [
            (self.tasks, TASK),
            (self.operations, OPERATION),
            (self.channels, CHANNEL),
            (self.messages, MESSAGE),
            (self.cpus, CPU),
            (self.groups.saturating_mul(self.cpus), GROUP_CPU),
            (self.simulations, SIMULATION),
        ];
        let bytes = parts.map(|(count, each)| count.saturating_mul(each));
        bytes.into_iter().fold(0, u64::saturating_add)
    }
}

/// Names the counts that are not 0, as words.
impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.tasks, "tasks"),
            (self.operations, "operations"),
            (self.channels, "channels"),
            (self.messages, "messages"),
            (self.groups, "task groups"),
            (self.cpus, "CPUs"),
            (self.simulations, "simulations"),
        ];
        let counted = counts.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = counted.map(|(count, name)| format!("{count} {name}")).collect();
        f.write_str(&words.join(", "))
    }
}

/// A request that would take more memory than it may.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{asked}: {demand} take about {} of memory, and the budget is {budget}: expected less, or a \
     larger budget: --budget {}",
    in_words(.demand.bytes()),
    Budget::of(.demand.bytes())
)]
pub struct OverBudget {
    /// The key and the value that ask for it.
    pub asked: String,
    /// The things that it consists of.
    pub demand: Demand,
    /// The memory that it may take.
    pub budget: Budget,
}

impl Budget {
    /// The budget of a user who names none. It is enough for four times the 64 tasks per CPU of a
    /// machine with 4096 CPUs, and for four million simulations.
    pub const DEFAULT: Budget = Budget(1 << 30);

    /// Returns a budget of at least so many bytes, in whole units of a MiB or more.
    pub fn of(bytes: u64) -> Budget {
        let unit = if bytes > 16 << 30 { 1 << 30 } else { 1 << 20 };
        Budget(bytes.clamp(1, 1 << 62).div_ceil(unit) * unit)
    }

    /// Refuses a demand that is over the budget; `asked` is the key and its value.
    ///
    /// # Errors
    /// The error displays what was asked for, what is foreseen, the budget, and the option that
    /// raises it.
    pub fn check(self, asked: &str, demand: Demand) -> Result<(), OverBudget> {
        if demand.bytes() <= self.0 {
            return Ok(());
        }
        Err(OverBudget { asked: asked.to_string(), demand, budget: self })
    }

    /// Returns how many of `wanted` simulations of a demand may run at a time while `kept` is kept
    /// beside them: at least 1, and no more than fit into the budget.
    pub fn at_a_time(self, wanted: usize, each: Demand, kept: Demand) -> usize {
        let fit = self.0.saturating_sub(kept.bytes()) / each.bytes().max(1);
        wanted.min(usize::try_from(fit).unwrap_or(usize::MAX)).max(1)
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::DEFAULT
    }
}

/// Returns an amount of memory to three figures.
fn in_words(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, shift)| bytes >> shift > 0);
    let (name, shift) = unit.unwrap_or(&UNITS[3]);
    let amount = bytes as f64 / (1u64 << shift) as f64;
    let decimals = if amount < 100.0 { 1 } else { 0 };
    format!("{amount:.decimals$} {name}")
}

/// Writes the budget as it is read: a whole number of the largest unit that leaves no rest.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, shift): &&(&str, u32)| self.0 > 0 && self.0.trailing_zeros() >= *shift;
        match UNITS.iter().find(whole) {
            Some((name, shift)) => write!(f, "{}{name}", self.0 >> shift),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// A text that is no amount of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number, at least 1, with KiB, MiB, GiB or TiB, for example 4GiB")]
pub struct NoBudget;

impl FromStr for Budget {
    type Err = NoBudget;

    fn from_str(text: &str) -> Result<Budget, NoBudget> {
        let read = |(name, shift): &(&str, u32)| {
            let digits = text.strip_suffix(name)?;
            let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
            let count: u64 = digits.parse().ok().filter(|count| plain && *count > 0)?;
            count.checked_mul(1 << shift).map(Budget)
        };
        UNITS.iter().find_map(read).ok_or(NoBudget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perch_machine::Machine;

    fn machine() -> Machine {
        Machine::regular("m", 2, 1, 2, 0, 4, 1).expect("a machine of 16 CPUs")
    }

    fn refused(spec: &str) -> String {
        let found = Workload::parse(spec, &machine());
        found.expect_err(spec).to_string()
    }

    /// Each of these would allocate gigabytes.
    #[test]
    fn a_refusal_names_the_keys_the_amount_and_the_option() {
        for (spec, keys) in [
            ("pipe:pairs=1000000", "pairs=1000000: 2000000 tasks"),
            ("runsleep:tasks=1000000/cpu", "tasks=1000000/cpu: 16000000 tasks"),
            ("httperf:at_once=1000000", "at_once=1000000 and burst=100: 2000000 tasks"),
            (
                "httperf:at_once=4000,calls=10000,burst=10000",
                "at_once=4000 and burst=10000: 8000 tasks",
            ),
            ("trade:users=1000000", "users=1000000: 3000000 tasks"),
            ("tbench-net:n=1000000", "n=1000000: 2000000 tasks"),
            ("tbench:n=1000000", "n=1000000: 2000002 tasks"),
            ("tcp_rr:n=1000000", "n=1000000: 2000002 tasks"),
            ("udp_rr:n=1000000", "n=1000000: 2000002 tasks"),
            ("volano:rooms=1000,users=1000", "rooms=1000 and users=1000: 4000000 tasks"),
            ("hackbench:groups=200000", "groups=200000 and fds=20: 8000001 tasks"),
            ("sysbench:threads=10000000", "threads=10000000 and locks=8: 10000002 tasks"),
            (
                "schbench:messengers=10,workers=1000000",
                "messengers=10 and workers=1000000: 10000011 tasks",
            ),
            (
                "schbench-old:messengers=10,workers=1000000",
                "messengers=10 and workers=1000000: 10000011 tasks",
            ),
            (
                "schbench:messengers=100000,sleeps=1000",
                "messengers=100000 and sleeps=1000: 200001 tasks",
            ),
            (
                "vm:hogs=1024x1024,vcpus=256,shares=1024,inside=pipe:pairs=300000",
                "inside=pipe:pairs=300000",
            ),
            ("vm:hogs=10x1024,inside=pipe:pairs=2000000", ""),
        ] {
            let error = refused(spec);
            assert!(error.starts_with(&format!("workload \"{spec}\": ")), "{error}");
            assert!(error.contains(keys), "{error}");
            assert!(error.contains(" of memory, and the budget is 1GiB: "), "{error}");
            assert!(error.contains("or a larger budget: --budget "), "{error}");
        }
    }

    #[test]
    fn a_virtual_machine_is_refused_with_what_is_inside() {
        let within = |spec: &str, budget: &str| {
            let budget = budget.parse().expect("a budget");
            Workload::parse_within(spec, &machine(), budget).map(|_| ())
        };
        let spec = "vm:hogs=4x16,inside=pipe:pairs=60";
        let error = within(spec, "256KiB").expect_err("a small budget").to_string();
        assert!(error.contains(": vm: 192 tasks"), "{error}");
        within(spec, "512KiB").expect("a sufficient budget");
        let hogs = within("vm:hogs=16x16", "256KiB").expect_err("a small budget");
        assert!(hogs.to_string().contains(": hogs=16x16: 264 tasks"), "{hogs}");
    }

    /// The counts that builders give beforehand are no smaller than those of what they build, and
    /// not twice as large.
    #[test]
    fn what_is_foreseen_is_what_is_built() {
        let machine = machine();
        for spec in [
            "pipe:pairs=500",
            "runsleep:tasks=2000",
            "httperf:at_once=50",
            "trade:users=300",
            "tbench-net:n=500",
            "tbench:n=500",
            "udp_rr:n=500",
            "tcp_stream:n=500",
            "volano:rooms=5,users=50",
            "hackbench:groups=30",
            "sysbench:threads=1000",
            "schbench:messengers=4,workers=500",
            "ffmpeg:instances=2",
        ] {
            let workload = Workload::parse(spec, &machine).expect(spec);
            let built = Demand::of(&workload, machine.cpus.len()).bytes();
            // The least budget that lets it through is what was foreseen.
            let (mut low, mut high) = (0, 1 << 30);
            while high - low > 1 {
                let middle = (low + high) / 2;
                match Workload::parse_within(spec, &machine, Budget(middle)) {
                    Ok(_) => high = middle,
                    Err(_) => low = middle,
                }
            }
            assert!(high >= built && high < 2 * built, "{spec}: {high} {built}");
        }
    }

    #[test]
    fn the_default_holds_64_tasks_on_each_of_4096_cpus() {
        let most = Demand {
            tasks: 64 * 4096,
            operations: 16 * 64 * 4096,
            channels: 64 * 4096,
            cpus: 4096,
            groups: 64,
            simulations: 100_000,
            ..Demand::default()
        };
        assert_eq!(Budget::DEFAULT.check("tasks", most), Ok(()));
    }

    #[test]
    fn amounts_read_back_and_others_are_refused() {
        for text in ["1KiB", "512MiB", "3GiB", "2TiB"] {
            let budget: Budget = text.parse().expect(text);
            assert_eq!(budget.to_string(), text);
        }
        for text in ["", "GiB", "0GiB", "-1GiB", "+1GiB", "1", "1GB", "1.5GiB", "99999999TiB"] {
            assert_eq!(text.parse::<Budget>(), Err(NoBudget), "{text}");
        }
        let suggested = [1, (1 << 20) + 1, 1 << 40].map(|bytes| Budget::of(bytes).to_string());
        assert_eq!(suggested, ["1MiB", "2MiB", "1TiB"]);
        assert_eq!(Budget::of(u64::MAX).to_string(), "4194304TiB");
    }

    #[test]
    fn as_many_run_at_a_time_as_fit() {
        let each = Demand { tasks: 1_000_000, ..Demand::default() };
        let budget: Budget = "4GiB".parse().expect("a budget");
        assert_eq!(budget.at_a_time(64, each, Demand::default()), 5);
        assert_eq!(budget.at_a_time(3, each, Demand::default()), 3);
        assert_eq!(budget.at_a_time(8, each, each), 4);
        assert_eq!(Budget::DEFAULT.at_a_time(8, each, each), 1);
    }
}
