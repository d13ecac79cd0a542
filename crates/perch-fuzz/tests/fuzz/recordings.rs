// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of wake-ups, each of which is replayed and asked for advice.

use perch_fuzz::{Target, fuzz, refused};
use perch_machine::Machine;
use perch_policy::{Era, Mode, Modes, Policy, Topology};
use perch_record::advice::advise;
use perch_record::format::Reader;
use perch_record::replay;
use perch_record::synthetic::{Synthetic, synthetic};

use crate::folder;

/// The signature and the version.
const START: usize = 12;
/// A block begins with its kind, the lengths as stored and as it was, and a checksum.
const PREFIX: usize = 13;

fn number(file: &[u8], at: usize) -> usize {
    let word: [u8; 4] = file[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(word) as usize
}

/// Returns a recording whose blocks are as they were, so that a change hits what they hold.
fn unpacked(file: &[u8]) -> Vec<u8> {
    let mut out = file[..START].to_vec();
    let mut at = START;
    while at < file.len() {
        let (stored, raw) = (number(file, at + 1), number(file, at + 5));
        let bytes = &file[at + PREFIX..at + PREFIX + stored];
        let bytes = match stored < raw {
            true => lz4_flex::block::decompress(bytes, raw).expect("it was just packed"),
            false => bytes.to_vec(),
        };
        out.push(file[at]);
        for _ in 0..2 {
            out.extend((raw as u32).to_le_bytes());
        }
        out.extend([0; 4]);
        out.extend(bytes);
        at += PREFIX + stored;
    }
    seal(&mut out);
    out
}

/// Mends the checksums, and the lengths of a last block that was cut off.
fn seal(file: &mut [u8]) {
    let mut at = START;
    while at + PREFIX <= file.len() {
        let left = file.len() - at - PREFIX;
        if number(file, at + 1) > left {
            let length = (left as u32).to_le_bytes();
            file[at + 1..at + 5].copy_from_slice(&length);
            file[at + 5..at + 9].copy_from_slice(&length);
        }
        let end = at + PREFIX + number(file, at + 1);
        let mut sum = crc32fast::Hasher::new();
        sum.update(&file[at..at + 9]);
        sum.update(&file[at + PREFIX..end]);
        file[at + 9..at + PREFIX].copy_from_slice(&sum.finalize().to_le_bytes());
        at = end;
    }
}

/// Returns a recording of so many wake-ups.
pub fn of(wake_ups: u64, machine: &Machine, policy: Policy) -> Vec<u8> {
    let what =
        Synthetic { seed: 1, wake_ups, every_ns: 100_000_000, busy_pct: 60, real_time_every: 7 };
    let mut file = Vec::new();
    synthetic(&mut file, machine, policy, what).expect("memory takes it");
    file
}

/// Returns recordings of an unequal machine, of one with clusters and of one whose sets of CPUs have two
/// words, packed and unpacked.
fn seeds() -> Vec<Vec<u8>> {
    let modes = Modes { cluster: Mode::Upstream, capacity: Mode::Upstream, ..Modes::default() };
    let mut seeds = Vec::new();
    for (machine, era) in [
        (perch_machine::library::load("juno").unwrap(), Era::V7_2),
        (Machine::random(5, 12), Era::V6_15),
        (Machine::regular("wide", 2, 1, 1, 1, 35, 1).unwrap(), Era::V5_5),
    ] {
        let file = of(40, &machine, Policy::new(era, modes));
        seeds.push(unpacked(&file));
        seeds.push(file);
    }
    seeds
}

/// Reads a recording as `perch replay` and `perch advise` do; the error is what they would say.
pub fn replayed(input: &[u8]) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| error.to_string();
    let mut reader = Reader::new(input).map_err(|error| wrong(&error))?;
    let header = reader.header().clone();
    let machine = Machine::from_toml_str(&header.machine, "its machine");
    let machine = machine.map_err(|error| wrong(&error))?;
    let topology = Topology::new(&machine);
    let rows = [topology.nr_cpus(), topology.nr_shared()];
    if header.rows.unwrap_or(rows) != rows {
        return Err("other rows".to_string());
    }
    let era: Era = header.era.parse().map_err(|error| wrong(&error))?;
    let modes = match header.modes.as_str() {
        "" => Modes::default(),
        modes => modes.parse().map_err(|error| wrong(&error))?,
    };
    let model = Policy::new(era, modes);
    let other = Modes { cluster: Mode::Perch, ..modes };
    replay(&mut reader, &topology, model, Some(Policy::new(era, other)), 1)
        .map_err(|error| wrong(&error))?;
    let mut reader = Reader::new(input).map_err(|error| wrong(&error))?;
    let advice = advise(&mut reader, &topology, model, 1).map_err(|error| wrong(&error))?;
    for change in &advice.changes {
        let share = change.changed;
        assert!(0.0 <= share.low && share.high <= 1.0 && share.part <= share.of);
    }
    Ok(())
}

#[test]
fn recording() {
    let target = Target {
        name: "recording",
        inputs: 2500,
        seeds: seeds(),
        words: &[
            "\"cpu\":[",
            "\"task\":",
            "\"rows\":[1,2]",
            "\"era\":\"5.5\"",
            "\"hz\":0",
            "W",
            "D",
            "H",
            "F",
        ],
        binary: true,
        seal: |file| seal(file),
        check: &|input, _| match replayed(input) {
            Ok(()) => Ok(()),
            Err(said) => refused(&said, "", input),
        },
    };
    fuzz(&target, &folder());
}
