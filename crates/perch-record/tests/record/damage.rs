// SPDX-License-Identifier: GPL-2.0-or-later
//! Damage that no checksum shows: whole blocks in the wrong place. That no contents of a block, under
//! a right checksum, cause a panic or make C read past an array is perch-fuzz's (`recording`).

use perch_policy::testing::machines;
use perch_policy::{Era, Modes, Policy};
use perch_record::format::{FormatError, Reader};
use perch_record::synthetic::{Synthetic, synthetic};

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

/// The error names blocks that stand in the wrong place.
#[test]
fn blocks_in_the_wrong_place_are_refused() {
    let machine = machines::random(4, 8);
    let what =
        Synthetic { seed: 1, wake_ups: 50, every_ns: 1000, busy_pct: 50, real_time_every: 0 };
    let mut good = Vec::new();
    synthetic(&mut good, &machine, Policy::new(Era::V7_2, Modes::default()), what).expect("memory");
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
