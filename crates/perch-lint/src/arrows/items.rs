// SPDX-License-Identifier: GPL-2.0-or-later
//! The items of a Rust file: modules, imports, definitions and `impl` blocks, without those that
//! are compiled for tests only.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::lexer::{Kind, Token, closing};

/// A name that a `use` brings in.
#[derive(Debug, Clone)]
pub struct Import {
    /// The path, from its first word on.
    pub path: Vec<String>,
    /// The name in the importing file; `*` for all names of a module, `_` for a trait's methods.
    pub name: String,
    /// The line of the name.
    pub line: usize,
    /// True when other files see the name too.
    pub public: bool,
}

/// An `impl` block or a trait's definition.
#[derive(Debug, Clone)]
pub struct Impl {
    /// The path of the type, or the trait's name.
    pub of: Vec<String>,
    /// The trait's path, for `impl Trait for Type`.
    pub for_trait: Option<Vec<String>>,
    /// Its tokens, braces included.
    pub body: Range<usize>,
    /// The functions in it, with whether they are called on a value.
    pub functions: Vec<(String, bool)>,
}

/// The items of one module.
#[derive(Debug, Default)]
pub struct Items {
    /// Modules in files of their own.
    pub files: Vec<String>,
    /// Modules in braces.
    pub inline: BTreeMap<String, Items>,
    /// Names that the module defines.
    pub defined: Vec<String>,
    /// The names that `use` brings in.
    pub imports: Vec<Import>,
    /// Blocks with functions.
    pub impls: Vec<Impl>,
    /// The tokens of items that hold code, imports and modules excepted.
    pub code: Vec<Range<usize>>,
}

/// The items among `tokens[range]`, which belong to one module.
pub fn items(tokens: &[Token<'_>], range: Range<usize>) -> Items {
    let mut reader = Reader {
        tokens,
        at: range.start,
        end: range.end,
        items: Items::default(),
    };
    while reader.at < reader.end {
        reader.item();
    }
    reader.items
}

struct Reader<'t, 's> {
    tokens: &'t [Token<'s>],
    at: usize,
    end: usize,
    items: Items,
}

impl Reader<'_, '_> {
    fn is(&self, at: usize, mark: char) -> bool {
        at < self.end && self.tokens[at].is(mark)
    }

    fn word(&self, at: usize) -> &str {
        match self.tokens.get(at) {
            Some(token) if at < self.end && token.kind == Kind::Word => token.text,
            _ => "",
        }
    }

    /// Read the item that begins here, its attributes first.
    fn item(&mut self) {
        let mut test = false;
        while self.is(self.at, '#') {
            let open = self.at + 1 + usize::from(self.is(self.at + 1, '!'));
            let close = closing(self.tokens, open);
            test |= is_for_tests(&self.tokens[open..=close]);
            self.at = close + 1;
        }
        let start = self.at;
        let public = self.word(self.at) == "pub";
        if public {
            self.at += 1;
            if self.is(self.at, '(') {
                self.at = closing(self.tokens, self.at) + 1;
            }
        }
        while self.qualifies() {
            self.at += 1;
        }
        let keyword = self.word(self.at).to_owned();
        let name = self.word(self.at + 1).to_owned();
        let keyword_at = self.at;
        let with_braces = !["use", "const", "static", "type", "let"].contains(&keyword.as_str());
        self.at = self.end_of_item(with_braces);
        if test {
            return;
        }
        match keyword.as_str() {
            "mod" if self.is(self.at - 1, ';') => self.items.files.push(name),
            "mod" => {
                let inside = items(self.tokens, keyword_at + 3..self.at - 1);
                self.items.inline.insert(name, inside);
            }
            "use" => {
                let range = keyword_at + 1..self.at - 1;
                self.items
                    .imports
                    .extend(imports(&self.tokens[range], public));
            }
            "impl" => self.implementation(keyword_at),
            _ => {
                if keyword == "trait" {
                    self.block(keyword_at, vec![name.clone()], None);
                } else if keyword == "macro_rules" {
                    self.items
                        .defined
                        .push(self.word(keyword_at + 2).to_owned());
                }
                self.items.defined.push(name);
                self.items.code.push(start..self.at);
            }
        }
    }

