// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts that the plugin wrote (`plugin/count.c` has the form of the file).

use std::collections::BTreeMap;

use perch_machine::Distance;
use perch_machine::moves::{LineKind, Move, Moves};
use serde::Serialize;

use crate::error::{Error, Result};

/// The time of a CPU between two marks, in picoseconds. A CPU that is halted spends none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Its instructions.
    pub instructions: u64,
    /// The time that instructions took longer because a sibling ran on the core.
    pub smt: u64,
    /// For lines that others had first.
    pub queue: u64,
    /// For the store buffer: it was full, or a locked instruction waited for it.
    pub stores: u64,
    /// Out of idle states.
    pub exit: u64,
    /// For lines, by the way in which they came, less what overlapped.
    pub lines: Moves,
    /// Not time but a number: lines that moved to the CPU after it had woken another one and before
    /// it halted. While the interrupt is on its way, nobody waits for them.
    pub aside: Moves,
}

impl Spent {
    /// All of it.
    pub fn total(&self) -> u64 {
        let lines: u64 = self.lines.values().sum();
        self.instructions + self.smt + self.queue + self.stores + self.exit + lines
    }
}

/// The counts between two marks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// The number that the marks had.
    pub number: u8,
    /// Operations that the program marked.
    pub rounds: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// By CPU, instructions of users' code and of the kernel's.
    pub instructions: Vec<[u64; 2]>,
    /// By CPU, where its time went; empty where time is not modelled.
    pub spent: Vec<Spent>,
    /// Moves by users' code and by the kernel's.
    pub moved: [Moves; 2],
    /// Moves by the address of the instruction.
    #[serde(skip)]
    pub code: BTreeMap<u64, Moves>,
}

impl Slot {
    /// Moves of users' and the kernel's code, of one kind over one distance.
    pub fn moves(&self, kind: LineKind, distance: Distance) -> u64 {
        let moved = Move { kind, distance };
        self.moved.iter().filter_map(|by| by.get(&moved)).sum()
    }
}

/// All that was counted, a slot for each stretch between two marks, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The stretches.
    pub slots: Vec<Slot>,
}

impl Counted {
    /// Reads the plugin's file.
    ///
    /// # Errors
    /// [`Error::Input`] with the number of the line that is not as the plugin writes it.
    pub fn parse(text: &str) -> Result<Counted> {
        let mut counted = Counted::default();
        let mut open: Option<Slot> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split(' ').collect();
            if let [word @ ("slot" | "end"), slot, ..] = words[..] {
                let is_open = open.is_some();
                if (word == "slot") == is_open || slot.parse::<u8>().is_err() {
                    return Err(unreadable(number, line));
                }
            }
            let read = match (words.first(), &mut open) {
                (Some(&"slot"), none) => begin(&words).map(|slot| *none = Some(slot)),
                (Some(&"end"), slot) => slot.take().map(|slot| counted.slots.push(slot)),
                (_, Some(slot)) => add(slot, &words),
                (_, None) => None,
            };
            read.ok_or_else(|| unreadable(number, line))?;
        }
        match open {
            None => Ok(counted),
            Some(_) => Err(Error::Input(
                "the counts of the plugin end in the middle of a slot".to_string(),
            )),
        }
    }
}

fn unreadable(number: usize, line: &str) -> Error {
    Error::Input(format!(
        "the counts of the plugin, line {number}: {line:?} is not what perch's plugin writes"
    ))
}

fn begin(words: &[&str]) -> Option<Slot> {
    let [_, number, "rounds", rounds, "accesses", accesses] = words else {
        return None;
    };
    Some(Slot {
        number: number.parse().ok()?,
        rounds: rounds.parse().ok()?,
        accesses: accesses.parse().ok()?,
        ..Slot::default()
    })
}

