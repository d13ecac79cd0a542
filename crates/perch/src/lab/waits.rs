// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab run --waits`: how long the command's tasks waited for a CPU in the guest, and how far
//! they moved, under whatever scheduler its kernel had.

use std::collections::BTreeMap;
use std::path::Path;

use perch_machine::{Distance, Host, Machine};
use perch_report::{Align, Grid, figure};
use perch_scheduler::waits::{Cause, Counted, Scope, Wait, Watch};
use serde::{Deserialize, Serialize};

use crate::arguments::Form;
use crate::fresh;
use crate::output::{Failure, emit};

/// The file in a guest that takes the counts.
pub const FILE: &str = "/run/perch-waits.json";

/// Waits of one kind.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Waited {
    /// How many ended.
    pub count: u64,
    /// Their mean in ns; 0 without any, as are the fields below.
    pub mean_ns: u64,
    /// The ns that half of them did not exceed, to 1 in 128, as are the fields below.
    pub p50_ns: u64,
    /// The ns that 90 % of them did not exceed.
    pub p90_ns: u64,
    /// The ns that 99 % of them did not exceed.
    pub p99_ns: u64,
    /// The longest, in ns.
    pub max_ns: u64,
}

/// Switches to tasks by the distance from the CPU on which each ran before.
pub type Moves = BTreeMap<String, u64>;

/// The waits and the moves of all tasks of a command.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Waits {
    /// Switches to a task of the command from any other task.
    pub switches: u64,
    /// From the moment at which a woken task is in a queue.
    pub wakeup: Waited,
    /// Of the same tasks, from the waker's call.
    pub waking: Waited,
    /// From the moment at which a task leaves a CPU though it could go on.
    pub preempted: Waited,
    /// Where woken tasks ran.
    pub moves_woken: Moves,
    /// Where preempted tasks went on.
    pub moves_preempted: Moves,
    /// Where forked tasks ran first, from the CPU of the parent.
    pub moves_forked: Moves,
}

impl Waits {
    fn new(counted: &Counted, machine: &Machine) -> Waits {
        let waited = |wait| {
            let at = |part| counted.quantile_ns(wait, part).round() as u64;
            Waited {
                count: counted.waits(wait),
                mean_ns: counted.mean_ns(wait).round() as u64,
                p50_ns: at(0.5),
                p90_ns: at(0.9),
                p99_ns: at(0.99),
                max_ns: at(1.0),
            }
        };
        let moves = |cause| {
            let mut moves = Moves::new();
            for (from, to, count) in counted.moves(cause) {
                let name = machine.distance(from, to).name().to_string();
                *moves.entry(name).or_default() += count;
            }
            moves
        };
        let causes = [Cause::Woken, Cause::Preempted, Cause::Forked];
        let [moves_woken, moves_preempted, moves_forked] = causes.map(moves);
        let all = [&moves_woken, &moves_preempted, &moves_forked];
        Waits {
            switches: all.iter().flat_map(|moves| moves.values()).sum(),
            wakeup: waited(Wait::AfterWakeup),
            waking: waited(Wait::AfterWaking),
            preempted: waited(Wait::AfterPreemption),
            moves_woken,
            moves_preempted,
            moves_forked,
        }
    }

    /// What a guest's file says.
    ///
    /// # Errors
    /// A failure when it says nothing that perch wrote.
    pub fn parse(bytes: &[u8]) -> Result<Waits, Failure> {
        serde_json::from_slice(bytes)
            .map_err(|error| Failure::run(format!("the guest's counts of waits: {error}")))
    }

    fn json(&self) -> String {
        serde_json::to_string(self).expect("the counts have only text keys") + "\n"
    }

    fn table(&self) -> String {
        let mut waits =
            Grid::new(&["waits, us"], &["count", "mean", "50 %", "90 %", "99 %", "longest"]);
        for (name, waited) in [
            ("woken", &self.wakeup),
            ("woken, from the waker's call", &self.waking),
            ("preempted", &self.preempted),
        ] {
            let times =
                [waited.mean_ns, waited.p50_ns, waited.p90_ns, waited.p99_ns, waited.max_ns];
            let times = times.map(|ns| match waited.count {
                0 => String::new(),
                _ => figure(ns as f64 / 1000.0),
            });
            let cells = [name.to_string(), waited.count.to_string()];
            waits.row(cells.into_iter().chain(times).collect());
        }
        let mut moves = Grid::new(&["runs on"], &[]);
        let causes = [
            ("woken", &self.moves_woken),
            ("preempted", &self.moves_preempted),
            ("forked", &self.moves_forked),
        ];
        for (name, _) in causes {
            moves.column("", name, Align::Right);
        }
        for distance in Distance::ALL {
            let counts = causes.map(|(_, moves)| moves.get(distance.name()).copied());
            if counts.iter().all(Option::is_none) {
                continue;
            }
            let name = match distance {
                Distance::Cpu => "the same CPU".to_string(),
                other => format!("another of the {}", other.name()),
            };
            let counts = counts.map(|count| count.unwrap_or(0).to_string());
            moves.row([name].into_iter().chain(counts).collect());
        }
        format!(
            "\n{}\n{}{} switches to tasks of the command\n",
            waits.text(),
            moves.text(),
            self.switches
        )
    }

    /// Prints them.
    ///
    /// # Errors
    /// As [`emit`].
    pub fn show(&self, form: Form) -> Result<(), Failure> {
        emit(&match form {
            Form::Table => self.table(),
            Form::Json => self.json(),
        })
    }
}

/// Counts the tasks that descend from this process from now on.
pub struct Watching {
    machine: Machine,
    watch: Watch,
}

impl Watching {
    /// Loads the programs.
    ///
    /// # Errors
    /// When the kernel takes none, or does not tell its machine's shape.
    pub fn begin() -> Result<Watching, Failure> {
        Ok(Watching {
            // The counts are by the kernel's numbers.
            machine: Host::detect("/".as_ref())?.with_kernel_numbers()?,
            watch: Watch::begin(Scope::Descendants)?,
        })
    }

    /// Writes a line of JSON to a file, or to stdout.
    ///
    /// # Errors
    /// When the counts cannot be had or written.
    pub fn end(&self, to: Option<&Path>) -> Result<(), Failure> {
        let line = Waits::new(&self.watch.counted()?, &self.machine).json();
        to.map_or_else(|| emit(&line), |path| fresh::write(path, &line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_json_say_the_same() {
        let waited = |count, us: u64| Waited {
            count,
            mean_ns: 1500 * us,
            p50_ns: 1000 * us,
            p90_ns: 2000 * us,
            p99_ns: 40_000 * us,
            max_ns: 1_000_000 * us,
        };
        let moves = |all: &[(Distance, u64)]| {
            let all = all.iter();
            all.map(|(distance, count)| (distance.name().to_string(), *count)).collect()
        };
        let waits = Waits {
            switches: 1013,
            wakeup: waited(1000, 1),
            waking: waited(1000, 2),
            preempted: Waited::default(),
            moves_woken: moves(&[(Distance::Cpu, 900), (Distance::Cluster, 100)]),
            moves_preempted: Moves::new(),
            moves_forked: moves(&[(Distance::Node, 13)]),
        };
        assert_eq!(Waits::parse(waits.json().as_bytes()).unwrap(), waits);
        insta::assert_snapshot!(waits.table());
    }
}