    /// Returns whether the word here is a qualifier of the item that the next word begins.
    fn qualifies(&self) -> bool {
        match self.word(self.at) {
            "unsafe" | "async" | "default" => true,
            "const" => ["fn", "unsafe", "async", "extern"].contains(&self.word(self.at + 1)),
            "extern" => {
                self.tokens
                    .get(self.at + 1)
                    .is_some_and(|t| t.kind == Kind::Text)
                    && { ["fn"].contains(&self.word(self.at + 2)) }
            }
            // The string of an extern.
            _ => self.tokens[self.at].kind == Kind::Text,
        }
    }

    /// Past the `;`, or past the braces of an item that ends with them.
    fn end_of_item(&self, with_braces: bool) -> usize {
        let mut at = self.at;
        while at < self.end {
            let token = &self.tokens[at];
            if token.is(';') {
                return at + 1;
            }
            if token.is('(') || token.is('[') || token.is('{') {
                let close = closing(self.tokens, at);
                if token.is('{') && with_braces {
                    return (close + 1).min(self.end);
                }
                at = close;
            }
            at += 1;
        }
        self.end
    }

    fn implementation(&mut self, keyword: usize) {
        let mut at = keyword + 1;
        if self.is(at, '<') {
            at = self.past_angles(at);
        }
        let first = path(self.tokens, &mut at);
        if self.is(at, '<') {
            at = self.past_angles(at);
        }
        if self.word(at) == "for" {
            at += 1;
            while self.is(at, '&') || self.word(at) == "mut" || self.word(at) == "dyn" {
                at += 1;
            }
            let of = path(self.tokens, &mut at);
            self.block(keyword, of, Some(first));
        } else {
            self.block(keyword, first, None);
        }
        self.items.code.push(keyword..self.at);
    }

    /// Past the `>` that belongs to the `<` at `open`; `->` closes nothing.
    fn past_angles(&self, open: usize) -> usize {
        let mut depth = 0;
        for at in open..self.end {
            if self.is(at, '<') {
                depth += 1;
            } else if self.is(at, '>') && !self.is(at - 1, '-') {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
        }
        self.end
    }

    fn block(&mut self, keyword: usize, of: Vec<String>, for_trait: Option<Vec<String>>) {
        let Some(open) = (keyword..self.at).find(|at| self.is(*at, '{')) else {
            return;
        };
        let mut functions = Vec::new();
        let mut at = open + 1;
        while at < self.at {
            if self.is(at, '{') {
                at = closing(self.tokens, at);
            } else if self.word(at) == "fn" {
                let name = self.word(at + 1).to_owned();
                let arguments = (at..self.at).find(|at| self.is(*at, '(')).unwrap_or(at);
                let receiver = &self.tokens[arguments + 1..(arguments + 5).min(self.at)];
                let on_value = receiver
                    .iter()
                    .take_while(|token| !token.is(',') && !token.is(')'))
                    .any(|token| token.is_word("self"));
                functions.push((name, on_value));
            }
            at += 1;
        }
        self.items.impls.push(Impl {
            of,
            for_trait,
            body: open..self.at,
            functions,
        });
    }
}

/// Returns whether an attribute compiles its item for tests only.
fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let has = |word| attribute.iter().any(|token| token.is_word(word));
    has("cfg") && has("test") && !has("not")
}

/// Read `a::b::c` from `at` on, and leave `at` behind it.
pub fn path(tokens: &[Token<'_>], at: &mut usize) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(token) = tokens.get(*at).filter(|token| token.kind == Kind::Word) {
        found.push(token.text.to_owned());
        *at += 1;
        if !goes_on(tokens, *at) {
            break;
        }
        *at += 2;
    }
    found
}