fn add(slot: &mut Slot, words: &[&str]) -> Option<()> {
    match words {
        ["cpu", cpu, "user", user, "kernel", kernel] => {
            // CPUs come in order.
            (cpu.parse() == Ok(slot.instructions.len())).then_some(())?;
            let counts = [user.parse().ok()?, kernel.parse().ok()?];
            slot.instructions.push(counts);
        }
        ["time", cpu, rest @ ..] => {
            (cpu.parse() == Ok(slot.spent.len())).then_some(())?;
            slot.spent.push(spent(rest)?);
        }
        ["waited", cpu, kind, distance, ps] => {
            let spent = slot.spent.get_mut(cpu.parse::<usize>().ok()?)?;
            raise(&mut spent.lines, moved(kind, distance)?, ps)?;
        }
        ["aside", cpu, kind, distance, count] => {
            let spent = slot.spent.get_mut(cpu.parse::<usize>().ok()?)?;
            raise(&mut spent.aside, moved(kind, distance)?, count)?;
        }
        ["moved", cpu, mode, kind, distance, count] => {
            (cpu.parse::<usize>().ok()? < slot.instructions.len()).then_some(())?;
            let by = slot.moved.get_mut(mode.parse::<usize>().ok()?)?;
            raise(by, moved(kind, distance)?, count)?;
        }
        ["code", address, kind, distance, count] => {
            let by = slot.code.entry(hex(address)?).or_default();
            raise(by, moved(kind, distance)?, count)?;
        }
        _ => return None,
    }
    Some(())
}

fn spent(words: &[&str]) -> Option<Spent> {
    let ["instructions", instructions, "smt", smt, "queue", queue, "stores", stores, "exit", exit] =
        words
    else {
        return None;
    };
    Some(Spent {
        instructions: instructions.parse().ok()?,
        smt: smt.parse().ok()?,
        queue: queue.parse().ok()?,
        stores: stores.parse().ok()?,
        exit: exit.parse().ok()?,
        ..Spent::default()
    })
}

/// Adds the number `by` to the count of a move; `None` if that exceeds what a count can hold.
fn raise(moves: &mut Moves, at: Move, by: &str) -> Option<()> {
    let count = moves.entry(at).or_default();
    *count = count.checked_add(by.parse().ok()?)?;
    Some(())
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

fn moved(kind: &str, distance: &str) -> Option<Move> {
    let kind = kind.parse::<usize>().ok()?.checked_sub(1)?;
    Some(Move {
        kind: *LineKind::ALL.get(kind)?,
        distance: *Distance::ALL.get(distance.parse::<usize>().ok()?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "slot 3 rounds 2 accesses 50\ncpu 0 user 10 kernel 90\n\
                        time 0 instructions 40 smt 0 queue 1 stores 2 exit 3\nwaited 0 1 2 25\naside 0 1 2 1\n\
                        moved 0 0 1 2 4\n\
                        moved 0 1 1 2 6\nmoved 0 1 6 0 1\ncpu 1 user 0 kernel 7\n\
                        code ffffffff81000010 1 2 10\ncode ffffffff81000010 6 0 1\n\
                        end 3\n";

    /// Found by fuzzing: an optimised build went on with what was left of the sum.
    #[test]
    fn counts_that_no_count_can_hold_are_refused() {
        let large = format!("moved 0 0 1 2 {}\nmoved 0 1 1 2 6", u64::MAX);
        let file = FILE.replace("moved 0 1 1 2 6", &format!("{large}\nmoved 0 0 1 2 1"));
        let error = Counted::parse(&file).unwrap_err().to_string();
        assert!(error.contains("line 7"), "{error}");
    }

    #[test]
    fn a_slot_is_read_as_it_was_written() {
        let counted = Counted::parse(FILE).unwrap();
        let [slot] = &counted.slots[..] else {
            panic!("{counted:?}");
        };
        assert_eq!((slot.number, slot.rounds, slot.accesses), (3, 2, 50));
        assert_eq!(slot.instructions, [[10, 90], [0, 7]]);
        assert_eq!(slot.spent[0].total(), 71);
        assert_eq!(slot.moves(LineKind::LoadDirty, Distance::Cluster), 10);
        assert_eq!(slot.moves(LineKind::Cold, Distance::Cpu), 1);
        assert_eq!(slot.code[&0xffff_ffff_8100_0010].len(), 2);
        assert_eq!(Counted::parse("").unwrap(), Counted::default());
    }

    #[test]
    fn any_other_file_is_refused_by_its_line() {
        let lines: Vec<&str> = FILE.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            for bad in
                [line.replace(' ', "  "), line.replacen(' ', " x", 1), "nonsense".to_string()]
            {
                let mut file = lines.clone();
                file[at] = &bad;
                let error = Counted::parse(&file.join("\n")).unwrap_err().to_string();
                assert!(error.contains(&format!("line {}:", at + 1)), "{bad:?}: {error}");
            }
        }
        let cut = lines[..lines.len() - 1].join("\n");
        assert!(Counted::parse(&cut).unwrap_err().to_string().contains("end in the middle"));
        assert!(Counted::parse(&FILE.repeat(2)).unwrap().slots.len() == 2);
    }
}
