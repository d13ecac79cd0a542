// SPDX-License-Identifier: GPL-2.0-or-later
//! Sentences that begin with a headless "Who", "What", "Which" or "Whether" and end in a full stop.
//! A reader has to find out of whom they speak. The rule only counts: such a sentence needs a person
//! to rewrite it, and a few are right.

use crate::text::{self, Block, Kind};
use crate::{Complaint, Tree};

const HEADS: [&str; 6] = ["Who ", "Whom ", "Whose ", "What ", "Which ", "Whether "];

/// Every such sentence in comments and pages.
pub fn headless(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, source) in tree.files() {
        for block in text::blocks(path, source) {
            if matches!(block.kind, Kind::Comment | Kind::Page) {
                search(path, &block, &mut found);
            }
        }
    }
    found
}

fn search(path: &str, block: &Block, found: &mut Vec<Complaint>) {
    for paragraph in block.paragraphs() {
        let words = block.text[paragraph.clone()].replace('\n', " ");
        let mut start = 0;
        while let Some(end) = sentence_end(&words, start) {
            let sentence = words[start..end].trim();
            if sentence.ends_with('.') && HEADS.iter().any(|head| sentence.starts_with(head)) {
                let skipped = words[start..end].len() - words[start..end].trim_start().len();
                let line = block.line_at(paragraph.start + start + skipped);
                let sentence: Vec<&str> = sentence.split_whitespace().collect();
                found.push(Complaint::new(path, line, sentence.join(" ")));
            }
            start = end;
        }
    }
}

/// Past the end of the sentence that begins at `start`: a full stop, question mark, exclamation
/// mark or colon before white space, or the end of the paragraph.
fn sentence_end(words: &str, start: usize) -> Option<usize> {
    if start >= words.len() {
        return None;
    }
    let bytes = words.as_bytes();
    for at in start..bytes.len() {
        let ends = matches!(bytes[at], b'.' | b'?' | b'!' | b':');
        if ends && bytes.get(at + 1).is_none_or(|next| *next == b' ') {
            return Some(at + 1);
        }
    }
    Some(words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_and_questions_are_not() {
        let tree = Tree::new([(
            "a.rs",
            "// SPDX-License-Identifier: GPL-2.0-or-later\n// Which CPU.\n\n\
             /// A queue. What a task\n/// waits for. What is it? Whatever comes.\nfn a() {}\n\
             // Whether: yes.\n// Who waits.\n",
        )]);
        let found = headless(&tree);
        let lines: Vec<_> = found.iter().map(|c| (c.line, c.what.as_str())).collect();
        let expected = [
            (2, "Which CPU."),
            (4, "What a task waits for."),
            (8, "Who waits."),
        ];
        assert_eq!(lines, expected);
    }
}