/// Returns whether `::` and a word follow.
pub fn goes_on(tokens: &[Token<'_>], at: usize) -> bool {
    tokens.len() > at + 2
        && tokens[at].is(':')
        && tokens[at + 1].is(':')
        && tokens[at + 2].kind == Kind::Word
}

/// The names that a `use` brings in, from the tokens between `use` and `;`.
pub fn imports(tokens: &[Token<'_>], public: bool) -> Vec<Import> {
    let mut found = Vec::new();
    let mut at = 0;
    branch(tokens, &mut at, &[], public, &mut found);
    found
}

fn branch(
    tokens: &[Token<'_>],
    at: &mut usize,
    before: &[String],
    public: bool,
    found: &mut Vec<Import>,
) {
    let mut so_far = before.to_vec();
    while let Some(token) = tokens.get(*at) {
        let line = token.line;
        if token.is('{') {
            let close = closing(tokens, *at);
            *at += 1;
            while *at < close {
                branch(tokens, at, &so_far, public, found);
                *at += usize::from(*at < close && tokens[*at].is(','));
            }
            *at = close + 1;
            return;
        }
        if token.is('*') {
            found.push(Import {
                path: so_far,
                name: "*".to_owned(),
                line,
                public,
            });
            *at += 1;
            return;
        }
        if token.is(':') {
            *at += 1;
            continue;
        }
        if token.kind != Kind::Word {
            return;
        }
        // `a::{self}` is a itself.
        if token.text != "self" || so_far.is_empty() {
            so_far.push(token.text.to_owned());
        }
        *at += 1;
        if tokens.get(*at).is_some_and(|next| next.is(':')) {
            continue;
        }
        let mut name = so_far.last().cloned().unwrap_or_default();
        if tokens.get(*at).is_some_and(|next| next.is_word("as")) {
            name = tokens
                .get(*at + 1)
                .map_or("", |token| token.text)
                .to_owned();
            *at += 2;
        }
        found.push(Import {
            path: so_far,
            name,
            line,
            public,
        });
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::{Language, code};

    fn read(source: &str) -> Items {
        let tokens = code(source, Language::Rust);
        items(&tokens, 0..tokens.len())
    }

    #[test]
    fn reads_modules_imports_and_blocks() {
        let found = read(
            "#![allow(x)]\nmod a;\n#[cfg(test)]\nmod tests;\npub(crate) use b::{self, c::{D as E, F}, g::*};\n\
             const X: [u8; 2] = { [1, 2] };\npub unsafe fn f() {}\n\
             impl<T: Fn() -> u8> A<T> { fn one(&mut self) {} fn two() {} }\n\
             impl x::Y for z::A { fn three(self: Box<Self>) {} }\nmod inner { fn deep() {} }\n\
             trait T { fn four(&self); }\n#[cfg(test)]\nmod more { use q::R; }\nextern \"C\" { fn ext(); }\n",
        );
        assert_eq!(found.files, ["a"]);
        let imports: Vec<_> = found
            .imports
            .iter()
            .map(|i| (i.path.join("::"), i.name.as_str()))
            .collect();
        assert_eq!(
            imports,
            [
                ("b".to_owned(), "b"),
                ("b::c::D".to_owned(), "E"),
                ("b::c::F".to_owned(), "F"),
                ("b::g".to_owned(), "*")
            ]
        );
        assert!(
            ["X", "f", "T"]
                .iter()
                .all(|name| found.defined.iter().any(|d| d == name))
        );
        assert_eq!(found.inline["inner"].defined, ["deep"]);
        let functions: Vec<_> = found
            .impls
            .iter()
            .map(|i| (i.of.join("::"), &i.functions))
            .collect();
        assert_eq!(functions[0].0, "A");
        assert_eq!(
            functions[0].1[..],
            [("one".to_owned(), true), ("two".to_owned(), false)]
        );
        assert_eq!(
            (functions[1].0.as_str(), functions[1].1[0].1),
            ("z::A", true)
        );
        assert_eq!(functions[2].0, "T");
    }
}
