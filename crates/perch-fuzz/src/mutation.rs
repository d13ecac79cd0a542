// SPDX-License-Identifier: GPL-2.0-or-later
//! One change of an input.

use std::ops::Range;

use proptest::prelude::*;

use crate::text;

/// Numbers at which readers go wrong.
const NUMBERS: [&str; 28] = [
    "0",
    "-1",
    "1",
    "2",
    "007",
    "0.5",
    "-0.0",
    "64",
    "1024",
    "1025",
    "8192",
    "8193",
    "65536",
    "1000000",
    "1000000000",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e18",
    "1e400",
    "1e-400",
    "nan",
    "inf",
];
/// The same for the bytes of a binary format.
const EXTREMES: [u64; 12] =
    [0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 32, u64::MAX / 2, u64::MAX];
/// The longest input that a change makes.
const LONGEST: usize = 1 << 18;

/// A change of an input. A place is a share of the input, of 2^32, so that it stands in every input.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// One bit is another.
    Flip { at: u32, bit: u8 },
    /// One byte is another.
    Set { at: u32, byte: u8 },
    /// Bytes come in.
    Insert { at: u32, bytes: Vec<u8> },
    /// A range is missing.
    Delete { at: u32, bytes: u16 },
    /// A range is there again, elsewhere.
    Copy { at: u32, bytes: u16, to: u32 },
    /// A number in text is another.
    Number { which: u32, number: u8 },
    /// A number in bytes is another: of 1, 2, 4 or 8 bytes, of either order.
    Extreme { at: u32, number: u8, wide: u8, big: bool },
    /// A word of the target's dictionary comes in, or stands for another.
    Word { at: u32, word: u32, instead: bool },
    /// A word is one from elsewhere, perhaps of another seed.
    Swap { which: u32, by: u32, seed: u32 },
    /// Lines are missing.
    Drop { line: u32, lines: u8 },
    /// Lines are there again, elsewhere, perhaps those of another seed.
    Again { line: u32, lines: u8, to: u32, seed: u32 },
    /// A range of another seed comes in.
    Splice { seed: u32, from: u32, bytes: u16, at: u32 },
    /// The end is missing.
    Truncate { at: u32 },
    /// A range is there many times.
    Repeat { at: u32, bytes: u8, times: u16 },
}

/// The place that a share of 2^32 means among `all`.
pub fn place(share: u32, all: usize) -> usize {
    ((u64::from(share) * all as u64) >> 32) as usize
}

/// The range of so many bytes from a place.
fn range(at: u32, bytes: usize, input: &[u8]) -> Range<usize> {
    let begin = place(at, input.len() + 1);
    begin..(begin + bytes).min(input.len())
}

