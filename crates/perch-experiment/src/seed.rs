// SPDX-License-Identifier: GPL-2.0-or-later
//! The seed of one simulation: it depends on the load and never on the arm, so that the arms of one
//! repetition meet the same random numbers and their difference is due to the arm.

/// Returns the seed for the given repetition of the load that `parts` name.
pub(crate) fn seed(experiment: u64, parts: &[&str], repetition: u32) -> u64 {
    let mut hash = mix(experiment);
    for part in parts {
        // FNV-1a over the parts, with a byte that no text contains between them.
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    mix(hash ^ mix(u64::from(repetition)))
}

/// SplitMix64 (Steele and others 2014), which turns neighbouring inputs into unrelated outputs.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_matters_and_nothing_else_does() {
        let given = seed(1, &["tbench", "node0", "n=1"], 0);
        assert_eq!(given, seed(1, &["tbench", "node0", "n=1"], 0));
        for other in [
            seed(2, &["tbench", "node0", "n=1"], 0),
            seed(1, &["tbenc", "hnode0", "n=1"], 0),
            seed(1, &["tbench", "node0-1", "n=1"], 0),
            seed(1, &["tbench", "node0", "n=1"], 1),
        ] {
            assert_ne!(given, other);
        }
    }
}
