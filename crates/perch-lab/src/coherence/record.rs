// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts that the plugin wrote (`plugin/coherence.c` has the form of the file).

use std::collections::BTreeMap;

use perch_machine::Distance;

use crate::error::{Error, Result};

/// The way in which a line moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A CPU loaded a line that another CPU had modified.
    LoadDirty,
    /// A CPU wrote to a line that another CPU had modified.
    StoreDirty,
    /// A CPU wrote to a line that it held clean, and copies elsewhere were invalidated.
    Upgrade,
    /// A CPU wrote to a line that only others held, clean.
    StoreClean,
    /// A CPU loaded a line that only others held, clean.
    LoadClean,
    /// A line came from memory: no CPU had it.
    Cold,
}

impl Kind {
    /// Every kind, in the order of the plugin's numbers, which begin at 1.
    pub const ALL: [Kind; 6] = [
        Kind::LoadDirty,
        Kind::StoreDirty,
        Kind::Upgrade,
        Kind::StoreClean,
        Kind::LoadClean,
        Kind::Cold,
    ];

    /// The kind's name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::LoadDirty => "dirty load",
            Kind::StoreDirty => "dirty store",
            Kind::Upgrade => "upgrade",
            Kind::StoreClean => "clean store",
            Kind::LoadClean => "clean load",
            Kind::Cold => "cold",
        }
    }

    /// Returns whether the CPU loaded.
    pub fn is_load(self) -> bool {
        matches!(self, Kind::LoadDirty | Kind::LoadClean)
    }

    /// Returns whether the line, or the message that invalidates its copies, went from CPU to CPU.
    pub fn is_between_cpus(self) -> bool {
        self != Kind::Cold
    }
}

/// How often lines moved in one way over one distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moved {
    /// The way.
    pub kind: Kind,
    /// The distance to the CPU that had the line.
    pub distance: Distance,
}

/// A line that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its physical address.
    pub physical: u64,
    /// The virtual address by which it was used last.
    pub address: u64,
    /// How often it moved between CPUs.
    pub moves: u64,
    /// The instruction that loaded it last, 0 if none did.
    pub reader: u64,
    /// The instruction that wrote to it last, 0 if none did.
    pub writer: u64,
}

/// The counts between two marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The number that the marks had.
    pub number: u8,
    /// Operations that the program marked.
    pub rounds: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// By CPU, instructions of users' code and of the kernel's.
    pub instructions: Vec<[u64; 2]>,
    /// Moves by users' code and by the kernel's.
    pub moved: [BTreeMap<Moved, u64>; 2],
    /// Moves by the address of the instruction.
    pub code: BTreeMap<u64, BTreeMap<Moved, u64>>,
    /// The lines that moved.
    pub lines: Vec<Line>,
}

impl Slot {
    /// Moves of users' and the kernel's code, of one kind over one distance.
    pub fn moves(&self, kind: Kind, distance: Distance) -> u64 {
        let moved = Moved { kind, distance };
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
        ["moved", cpu, mode, kind, distance, count] => {
            (cpu.parse::<usize>().ok()? < slot.instructions.len()).then_some(())?;
            let by = slot.moved.get_mut(mode.parse::<usize>().ok()?)?;
            *by.entry(moved(kind, distance)?).or_default() += count.parse::<u64>().ok()?;
        }
        ["code", address, kind, distance, count] => {
            let by = slot.code.entry(hex(address)?).or_default();
            *by.entry(moved(kind, distance)?).or_default() += count.parse::<u64>().ok()?;
        }
        ["line", physical, address, moves, reader, writer] => slot.lines.push(Line {
            physical: hex(physical)?,
            address: hex(address)?,
            moves: moves.parse().ok()?,
            reader: hex(reader)?,
            writer: hex(writer)?,
        }),
        _ => return None,
    }
    Some(())
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

fn moved(kind: &str, distance: &str) -> Option<Moved> {
    let kind = kind.parse::<usize>().ok()?.checked_sub(1)?;
    Some(Moved {
        kind: *Kind::ALL.get(kind)?,
        distance: *Distance::ALL.get(distance.parse::<usize>().ok()?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "slot 3 rounds 2 accesses 50\ncpu 0 user 10 kernel 90\nmoved 0 0 1 2 4\n\
                        moved 0 1 1 2 6\nmoved 0 1 6 0 1\ncpu 1 user 0 kernel 7\n\
                        code ffffffff81000010 1 2 10\ncode ffffffff81000010 6 0 1\n\
                        line 1040 ffff888000001040 10 ffffffff81000010 0\nend 3\n";

    #[test]
    fn a_slot_is_read_as_it_was_written() {
        let counted = Counted::parse(FILE).unwrap();
        let [slot] = &counted.slots[..] else {
            panic!("{counted:?}");
        };
        assert_eq!((slot.number, slot.rounds, slot.accesses), (3, 2, 50));
        assert_eq!(slot.instructions, [[10, 90], [0, 7]]);
        assert_eq!(slot.moves(Kind::LoadDirty, Distance::Cluster), 10);
        assert_eq!(slot.moves(Kind::Cold, Distance::Cpu), 1);
        assert_eq!(slot.code[&0xffff_ffff_8100_0010].len(), 2);
        assert_eq!(slot.lines[0].moves, 10);
        assert_eq!(Counted::parse("").unwrap(), Counted::default());
    }

    #[test]
    fn any_other_file_is_refused_by_its_line() {
        let lines: Vec<&str> = FILE.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            for bad in [
                line.replace(' ', "  "),
                line.replacen(' ', " x", 1),
                "nonsense".to_string(),
            ] {
                let mut file = lines.clone();
                file[at] = &bad;
                let error = Counted::parse(&file.join("\n")).unwrap_err().to_string();
                assert!(
                    error.contains(&format!("line {}:", at + 1)),
                    "{bad:?}: {error}"
                );
            }
        }
        let cut = lines[..lines.len() - 1].join("\n");
        assert!(
            Counted::parse(&cut)
                .unwrap_err()
                .to_string()
                .contains("end in the middle")
        );
        assert!(Counted::parse(&FILE.repeat(2)).unwrap().slots.len() == 2);
    }
}
