// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of damage that no checksum shows: blocks whose contents are nonsense, under checksums that
//! are right. A file may come from anybody, so no such block may cause a panic, and none may make C
//! read past an array.

use perch_policy::testing::machines;
use perch_policy::{Era, Mode, Modes, Policy, Topology};
use perch_record::advice::advise;
use perch_record::format::{FormatError, Reader};
use perch_record::replay;
use perch_record::synthetic::{Synthetic, synthetic};
use proptest::prelude::*;

/// Returns the offset of each block, and the number of bytes behind its prefix.
fn blocks(file: &[u8]) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut at = 12;
    while at < file.len() {
        let word: [u8; 4] = file[at + 1..at + 5].try_into().expect("four");
        let stored = u32::from_le_bytes(word) as usize;
        blocks.push((at, stored));
        at += 13 + stored;
    }
    blocks
}

/// Returns a block with a right checksum.
fn block(kind: u8, raw: &[u8]) -> Vec<u8> {
    let length = (raw.len() as u32).to_le_bytes();
    let mut block = vec![kind];
    block.extend(length);
    block.extend(length);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&block);
    sum.update(raw);
    block.extend(sum.finalize().to_le_bytes());
    block.extend(raw);
    block
}

/// Returns a block's bytes, unpacked.
fn raw(file: &[u8], (at, stored): (usize, usize)) -> Vec<u8> {
    let word: [u8; 4] = file[at + 5..at + 9].try_into().expect("four");
    let size = u32::from_le_bytes(word) as usize;
    let bytes = &file[at + 13..at + 13 + stored];
    match stored < size {
        true => lz4_flex::block::decompress(bytes, size).expect("what was written"),
        false => bytes.to_vec(),
    }
}

const MODEL: Modes = Modes {
    cluster: Mode::Upstream,
    capacity: Mode::Upstream,
    cache: Mode::Off,
    overload: Mode::Off,
    steer: Mode::Off,
    layout: None,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn nonsense_is_read_or_refused(
        seed: u64,
        max_cpus in 1..70usize,
        changes in prop::collection::vec((any::<u32>(), any::<u8>()), 0..12),
        cut: Option<u16>,
    ) {
        let machine = machines::random(seed, max_cpus);
        let topology = Topology::new(&machine);
        let what = Synthetic {
            seed,
            wake_ups: 60,
            every_ns: 100_000_000,
            busy_pct: 60,
            real_time_every: 7,
        };
        let mut good = Vec::new();
        let era = [Era::V5_5, Era::V6_5, Era::V6_15, Era::V7_2][(seed % 4) as usize];
        let model = Policy::new(era, MODEL);
        synthetic(&mut good, &machine, model, what).expect("memory");
        let all = blocks(&good);
        let (at, stored) = all[1];
        let mut bytes = raw(&good, (at, stored));
        for (place, value) in changes {
            let place = place as usize % bytes.len();
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(usize::from(cut) % bytes.len());
        }
        let mut file = good[..at].to_vec();
        file.extend(block(b'W', &bytes));
        file.extend(&good[at + 13 + stored..]);
        let other = Policy::new(era, Modes { cluster: Mode::Perch, ..MODEL });
        let mut reader = Reader::new(&file[..]).expect("its header is good");
        match replay(&mut reader, &topology, model, Some(other), 1) {
            Ok(outcome) => prop_assert!(outcome.model.asked <= bytes.len() as u64),
            Err(FormatError::Damaged { at: place, .. }) => prop_assert_eq!(place, at as u64),
            Err(error) => prop_assert!(false, "{}", error),
        }
        let mut reader = Reader::new(&file[..]).expect("its header is good");
        let advice = advise(&mut reader, &topology, model, 1);
        for change in advice.iter().flat_map(|advice| &advice.changes) {
            let share = change.changed;
            prop_assert!(0.0 <= share.low && share.high <= 1.0 && share.part <= share.of);
        }
    }

    /// A header, too, may have any contents.
    #[test]
    fn headers_of_nonsense_are_refused(seed: u64, place: u32, value: u8) {
        let machine = machines::random(seed, 8);
        let what = Synthetic { seed, wake_ups: 5, every_ns: 1000, busy_pct: 50, real_time_every: 0 };
        let mut good = Vec::new();
        synthetic(&mut good, &machine, Policy::new(Era::V7_2, MODEL), what).expect("memory");
        let all = blocks(&good);
        let mut header = raw(&good, all[0]);
        let place = place as usize % header.len();
        header[place] = value;
        let mut file = good[..12].to_vec();
        file.extend(block(b'H', &header));
        file.extend(&good[all[1].0..]);
        match Reader::new(&file[..]) {
            Ok(mut reader) => while let Ok(Some(_)) = reader.next_block() {},
            Err(error) => {
                let said = error.to_string();
                prop_assert!(said.starts_with("header: ") && said.len() > 12, "{}", said);
            }
        }
    }
}

/// The error names blocks that stand in the wrong place.
#[test]
fn blocks_in_the_wrong_place_are_refused() {
    let machine = machines::random(4, 8);
    let what =
        Synthetic { seed: 1, wake_ups: 50, every_ns: 1000, busy_pct: 50, real_time_every: 0 };
    let mut good = Vec::new();
    synthetic(&mut good, &machine, Policy::new(Era::V7_2, MODEL), what).expect("memory");
    let all = blocks(&good);
    assert_eq!(all.len(), 3, "header, wake-ups, footer");
    let end = |file: &[u8]| {
        let mut reader = Reader::new(file)?;
        while reader.next_block()?.is_some() {}
        Ok::<_, FormatError>(())
    };
    assert!(end(&good).is_ok());
    let said = |file: &[u8]| end(file).expect_err("no recording").to_string();
    // This file has the wake-ups before the header.
    let mut file = good[..12].to_vec();
    file.extend(&good[all[1].0..]);
    assert_eq!(
        said(&file),
        "byte 12: the first block is not a header; what comes before it is good"
    );
    // This file has more wake-ups behind the footer.
    let mut file = good.clone();
    file.extend(&good[all[1].0..all[2].0]);
    let wanted = format!("byte {}: a block of kind 0x57 here", good.len());
    assert!(said(&file).starts_with(&wanted), "{}", said(&file));
    // This file has a block of an unknown kind.
    let mut file = good[..all[2].0].to_vec();
    file.extend(block(b'X', b"new"));
    assert!(said(&file).contains("kind 0x58"), "{}", said(&file));
}