/// The range of so many lines.
fn some_lines(line: u32, lines: u8, input: &[u8]) -> Range<usize> {
    let all = text::lines(input);
    let first = place(line, all.len());
    let last = (first + usize::from(lines)).min(all.len());
    match all.get(first..last) {
        Some([one]) => one.clone(),
        Some([begin, .., end]) => begin.start..end.end,
        _ => 0..0,
    }
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

impl Mutation {
    /// Returns the changes of a format of text, or of a binary one.
    pub fn any(binary: bool) -> BoxedStrategy<Mutation> {
        let bits = if binary { 0..8u8 } else { 0..7 };
        let byte = || {
            if binary {
                any::<u8>().boxed()
            } else {
                prop_oneof![20 => 0x20..0x7fu8, 2 => 0..0x20u8, 1 => any::<u8>()].boxed()
            }
        };
        let at = any::<u32>;
        let text = u32::from(!binary);
        prop_oneof![
            2 => (at(), bits).prop_map(|(at, bit)| Mutation::Flip { at, bit }),
            2 => (at(), byte()).prop_map(|(at, byte)| Mutation::Set { at, byte }),
            1 => (at(), prop::collection::vec(byte(), 1..9))
                .prop_map(|(at, bytes)| Mutation::Insert { at, bytes }),
            1 => (at(), 1..64u16).prop_map(|(at, bytes)| Mutation::Delete { at, bytes }),
            1 => (at(), 1..64u16, at()).prop_map(|(at, bytes, to)| Mutation::Copy { at, bytes, to }),
            1 + 5 * text => (at(), 0..NUMBERS.len() as u8)
                .prop_map(|(which, number)| Mutation::Number { which, number }),
            6 - 5 * text => (at(), 0..EXTREMES.len() as u8, 0..4u8, any::<bool>())
                .prop_map(|(at, number, wide, big)| Mutation::Extreme { at, number, wide, big }),
            1 + 3 * text => (at(), at(), any::<bool>())
                .prop_map(|(at, word, instead)| Mutation::Word { at, word, instead }),
            1 + 3 * text => (at(), at(), at())
                .prop_map(|(which, by, seed)| Mutation::Swap { which, by, seed }),
            1 + 2 * text => (at(), 1..8u8).prop_map(|(line, lines)| Mutation::Drop { line, lines }),
            1 + 2 * text => (at(), 1..8u8, at(), at())
                .prop_map(|(line, lines, to, seed)| Mutation::Again { line, lines, to, seed }),
            1 => (at(), at(), 1..512u16, at())
                .prop_map(|(seed, from, bytes, at)| Mutation::Splice { seed, from, bytes, at }),
            1 => at().prop_map(|at| Mutation::Truncate { at }),
            1 => (at(), 1..32u8, prop_oneof![Just(2u16), Just(10), Just(1000)])
                .prop_map(|(at, bytes, times)| Mutation::Repeat { at, bytes, times }),
        ]
        .boxed()
    }

    /// Changes an input. `seeds` and `dictionary` are the target's.
    pub fn apply(&self, input: &mut Vec<u8>, seeds: &[Vec<u8>], dictionary: &[&str]) {
        let other = |seed: u32| &seeds[place(seed, seeds.len())][..];
        match *self {
            Mutation::Flip { at, bit } => {
                let at = place(at, input.len());
                input.iter_mut().skip(at).take(1).for_each(|b| *b ^= 1 << bit);
            }
            Mutation::Set { at, byte } => {
                let at = place(at, input.len());
                input.iter_mut().skip(at).take(1).for_each(|b| *b = byte);
            }
            Mutation::Insert { at, ref bytes } => {
                insert(input, range(at, 0, input).start, bytes);
            }
            Mutation::Delete { at, bytes } => {
                input.drain(range(at, bytes.into(), input));
            }
            Mutation::Copy { at, bytes, to } => {
                let copy = input[range(at, bytes.into(), input)].to_vec();
                insert(input, range(to, 0, input).start, &copy);
            }
            Mutation::Number { which, number } => {
                let all = text::numbers(input);
                if let Some(found) = all.get(place(which, all.len())) {
                    let number = NUMBERS[usize::from(number)];
                    input.splice(found.clone(), number.bytes());
                }
            }
            Mutation::Extreme { at, number, wide, big } => {
                let (number, wide) = (EXTREMES[usize::from(number)], 1 << wide);
                let bytes = if big {
                    number.to_be_bytes()[8 - wide..].to_vec()
                } else {
                    number.to_le_bytes()[..wide].to_vec()
                };
                let found = range(at, wide, input);
                input.splice(found, bytes);
            }
            _ => self.apply_words(input, other, dictionary),
        }
        input.truncate(LONGEST);
    }

    /// Changes whole words, lines and longer ranges.
    fn apply_words<'a>(
        &self,
        input: &mut Vec<u8>,
        other: impl Fn(u32) -> &'a [u8],
        dictionary: &[&str],
    ) {
        match *self {
            Mutation::Word { at, word, instead } => {
                let word = dictionary.get(place(word, dictionary.len()));
                let word = word.copied().unwrap_or("\0");
                let all = text::words(input);
                match all.get(place(at, all.len())).filter(|_| instead) {
                    Some(found) => drop(input.splice(found.clone(), word.bytes())),
                    None => insert(input, range(at, 0, input).start, word.as_bytes()),
                }
            }
            Mutation::Swap { which, by, seed } => {
                let (from, all) = (other(seed), text::words(input));
                let others = text::words(from);
                let by = others.get(place(by, others.len()));
                if let Some((found, by)) = all.get(place(which, all.len())).zip(by) {
                    input.splice(found.clone(), from[by.clone()].iter().copied());
                }
            }
            Mutation::Drop { line, lines } => {
                input.drain(some_lines(line, lines, input));
            }
            Mutation::Again { line, lines, to, seed } => {
                let from = other(seed);
                let copy = &from[some_lines(line, lines, from)];
                let to = some_lines(to, 1, input).start;
                insert(input, to, copy);
            }
            Mutation::Splice { seed, from, bytes, at } => {
                let other = other(seed);
                let copy = &other[range(from, bytes.into(), other)];
                insert(input, range(at, 0, input).start, copy);
            }
            Mutation::Truncate { at } => input.truncate(place(at, input.len())),
            Mutation::Repeat { at, bytes, times } => {
                let found = range(at, bytes.into(), input);
                let copy = input[found.clone()].repeat(times.into());
                insert(input, found.start, &copy);
            }
            _ => unreachable!("changes of bytes are made elsewhere"),
        }
    }
}
