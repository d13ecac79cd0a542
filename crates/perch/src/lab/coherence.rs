// SPDX-License-Identifier: GPL-2.0-or-later
//! The cache lines that moved between a guest's CPUs: the plugin's counts with names for addresses,
//! in the form in which perch-report writes and shows them.

use std::collections::BTreeMap;
use std::path::Path;

use perch_lab::coherence::{Counted, Line, Slot, Spent, Symbols, Task};
use perch_lab::guest::Setup;
use perch_report::{Cause, LineCounts, LineMoves, Moves, SlotCounts, TaskCounts};

use super::{RunArguments, Scheduler};
use crate::arguments::origin;
use crate::output::Failure;

/// The name that all code of users has in tables.
const USERS: &str = "(user)";

/// The name of code of the kernel that has no symbol, such as a BPF program that was unloaded before
/// the symbols were read.
const NAMELESS: &str = "(no symbol)";

/// No function of the kernel is longer, in bytes, and no variable that the kernel's CPUs share often:
/// an address further behind the last symbol is not that symbol's.
const LONGEST: u64 = 1 << 20;

/// Refuses a file of `--counts` whose name does not end as its form does.
pub fn check_ending(path: &Path) -> Result<(), Failure> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => Ok(()),
        _ => Err(Failure::input(format!(
            "--counts {}: expected a name that ends in .json",
            path.display()
        ))),
    }
}

/// Returns the counts of a guest, with what brings them back.
pub fn counts(
    arguments: &RunArguments,
    setup: &Setup,
    kernel: &str,
    (counted, symbols): (&Counted, &Symbols),
) -> LineCounts {
    let origin = origin();
    let scheduler = match arguments.scheduler {
        Scheduler::Stock => "stock".to_string(),
        Scheduler::Perch => [&["perch".to_string()], &arguments.set[..]].concat().join(" "),
    };
    LineCounts {
        perch: origin.version,
        command: origin.command,
        machine: setup.topology.machine().name.clone(),
        kernel: kernel.to_string(),
        scheduler,
        cpus: setup.topology.cpus() as u32,
        slots: slots(counted, symbols, arguments.operations),
    }
}

/// Returns the counts of all slots. `operations` are those of the command, if the user said how many;
/// otherwise those that the command marked count, and without marks all is one operation.
fn slots(counted: &Counted, symbols: &Symbols, operations: Option<u64>) -> Vec<SlotCounts> {
    let slots = counted.slots.iter();
    slots
        .map(|slot| SlotCounts {
            slot: slot.number,
            operations: operations.unwrap_or(slot.rounds).max(1),
            accesses: slot.accesses,
            instructions: slot.instructions.clone(),
            used: by_cpu(&slot.touched, |used| (*used != [0, 0]).then_some(*used)),
            time_ps: by_cpu(&slot.spent, |spent| some(time(spent))),
            aside: by_cpu(&slot.spent, |spent| some(spent.aside.clone())),
            moved: slot.moved.clone(),
            functions: functions(slot, symbols),
            lines: lines(slot, symbols),
            tasks: tasks(slot),
        })
        .collect()
}

/// Returns what `of` makes of each CPU's counts, if anything.
fn by_cpu<T, U>(counts: &[T], of: impl Fn(&T) -> Option<U>) -> BTreeMap<u32, U> {
    let counts = (0..).zip(counts);
    let found = counts.filter_map(|(cpu, counts)| Some((cpu, of(counts)?)));
    found.collect()
}

/// Returns counts if there are any.
fn some<K>(counts: BTreeMap<K, u64>) -> Option<BTreeMap<K, u64>> {
    (!counts.is_empty()).then_some(counts)
}

/// Returns where a CPU's time went, in picoseconds, without what took none.
fn time(spent: &Spent) -> BTreeMap<Cause, u64> {
    let others = [
        (Cause::Instructions, spent.instructions),
        (Cause::Smt, spent.smt),
        (Cause::Queue, spent.queue),
        (Cause::Stores, spent.stores),
        (Cause::Exit, spent.exit),
    ];
    let lines = spent.lines.iter();
    let lines = lines.map(|(moved, ps)| (Cause::Line(*moved), *ps));
    let all = others.into_iter().chain(lines);
    all.filter(|(_, ps)| *ps > 0).collect()
}

/// Returns the function of an instruction.
fn function(symbols: &Symbols, address: u64) -> String {
    match symbols.find(address) {
        Some((name, offset)) if offset < LONGEST => name.to_string(),
        _ if address >> 63 == 0 => USERS.to_string(),
        _ => NAMELESS.to_string(),
    }
}

fn functions(slot: &Slot, symbols: &Symbols) -> BTreeMap<String, Moves> {
    let mut functions: BTreeMap<String, Moves> = BTreeMap::new();
    for (address, moved) in &slot.code {
        let sums = functions.entry(function(symbols, *address)).or_default();
        for (moved, count) in moved {
            *sums.entry(*moved).or_default() += count;
        }
    }
    functions
}

/// Returns the lines, those that moved most first and equals by their places in memory.
fn lines(slot: &Slot, symbols: &Symbols) -> Vec<LineMoves> {
    let mut lines: Vec<&Line> = slot.lines.iter().collect();
    lines.sort_by_key(|line| (std::cmp::Reverse(line.moves), line.physical));
    let by = |address: u64| match address {
        0 => String::new(),
        address => function(symbols, address),
    };
    let of = |line: &Line| LineMoves {
        name: line_name(symbols, line),
        moves: line.moves,
        loaded_by: by(line.reader),
        written_by: by(line.writer),
    };
    lines.into_iter().map(of).collect()
}

