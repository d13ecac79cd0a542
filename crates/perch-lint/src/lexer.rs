// SPDX-License-Identifier: GPL-2.0-or-later
//! Splits Rust and C into tokens, as far as the rules need them: comments, strings and brackets are
//! told apart reliably, numbers and operators are not looked into.

/// The language of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Nested block comments, raw strings, lifetimes.
    Rust,
    /// Preprocessor directives.
    C,
}

impl Language {
    /// The language that a file's extension names, if it is one of these two.
    pub fn of(path: &str) -> Option<Self> {
        match path.rsplit_once('.')?.1 {
            "rs" => Some(Self::Rust),
            "c" | "h" | "def" => Some(Self::C),
            _ => None,
        }
    }
}

/// A token's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name or a keyword.
    Word,
    /// One character of punctuation. `::` is two tokens.
    Mark,
    /// A string's or a character's literal, with its quotes.
    Text,
    /// Digits, with what is glued to them.
    Number,
    /// Rust's `'a`.
    Lifetime,
    /// A comment of either form, with its markers.
    Comment,
    /// A line of C's preprocessor, with its continuation lines.
    Directive,
}

/// A piece of a source file.
#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The very characters.
    pub text: &'a str,
    /// The line that it begins on, from 1.
    pub line: usize,
}

impl Token<'_> {
    /// Returns whether this is the punctuation `mark`.
    pub fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark && self.text.starts_with(mark)
    }

    /// Returns whether this is the name or keyword `word`.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }
}

/// All tokens of `source`. A literal or comment that is never closed ends with the file.
pub fn tokens(source: &str, language: Language) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        source,
        bytes: source.as_bytes(),
        at: 0,
        line: 1,
        language,
    };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next() {
        tokens.push(token);
    }
    tokens
}

/// The tokens of `source` that a compiler would see: no comments.
pub fn code(source: &str, language: Language) -> Vec<Token<'_>> {
    let mut tokens = tokens(source, language);
    tokens.retain(|token| token.kind != Kind::Comment);
    tokens
}

/// The index of the bracket that closes the one at `open`; the last token if nothing does.
pub fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        if token.is('(') || token.is('[') || token.is('{') {
            depth += 1;
        } else if token.is(')') || token.is(']') || token.is('}') {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return index;
            }
        }
    }
    tokens.len().saturating_sub(1)
}

struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: usize,
    language: Language,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        while self.byte(0)?.is_ascii_whitespace() {
            self.step();
        }
        let (start, line) = (self.at, self.line);
        let kind = self.token();
        Some(Token {
            kind,
            text: &self.source[start..self.at],
            line,
        })
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    /// Go one character on, which may be several bytes.
    fn step(&mut self) {
        if self.byte(0) == Some(b'\n') {
            self.line += 1;
        }
        self.at += 1;
        while self.at < self.bytes.len() && !self.source.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    fn starts_with(&self, wanted: &str) -> bool {
        self.bytes[self.at..].starts_with(wanted.as_bytes())
    }

    /// Consume one token from its first character on.
    fn token(&mut self) -> Kind {
        if self.starts_with("//") {
            self.rest_of_line();
            return Kind::Comment;
        }
        if self.starts_with("/*") {
            self.block_comment();
            return Kind::Comment;
        }
        let rust = self.language == Language::Rust;
        match self.bytes[self.at] {
            b'#' if !rust && self.begins_line() => {
                self.directive();
                Kind::Directive
            }
            b'"' => {
                self.quoted(b'"');
                Kind::Text
            }
            b'\'' if !rust => {
                self.quoted(b'\'');
                Kind::Text
            }
            b'\'' => self.character_or_lifetime(),
            byte if byte.is_ascii_digit() => {
                self.word();
                Kind::Number
            }
            byte if byte == b'_' || byte.is_ascii_alphabetic() || byte >= 0x80 => {
                self.word_or_text()
            }
            _ => {
                self.step();
                Kind::Mark
            }
        }
    }

    fn rest_of_line(&mut self) {
        while self.byte(0).is_some_and(|byte| byte != b'\n') {
            self.step();
        }
    }

    fn begins_line(&self) -> bool {
        let line = self.source[..self.at].rfind('\n').map_or(0, |end| end + 1);
        self.source[line..self.at].trim().is_empty()
    }

    fn directive(&mut self) {
        // A comment that begins in a directive may be longer than the directive.
        while let Some(byte) = self.byte(0) {
            if byte == b'\n' {
                let so_far = self.source[..self.at].trim_end_matches('\r');
                if !so_far.ends_with('\\') {
                    break;
                }
            }
            if self.starts_with("/*") || self.starts_with("//") {
                break;
            }
            self.step();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.byte(0).is_some() {
            if self.starts_with("/*") {
                depth = if self.language == Language::Rust {
                    depth + 1
                } else {
                    1
                };
                self.at += 2;
            } else if self.starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.step();
            }
        }
    }

    fn quoted(&mut self, quote: u8) {
        self.step();
        while let Some(byte) = self.byte(0) {
            self.step();
            if byte == b'\\' && self.byte(0).is_some() {
                self.step();
            } else if byte == quote {
                return;
            }
        }
    }

    /// `'a'` and `'\n'` are characters, `'a` is a lifetime.
    fn character_or_lifetime(&mut self) -> Kind {
        let mut ahead = self.source[self.at + 1..].chars();
        let first = ahead.next();
        if first == Some('\\') || ahead.next() == Some('\'') {
            self.quoted(b'\'');
            return Kind::Text;
        }
        self.step();
        self.word();
        Kind::Lifetime
    }

    fn word(&mut self) {
        while self
            .byte(0)
            .is_some_and(|b| b == b'_' || b.is_ascii_alphanumeric() || b >= 0x80)
        {
            self.step();
        }
    }

    /// A name, or one of Rust's strings that begin with letters: `r"…"`, `b"…"`, `br#"…"#`, `b'x'`.
    fn word_or_text(&mut self) -> Kind {
        let start = self.at;
        self.word();
        if self.language != Language::Rust {
            return Kind::Word;
        }
        let prefix = &self.source[start..self.at];
        if !["r", "b", "c", "br", "cr"].contains(&prefix) {
            return Kind::Word;
        }
        match self.byte(0) {
            Some(b'\'') if prefix == "b" => self.quoted(b'\''),
            Some(b'"') if prefix.ends_with('r') => self.raw(0),
            Some(b'"') => self.quoted(b'"'),
            Some(b'#') if prefix.ends_with('r') => {
                let hashes = self.bytes[self.at..]
                    .iter()
                    .take_while(|b| **b == b'#')
                    .count();
                if self.byte(hashes) != Some(b'"') {
                    // A raw identifier, r#type.
                    self.step();
                    self.word();
                    return Kind::Word;
                }
                self.raw(hashes);
            }
            _ => return Kind::Word,
        }
        Kind::Text
    }

    fn raw(&mut self, hashes: usize) {
        self.at += hashes + 1;
        let end = format!("\"{}", "#".repeat(hashes));
        while self.byte(0).is_some() && !self.starts_with(&end) {
            self.step();
        }
        self.at = (self.at + end.len()).min(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, language: Language) -> Vec<&str> {
        code(source, language)
            .iter()
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn brackets_in_strings_and_comments_are_no_brackets() {
        let source = "a /* { /* } */ */ r#\"{\"}\"# '{' b'}' \"\\\"{\" 'x // {\nb";
        assert_eq!(
            texts(source, Language::Rust),
            ["a", "r#\"{\"}\"#", "'{'", "b'}'", "\"\\\"{\"", "'x", "b"]
        );
    }

    #[test]
    fn a_directive_of_c_goes_on_after_a_backslash() {
        let found = tokens(
            "#define A { \\\n  {\nint a; /* 'x */ char c = '{';",
            Language::C,
        );
        assert_eq!(found[0].kind, Kind::Directive);
        assert_eq!(found[1].text, "int");
        assert_eq!(found[1].line, 3);
        assert!(found.iter().any(|token| token.text == "'{'"));
    }

    #[test]
    fn a_closing_bracket_is_that_of_the_same_depth() {
        let code = code("f({[]}) {}", Language::Rust);
        assert_eq!(closing(&code, 1), 6);
        assert_eq!(closing(&code, 7), 8);
    }
}
