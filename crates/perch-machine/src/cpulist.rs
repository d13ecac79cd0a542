// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's CPU lists: `0,3-5`, and `0-14:2/4` with a stride (Documentation/admin-guide/
//! kernel-parameters.rst, "cpu lists"); and masks, as sysfs and hwloc write them.

use crate::model::MAX_CPUS;
use std::fmt::Write;

/// The reason why a text is no list of CPUs, for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// A part of the whole.
    #[error("`{0}` in `{1}` is not a number")]
    Number(String, String),
    /// A CPU that no machine may have.
    #[error("CPU {0} is beyond the {MAX_CPUS} CPUs that a machine may have")]
    Beyond(u64),
    /// A range whose first CPU is after its last.
    #[error("the range `{0}` runs backwards")]
    Backwards(String),
    /// A range whose stride is not whole.
    #[error("`{0}` lacks the `/` of a stride as in 0-14:2/4")]
    Stride(String),
    /// A range that takes none, or more CPUs of each group than there are.
    #[error("`{0}` takes {1} of every {2} CPUs")]
    Group(String, u32, u32),
    /// A CPU of the whole.
    #[error("CPU {0} is named twice in `{1}`")]
    Twice(u32, String),
}

/// Returns the CPUs that `text` names, ascending, each once. Empty text names none.
///
/// # Errors
/// The part that is not a number, a range that runs backwards, a CPU named twice, or a CPU at or
/// above [`MAX_CPUS`].
pub fn parse(text: &str) -> Result<Vec<u32>, ListError> {
    let mut cpus = Vec::new();
    if text.trim().is_empty() {
        return Ok(cpus);
    }
    for part in text.split(',') {
        let part = part.trim();
        let (range, stride) = match part.split_once(':') {
            Some((range, stride)) => (range, Some(stride)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first, text)?, number(last, text)?),
            None => (number(range, text)?, number(range, text)?),
        };
        if first > last {
            return Err(ListError::Backwards(part.to_string()));
        }
        let (used, group) = match stride.map(|s| s.split_once('/')) {
            None => (1, 1),
            Some(None) => return Err(ListError::Stride(part.to_string())),
            Some(Some((used, group))) => (number(used, text)?, number(group, text)?),
        };
        if used == 0 || used > group {
            return Err(ListError::Group(part.to_string(), used, group));
        }
        cpus.extend((first..=last).filter(|cpu| (cpu - first) % group < used));
    }
    cpus.sort_unstable();
    if let Some(pair) = cpus.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(ListError::Twice(pair[0], text.to_string()));
    }
    Ok(cpus)
}

/// Returns the CPUs in a mask, ascending: 32-bit words in hexadecimal, the highest first, with commas
/// between them. `None` where the text is no such mask, or has a CPU at or above [`MAX_CPUS`], as
/// hwloc's `0xf...f` for "all above" does.
pub(crate) fn mask(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for (index, word) in text.trim().split(',').rev().enumerate() {
        let word = word.trim();
        let word = word.strip_prefix("0x").unwrap_or(word);
        // hwloc writes nothing for a word of zeros.
        let word = match word {
            "" if index > 0 => 0,
            _ => u32::from_str_radix(word, 16).ok()?,
        };
        let first = u32::try_from(index).ok()?.checked_mul(32)?;
        if word != 0 && first as usize >= MAX_CPUS {
            return None;
        }
        let bits = (0..32).filter(|bit| word & (1 << bit) != 0);
        cpus.extend(bits.map(|bit| first + bit));
    }
    Some(cpus)
}

fn number(text: &str, whole: &str) -> Result<u32, ListError> {
    let text = text.trim();
    let value: u64 =
        text.parse().map_err(|_| ListError::Number(text.to_string(), whole.to_string()))?;
    match u32::try_from(value) {
        Ok(small) if (small as usize) < MAX_CPUS => Ok(small),
        _ => Err(ListError::Beyond(value)),
    }
}

/// Writes `cpus` (ascending) in the kernel's notation, without strides.
pub fn format(cpus: &[u32]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < cpus.len() {
        let mut end = at;
        while end + 1 < cpus.len() && cpus[end + 1] == cpus[end] + 1 {
            end += 1;
        }
        if !text.is_empty() {
            text.push(',');
        }
        // The write to a String cannot fail.
        let _ = match end - at {
            0 => write!(text, "{}", cpus[at]),
            _ => write!(text, "{}-{}", cpus[at], cpus[end]),
        };
        at = end + 1;
    }
    text
}
