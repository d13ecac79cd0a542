// SPDX-License-Identifier: GPL-2.0-or-later
//! Names that are spelt almost like a wanted one, for complaints about names that do not exist.

/// Up to three of `candidates` that are nearest to `wanted`, the nearest first. Among paths, one
/// that ends in the same file name counts as nearest: files move more often than they are renamed.
pub fn nearest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name = last_part(wanted);
    let mut found: Vec<(usize, &str)> = candidates
        .filter_map(|candidate| {
            let other = last_part(candidate);
            if name == other {
                return Some((0, candidate));
            }
            let distance = distance(name, other);
            (distance <= name.len() / 3).then_some((distance + 1, candidate))
        })
        .collect();
    found.sort();
    found.dedup();
    found
        .into_iter()
        .take(3)
        .map(|(_, candidate)| candidate)
        .collect()
}

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

/// The number of characters to insert, remove or change between the two.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_file_comes_before_a_misspelt_one() {
        let files = [
            "src/wake.rs",
            "src/wale.rs",
            "src/sched/wake.rs",
            "src/other.rs",
        ];
        let found = nearest("kernel/wake.rs", files.into_iter());
        assert_eq!(found, ["src/sched/wake.rs", "src/wake.rs", "src/wale.rs"]);
    }
}
