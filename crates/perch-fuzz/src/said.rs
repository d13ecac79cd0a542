// SPDX-License-Identifier: GPL-2.0-or-later
//! The demands on the words of an error.

/// Bytes of a message beside what it quotes of the input.
const LONGEST: usize = 8192;

/// Checks the words in which an input was refused: there are some, they name the input's `origin`,
/// and they do not go on and on.
///
/// # Errors
/// Returns the fault of the words.
pub fn refused(said: &str, origin: &str, input: &[u8]) -> Result<(), String> {
    let fault = match () {
        () if said.trim().is_empty() => "is empty",
        () if !said.contains(origin) => "does not name the input",
        () if said.len() > LONGEST + 8 * input.len() => "is far longer than the input",
        () => return Ok(()),
    };
    let begin: String = said.chars().take(300).collect();
    Err(format!("the error's message {fault}: {begin:?}"))
}

/// Checks words like [`refused`], which also must have a place: a line or a key behind the origin.
///
/// # Errors
/// Returns the fault of the words.
pub fn refused_at(said: &str, origin: &str, input: &[u8]) -> Result<(), String> {
    refused(said, origin, input)?;
    let behind = said.rsplit_once(origin).map_or("", |(_, behind)| behind);
    let digit = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let has_line = |text: &str| {
        text.strip_prefix(':').is_some_and(digit)
            || text.split_once("line ").is_some_and(|(_, number)| digit(number))
    };
    if has_line(behind) || behind.contains('`') || behind.contains('"') {
        Ok(())
    } else {
        Err(format!("the error's message names no place: {said:?}"))
    }
}
