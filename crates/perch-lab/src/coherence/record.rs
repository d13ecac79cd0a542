// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts that the plugin wrote (`plugin/count.c` has the form of the file).

use std::collections::BTreeMap;

use perch_machine::Distance;
use perch_machine::moves::{LineKind, Move, Moves};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::error::Error;

/// The time of a CPU between two marks, in picoseconds. A CPU that is halted spends none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    #[serde(deserialize_with = "moves")]
    pub lines: Moves,
    /// Not time but a number: lines that moved to the CPU after it had woken another one and before
    /// it halted. While the interrupt is on its way, nobody waits for them.
    #[serde(deserialize_with = "moves")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    #[serde(deserialize_with = "by_mode")]
    pub moved: [Moves; 2],
    /// Moves by the address of the instruction.
    #[serde(skip_serializing, deserialize_with = "by_address")]
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
    /// [`Error::Input`] with the line that is not as the plugin writes it.
    pub fn parse(text: &str) -> Result<Counted, Error> {
        let slots = serde_json::Deserializer::from_str(text).into_iter();
        let slots = slots.collect::<serde_json::Result<_>>();
        let slots = slots
            .map_err(|error| Error::Input(format!("the counts of perch's plugin: {error}")))?;
        Ok(Counted { slots })
    }
}

/// A move as the plugin writes it: the numbers of its kind and of its distance, and how much of it there
/// was.
type Written = (usize, usize, u64);

/// Adds a move to others.
fn add<E: de::Error>(moves: &mut Moves, (kind, distance, more): Written) -> Result<(), E> {
    let kind = kind.checked_sub(1).and_then(|kind| LineKind::ALL.get(kind));
    let at = kind.zip(Distance::ALL.get(distance));
    let (&kind, &distance) = at.ok_or_else(|| E::custom("there is no such move"))?;
    let count = moves.entry(Move { kind, distance }).or_default();
    let sum = count.checked_add(more);
    *count = sum.ok_or_else(|| E::custom("no count can hold the sum"))?;
    Ok(())
}

fn moves<'de, D: Deserializer<'de>>(from: D) -> Result<Moves, D::Error> {
    let mut moves = Moves::new();
    for written in Vec::deserialize(from)? {
        add(&mut moves, written)?;
    }
    Ok(moves)
}

/// Moves as [`moves`] reads them, to have some of them in a list.
#[derive(Deserialize)]
struct List(#[serde(deserialize_with = "moves")] Moves);

fn by_mode<'de, D: Deserializer<'de>>(from: D) -> Result<[Moves; 2], D::Error> {
    Ok(<[List; 2]>::deserialize(from)?.map(|list| list.0))
}

/// Programs with different code at the same address have several entries.
fn by_address<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u64, Moves>, D::Error> {
    let mut code: BTreeMap<u64, Moves> = BTreeMap::new();
    for (address, kind, distance, count) in Vec::deserialize(from)? {
        add(code.entry(address).or_default(), (kind, distance, count))?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!("../../../perch-fuzz/seeds/counts/slot.txt");

    /// Found by fuzzing: an optimised build went on with what was left of the sum.
    #[test]
    fn counts_that_no_count_can_hold_are_refused() {
        let large = format!("[18446744071578845200,1,2,{}]", u64::MAX);
        let file = FILE.replace("[18446744071578845200,6,0,1]", &large);
        let error = Counted::parse(&file).unwrap_err().to_string();
        assert!(error.contains("no count can hold the sum at line 1"), "{error}");
    }

    #[test]
    fn a_slot_is_read_as_it_was_written() {
        let counted = Counted::parse(&FILE.repeat(2)).unwrap();
        let [slot, again] = &counted.slots[..] else {
            panic!("{counted:?}");
        };
        assert_eq!(slot, again);
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
        let cases = [
            ("\"rounds\":2,", ""),
            ("\"rounds\":2,", "\"rounds\":-2,"),
            ("\"rounds\"", "\"turns\":0,\"rounds\""),
            ("[1,2,25]", "[0,2,25]"),
            ("[1,2,25]", "[1,200,25]"),
            ("]}\n", "]"),
        ];
        for (old, new) in cases {
            let file = [FILE, &FILE.replace(old, new)].concat();
            let error = Counted::parse(&file).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{new:?}: {error}");
        }
    }
}
