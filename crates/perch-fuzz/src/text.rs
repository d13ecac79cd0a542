// SPDX-License-Identifier: GPL-2.0-or-later
//! Parts of an input that a change may take: numbers, words and lines.

use std::ops::Range;

/// Returns the places of the parts whose bytes are all `of` a kind, each as long as it can be.
fn runs(input: &[u8], of: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut begin = None;
    for (at, byte) in input.iter().enumerate() {
        match (of(*byte), begin) {
            (true, None) => begin = Some(at),
            (false, Some(first)) => {
                found.push(first..at);
                begin = None;
            }
            _ => {}
        }
    }
    found.extend(begin.map(|first| first..input.len()));
    found
}

/// Returns the places of the numbers: digits with the points between them.
pub fn numbers(input: &[u8]) -> Vec<Range<usize>> {
    let mut found = runs(input, |byte| byte.is_ascii_digit() || byte == b'.');
    found.retain(|run| input[run.start].is_ascii_digit());
    found
}

/// Returns the places of the words: names, numbers and what is written as one.
pub fn words(input: &[u8]) -> Vec<Range<usize>> {
    runs(input, |byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Returns the places of the lines, each with its end.
pub fn lines(input: &[u8]) -> Vec<Range<usize>> {
    let mut at = 0;
    let lines = input.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| {
            at += line.len();
            at - line.len()..at
        })
        .collect()
}
