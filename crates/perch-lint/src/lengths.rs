// SPDX-License-Identifier: GPL-2.0-or-later
//! No function is longer than 100 lines, from its signature to its closing brace, tests included.

use crate::lexer::{Kind, Language, Token, closing, code};
use crate::{Complaint, Tree};

/// The most lines that a function may have.
pub const LONGEST_FUNCTION: usize = 100;

/// A function's name and place.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line that its signature begins on.
    pub first: usize,
    /// The line of its closing brace.
    pub last: usize,
}

/// Check every function of every Rust and C file.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.files() {
        for function in functions(path, text) {
            let length = function.last - function.first + 1;
            if length > LONGEST_FUNCTION {
                complaints.push(Complaint::new(
                    path,
                    function.first,
                    format!(
                        "function '{}' has {length} lines; at most {LONGEST_FUNCTION}: give its \
                         steps functions of their own",
                        function.name
                    ),
                ));
            }
        }
    }
    complaints
}

/// The functions with bodies that `text`, the file at `path`, defines; none for other languages.
pub fn functions(path: &str, text: &str) -> Vec<Function> {
    match Language::of(path) {
        Some(Language::Rust) => of_rust(&code(text, Language::Rust)),
        Some(Language::C) => of_c(&code(text, Language::C)),
        None => Vec::new(),
    }
}

fn of_rust(tokens: &[Token<'_>]) -> Vec<Function> {
    let mut functions = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        // `fn(u32)` is a type and `fn $name` is a macro's.
        if !pair[0].is_word("fn") || pair[1].kind != Kind::Word {
            continue;
        }
        let mut at = index + 2;
        while at < tokens.len() && !tokens[at].is('{') && !tokens[at].is(';') {
            at = if tokens[at].is('(') || tokens[at].is('[') {
                closing(tokens, at)
            } else {
                at
            } + 1;
        }
        if at < tokens.len() && tokens[at].is('{') {
            functions.push(Function {
                name: pair[1].text.to_owned(),
                first: pair[0].line,
                last: tokens[closing(tokens, at)].line,
            });
        }
    }
    functions
}

/// A body of C is a `{` outside of all brackets in a statement that has parentheses before it and
/// neither `=` nor `;`.
fn of_c(tokens: &[Token<'_>]) -> Vec<Function> {
    let mut functions = Vec::new();
    let mut start = 0;
    let mut name = None;
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        if token.kind == Kind::Directive || token.is(';') || token.is('=') {
            name = None;
            at += 1;
            start = at;
        } else if token.is('(') {
            if let Some(before) = at.checked_sub(1).filter(|before| *before >= start) {
                name = name
                    .or(Some(tokens[before].text))
                    .filter(|_| !opaque(tokens[before].text));
            }
            at = closing(tokens, at) + 1;
        } else if token.is('{') {
            let end = closing(tokens, at);
            let is_block = tokens[start.min(at)].is_word("extern") && name.is_none();
            if is_block && tokens[start + 1].kind == Kind::Text {
                // extern "C" holds functions.
                at += 1;
            } else {
                if let Some(name) = name.filter(|_| at > 0 && tokens[at - 1].is(')')) {
                    functions.push(Function {
                        name: name.to_owned(),
                        first: tokens[start].line,
                        last: tokens[end].line,
                    });
                }
                at = end + 1;
            }
            name = None;
            start = at;
        } else {
            if token.is('}') {
                start = at + 1;
            }
            at += 1;
        }
    }
    functions
}

/// Words before a parenthesis that is not the one of a function's arguments.
fn opaque(word: &str) -> bool {
    ["__attribute__", "SEC", "_Alignas", "_Static_assert"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_rust_defines() {
        let source = "trait A { fn none(&self); fn some(&self, f: fn(u8) -> u8) -> [u8; 2] {\n\
                      [f(1), 2] } }\nconst fn two<const N: usize>() -> usize where u8: Copy {\nN }\n";
        let found = functions("a.rs", source);
        let names: Vec<_> = found
            .iter()
            .map(|f| (f.name.as_str(), f.first, f.last))
            .collect();
        assert_eq!(names, [("some", 1, 2), ("two", 3, 4)]);
    }

    #[test]
    fn finds_what_c_defines() {
        let source = "struct a { int b; };\nint c[] = { 1, (2) };\nenum { X = (1) };\n\
                      int decl(void);\nstatic inline int\nfirst(int a)\n{\n\treturn a;\n}\n\
                      SEC(\"x\") int OPS(second, int a) {\n}\n#define M(x) { \\\n  x\n\
                      struct a *third(void) { if (1) { } }\n";
        let found = functions("a.h", source);
        let names: Vec<_> = found
            .iter()
            .map(|f| (f.name.as_str(), f.first, f.last))
            .collect();
        assert_eq!(names, [("first", 5, 9), ("OPS", 10, 11), ("third", 14, 14)]);
    }
}
