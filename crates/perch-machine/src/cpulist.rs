// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's CPU lists: `0,3-5`, and `0-14:2/4` with a stride (Documentation/admin-guide/
//! kernel-parameters.rst, "cpu lists").

use crate::model::MAX_CPUS;
use std::fmt::Write;

/// Returns the CPUs that `text` names, ascending, each once. Empty text names none.
///
/// # Errors
/// Returns a sentence for the person who wrote the list. It names the part that is not a number, a
/// range that runs backwards, a CPU named twice, or a CPU at or above [`MAX_CPUS`].
pub fn parse(text: &str) -> Result<Vec<u32>, String> {
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
            return Err(format!("the range `{part}` runs backwards"));
        }
        let (used, group) = match stride.map(|s| s.split_once('/')) {
            None => (1, 1),
            Some(None) => return Err(format!("`{part}` lacks the `/` of a stride as in 0-14:2/4")),
            Some(Some((used, group))) => (number(used, text)?, number(group, text)?),
        };
        if used == 0 || used > group {
            return Err(format!("`{part}` takes {used} of every {group} CPUs"));
        }
        cpus.extend((first..=last).filter(|cpu| (cpu - first) % group < used));
    }
    cpus.sort_unstable();
    if let Some(pair) = cpus.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("CPU {} is named twice in `{text}`", pair[0]));
    }
    Ok(cpus)
}

fn number(text: &str, whole: &str) -> Result<u32, String> {
    let text = text.trim();
    let value: u64 = text
        .parse()
        .map_err(|_| format!("`{text}` in `{whole}` is not a number"))?;
    match u32::try_from(value) {
        Ok(small) if (small as usize) < MAX_CPUS => Ok(small),
        _ => Err(format!(
            "CPU {value} is beyond the {MAX_CPUS} CPUs that a machine may have"
        )),
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
