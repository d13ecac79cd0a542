// SPDX-License-Identifier: GPL-2.0-or-later
//! The text that people read: comments of source files without their markers, pages of Markdown,
//! and the strings of programs.

use std::ops::Range;

use crate::lexer::{self, Language};

/// A block's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Comment lines that follow each other.
    Comment,
    /// A page of Markdown without its examples.
    Page,
    /// The lines between two ``` lines of a page or a comment.
    Example,
    /// A string of a program.
    Literal,
}

/// Lines of text that belong together.
#[derive(Debug)]
pub struct Block {
    /// Its kind.
    pub kind: Kind,
    /// The text, without comment markers, its lines parted by `\n`.
    pub text: String,
    /// The line of the file that the text's first line stands on, from 1. A block's lines follow
    /// each other in the file.
    pub first_line: usize,
}

impl Block {
    /// The line of the file that the byte at `offset` of the text stands on.
    pub fn line_at(&self, offset: usize) -> usize {
        let before = self.text.as_bytes()[..offset]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        self.first_line + before
    }

    /// The ranges of the text's paragraphs: an empty line and a licence line end one; a heading, an
    /// item of a list and a row of a table begin one.
    pub fn paragraphs(&self) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut open = false;
        let mut start = 0;
        for line in self.text.split_inclusive('\n') {
            let end = start + line.len();
            let words = line.trim_start();
            let empty = words.is_empty();
            let begins = words.starts_with(['#', '|']) || words.starts_with("- ");
            match found.last_mut() {
                Some(last) if open && !empty && !begins => last.end = end,
                _ if !empty => found.push(start..end),
                _ => {}
            }
            open = !empty && !words.starts_with("SPDX-License-Identifier");
            start = end;
        }
        found
    }
}

/// The blocks of the file at `path`; none for files that are neither source nor page.
pub fn blocks(path: &str, source: &str) -> Vec<Block> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Some(language) = Language::of(path) {
        return part_examples(of_code(source, language));
    }
    match name.rsplit_once('.') {
        Some((_, "md")) => part_examples(vec![Block {
            kind: Kind::Page,
            text: source.to_owned(),
            first_line: 1,
        }]),
        Some((_, "toml" | "sh")) => of_hashes(source),
        None if source.starts_with("#!") => of_hashes(source),
        _ => Vec::new(),
    }
}

fn of_code(source: &str, language: Language) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = ("", 0);
    for token in lexer::tokens(source, language) {
        match token.kind {
            lexer::Kind::Comment if token.text.starts_with("//") => {
                let marker = ["///", "//!", "//"]
                    .into_iter()
                    .find(|m| token.text.starts_with(m));
                let marker = marker.unwrap_or("//");
                let text = &token.text[marker.len()..];
                match found.last_mut() {
                    Some(last) if open == (marker, token.line) => {
                        last.text.push('\n');
                        last.text.push_str(text);
                    }
                    _ => found.push(Block {
                        kind: Kind::Comment,
                        text: text.to_owned(),
                        first_line: token.line,
                    }),
                }
                open = (marker, token.line + 1);
            }
            lexer::Kind::Comment => found.push(Block {
                kind: Kind::Comment,
                text: without_stars(token.text),
                first_line: token.line,
            }),
            lexer::Kind::Text => found.push(Block {
                kind: Kind::Literal,
                text: token.text.to_owned(),
                first_line: token.line,
            }),
            _ => {}
        }
        if token.kind != lexer::Kind::Comment {
            open = ("", 0);
        }
    }
    found
}

fn without_stars(comment: &str) -> String {
    let inside = comment
        .trim_start_matches(['/', '*'])
        .trim_end_matches(['/', '*']);
    let lines: Vec<&str> = inside
        .split('\n')
        .map(|line| {
            let words = line.trim_start();
            words.strip_prefix('*').unwrap_or(words)
        })
        .collect();
    lines.join("\n")
}

/// Comments that begin with `#`. A `#` inside of a string, rare as it is, begins one as well.
fn of_hashes(source: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut next = 0;
    for (index, line) in source.lines().enumerate() {
        let whole = line.trim_start().starts_with('#');
        let Some(at) = (if whole {
            line.find('#')
        } else {
            line.find(" # ").map(|at| at + 1)
        }) else {
            continue;
        };
        let text = &line[at + 1..];
        match found.last_mut() {
            Some(last) if whole && next == index => {
                last.text.push('\n');
                last.text.push_str(text);
            }
            _ => found.push(Block {
                kind: Kind::Comment,
                text: text.to_owned(),
                first_line: index + 1,
            }),
        }
        next = if whole { index + 1 } else { 0 };
    }
    found
}

/// Give what stands between ``` lines blocks of its own; their lines are left empty in the rest.
fn part_examples(blocks: Vec<Block>) -> Vec<Block> {
    let mut found = Vec::new();
    for block in blocks {
        if block.kind == Kind::Literal || !block.text.contains("```") {
            found.push(block);
            continue;
        }
        let mut rest = String::new();
        let mut example: Option<Block> = None;
        for (index, line) in block.text.split('\n').enumerate() {
            if index > 0 {
                rest.push('\n');
            }
            let fence = line.trim_start().starts_with("```");
            match (&mut example, fence) {
                (None, true) => {
                    let first_line = block.first_line + index + 1;
                    example = Some(Block {
                        kind: Kind::Example,
                        text: String::new(),
                        first_line,
                    });
                }
                (Some(_), true) => found.extend(example.take()),
                (Some(example), false) => {
                    example.text.push_str(line);
                    example.text.push('\n');
                }
                (None, false) => rest.push_str(line),
            }
        }
        found.extend(example);
        found.push(Block {
            text: rest,
            ..block
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_lines_that_follow_each_other_are_one_block() {
        let source = "//! one\n//! two\n\n/* three\n * four */ int a; // five\nb // six\n";
        let found = blocks("a.h", source);
        let texts: Vec<_> = found
            .iter()
            .map(|b| (b.first_line, b.text.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                (1, " one\n two"),
                (4, "three\n four "),
                (5, " five"),
                (6, " six")
            ]
        );
    }

    #[test]
    fn examples_are_parted_from_the_page() {
        let found = blocks("a.md", "one\n```\ntwo\n```\nthree\n");
        assert_eq!(
            (found[0].kind, found[0].text.as_str()),
            (Kind::Example, "two\n")
        );
        assert_eq!((found[1].kind, found[1].line_at(6)), (Kind::Page, 4));
        assert_eq!(found[0].first_line, 3);
    }

    #[test]
    fn an_item_of_a_list_is_a_paragraph() {
        let block = &blocks("a.md", "# one\ntwo\nthree\n\n- four\n  five\n- six\n")[0];
        let texts: Vec<_> = block
            .paragraphs()
            .into_iter()
            .map(|r| &block.text[r])
            .collect();
        assert_eq!(
            texts,
            ["# one\ntwo\nthree\n", "- four\n  five\n", "- six\n"]
        );
    }
}