/// Returns a line's name: the kernel's variable and the offset in it where the kernel's image has
/// one, otherwise the line's address.
fn line_name(symbols: &Symbols, line: &Line) -> String {
    /// Where the kernel's image begins.
    const IMAGE: u64 = 0xffff_ffff_8000_0000;
    match symbols.find(line.address) {
        Some((name, offset)) if line.address >= IMAGE && offset < LONGEST => {
            format!("{name}+{offset:#x}")
        }
        _ => format!("{:x}", line.address),
    }
}

/// Returns CPUs in order as the kernel writes them: `0,2-7`.
fn list(cpus: &[u32]) -> String {
    let ranges = cpus.chunk_by(|a, b| a + 1 == *b);
    let words = ranges.map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        range => range[0].to_string(),
    });
    words.collect::<Vec<_>>().join(",")
}

/// Returns the tasks. The kernel's names of them are not known to the plugin: a task is called by the
/// order of the counts, by what it is, and by the CPUs that it ran on.
fn tasks(slot: &Slot) -> Vec<TaskCounts> {
    let tasks = slot.tasks.iter().zip(1..);
    let of = |(task, number): (&Task, u32)| {
        let kind = match task {
            // The plugin does not know the tasks that ran when counting began, until they switched.
            task if task.id == 0 => "earlier",
            task if task.halts > 0 => "idle",
            task if task.instructions[0] == 0 => "kernel",
            _ => "user",
        };
        let cpus: Vec<u32> = task.ran.keys().copied().collect();
        let on = match cpus.is_empty() {
            true => String::new(),
            false => format!(" on {}", list(&cpus)),
        };
        TaskCounts {
            name: format!("{kind} {number}{on}"),
            runs: task.runs,
            instructions: task.instructions,
            data: task.data,
            own: task.own,
            code: task.code,
            moved: task.moved.clone(),
        }
    };
    tasks.map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(operations: Option<u64>) -> LineCounts {
        let file = "slot 1 rounds 4 accesses 90\ncpu 0 user 40 kernel 400\ntouched 0 data 6 code 0\n\
                    time 0 instructions 4000 smt 0 queue 0 stores 10 exit 0\n\
                    waited 0 1 4 2000\nwaited 0 6 0 90\naside 0 3 4 2\nmoved 0 0 1 2 4\n\
                    moved 0 1 1 4 40\nmoved 0 1 3 4 20\nmoved 0 1 1 3 2\nmoved 0 1 6 0 8\ncode 401000 1 2 4\n\
                    code ffffffff81000010 1 4 30\ncode ffffffff81000020 1 4 10\n\
                    code ffffffff81000048 3 4 20\ncode ffffffff81000048 6 0 8\n\
                    line 1040 ffffffff81000108 60 ffffffff81000010 ffffffff81000048\n\
                    code ffffffffa0000000 1 3 2\nline 3000 ffffffffa0003000 1 0 0\n\
                    line 2000 ffff888000002000 4 401000 0\n\
                    task ffff888000000f10 runs 8 halts 0 user 40 kernel 300 data 96 own 40 code 80\n\
                    ran 0 7\nran 1 1\ncarried 1 4 40\nend 1\n";
        let symbols = "ffffffff81000000 T try_to_wake_up\nffffffff81000040 t ttwu_queue\n\
                       ffffffff81000100 D runqueues\n";
        let counted = Counted::parse(file).unwrap();
        LineCounts {
            cpus: 1,
            slots: slots(&counted, &Symbols::parse(symbols), operations),
            ..LineCounts::default()
        }
    }

    #[test]
    fn tables_are_per_operation() {
        insta::assert_snapshot!(counted(None).text());
    }

    #[test]
    fn addresses_have_names_in_files_and_operations_are_the_users() {
        let json = counted(Some(2)).json();
        for line in [
            r#"{"what":"used","name":"0","kind":"data","count":6}"#,
            r#"{"what":"time_ps","name":"0","kind":"instructions","count":4000}"#,
            r#"{"what":"time_ps","name":"0","kind":"dirty load","distance":"node","count":2000}"#,
            r#"{"what":"aside","name":"0","kind":"upgrade","distance":"node","count":2}"#,
            r#"{"what":"function","name":"try_to_wake_up","kind":"dirty load","distance":"node","count":40}"#,
            r#"{"what":"function","name":"(user)","kind":"dirty load","distance":"cluster","count":4}"#,
            r#"{"what":"function","name":"(no symbol)","kind":"dirty load","distance":"LLC","count":2}"#,
            r#"{"what":"line","name":"runqueues+0x8","count":60,"loaded_by":"try_to_wake_up","written_by":"ttwu_queue"}"#,
            r#"{"what":"line","name":"ffff888000002000","count":4,"loaded_by":"(user)"}"#,
            r#"{"what":"line","name":"ffffffffa0003000","count":1}"#,
        ] {
            assert!(json.contains(line), "{line}: {json}");
        }
    }

    #[test]
    fn another_ending_is_refused() {
        let error = check_ending("b.txt".as_ref()).unwrap_err();
        assert!(error.message.starts_with("--counts b.txt: "), "{error:?}");
    }
}
