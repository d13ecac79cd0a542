// SPDX-License-Identifier: GPL-2.0-or-later
//! JSON as rt-app's files have it: the order of keys matters, and keys may repeat. Every member
//! knows its line. As rt-app's own reader does, this one lets comments and superfluous commas
//! pass.

use super::error::JsonError;

/// The most levels of objects and arrays in one another; [`TOO_DEEP`] says so.
const DEEPEST: usize = 32;
const TOO_DEEP: &str = "at most 32 levels";

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The members of an object, in the order of the file.
    Object(Vec<Member>),
    Array(Vec<Value>),
    /// A whole number.
    Number(i64),
    /// Any other number, which rt-app takes for none of its own keys.
    Real(f64),
    Text(String),
    Bool(bool),
    Null,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub key: String,
    /// Number of the key's line, from 1.
    pub line: u64,
    pub value: Value,
}

/// Reads the text of a file.
///
/// # Errors
/// The error has the line, and what was expected there.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    let mut parser = Parser { rest: text, line: 1 };
    let value = parser.value(0)?;
    parser.space()?;
    if parser.rest.is_empty() { Ok(value) } else { parser.wrong("the end of the file") }
}

struct Parser<'a> {
    rest: &'a str,
    line: u64,
}

impl Parser<'_> {
    fn wrong<T>(&self, expected: &'static str) -> Result<T, JsonError> {
        let found = (!self.rest.is_empty()).then(|| {
            let start = self.rest.chars().take(20);
            start.take_while(|&c| c != '\n').collect()
        });
        Err(JsonError { line: self.line, expected, found })
    }

    fn skip(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count() as u64;
        self.rest = rest;
    }

    /// Skips white space and comments.
    fn space(&mut self) -> Result<(), JsonError> {
        loop {
            let space = self.rest.len() - self.rest.trim_start().len();
            self.skip(space);
            if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else {
                    return self.wrong("an end of this comment");
                };
                self.skip(end + 2);
            } else if self.rest.starts_with("//") {
                self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else {
                return Ok(());
            }
        }
    }

    fn takes(&mut self, token: char) -> bool {
        let found = self.rest.starts_with(token);
        if found {
            self.skip(token.len_utf8());
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.space()?;
        if depth > DEEPEST {
            return self.wrong(TOO_DEEP);
        }
        match self.rest.chars().next() {
            Some('{') => self.object(depth),
            Some('[') => {
                self.skip(1);
                let mut values = Vec::new();
                loop {
                    self.space()?;
                    if self.takes(']') {
                        return Ok(Value::Array(values));
                    }
                    values.push(self.value(depth + 1)?);
                    self.space()?;
                    if !self.takes(',') && !self.rest.starts_with(']') {
                        return self.wrong("`,` or `]`");
                    }
                }
            }
            Some('"' | '\'') => Ok(Value::Text(self.text()?)),
            Some('-' | '0'..='9') => {
                let end = self.rest.find(
                    |c: char| !matches!(c, '-' | '+' | '.' | 'a'..='z' | 'A'..='Z' | '0'..='9'),
                );
                let end = end.unwrap_or(self.rest.len());
                let digits = &self.rest[..end];
                let value = match (digits.parse(), digits.parse()) {
                    (Ok(number), _) => Value::Number(number),
                    (_, Ok(real)) if f64::is_finite(real) => Value::Real(real),
                    _ => return self.wrong("a number"),
                };
                self.skip(end);
                Ok(value)
            }
            _ => {
                for (word, value) in [
                    ("true", Value::Bool(true)),
                    ("false", Value::Bool(false)),
                    ("null", Value::Null),
                ] {
                    if self
                        .rest
                        .get(..word.len())
                        .is_some_and(|found| found.eq_ignore_ascii_case(word))
                    {
                        self.skip(word.len());
                        return Ok(value);
                    }
                }
                self.wrong("a value")
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.skip(1);
        let mut members = Vec::new();
        loop {
            self.space()?;
            if self.takes('}') {
                return Ok(Value::Object(members));
            }
            if !self.rest.starts_with(['"', '\'']) {
                return self.wrong("a key in quotes or `}`");
            }
            let line = self.line;
            let key = self.text()?;
            self.space()?;
            // workgen lets `suspend` go without a value.
            let bare = key.starts_with("suspend") && self.rest.starts_with([',', '}']);
            let value = if bare {
                Value::Null
            } else if self.takes(':') {
                self.value(depth + 1)?
            } else {
                return self.wrong("`:` after a key");
            };
            members.push(Member { key, line, value });
            self.space()?;
            if !self.takes(',') && !self.rest.starts_with('}') {
                return self.wrong("`,` or `}`");
            }
        }
    }

    /// Reads a text in quotes of either kind.
    fn text(&mut self) -> Result<String, JsonError> {
        let quote = self.rest.chars().next();
        self.skip(1);
        let mut text = String::new();
        loop {
            let Some(next) = self.rest.chars().next() else {
                return self.wrong("a `\"` at the end of a text");
            };
            match next {
                '\\' => text.push(self.escaped()?),
                '\n' => return self.wrong("a `\"` in the line in which a text begins"),
                other => {
                    self.skip(other.len_utf8());
                    if Some(other) == quote {
                        return Ok(text);
                    }
                    text.push(other);
                }
            }
        }
    }

    /// Reads an escape.
    fn escaped(&mut self) -> Result<char, JsonError> {
        let found = match self.rest.chars().nth(1) {
            Some(same @ ('"' | '\\' | '/')) => same,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode(),
            _ => return self.wrong("one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"),
        };
        self.skip(2);
        Ok(found)
    }

    /// Reads `\uXXXX`, or two of them that are one character; a half alone is no character.
    fn unicode(&mut self) -> Result<char, JsonError> {
        let unit = |text: &str| {
            let digits = text.strip_prefix("\\u")?.get(..4)?;
            let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
            hex.then(|| u16::from_str_radix(digits, 16).ok())?
        };
        let Some(first) = unit(self.rest) else {
            return self.wrong("four hexadecimal digits after \\u");
        };
        let second = self.rest.get(6..).and_then(unit);
        let units = [first, second.unwrap_or(0)];
        let found = match char::decode_utf16(units).next() {
            Some(Ok(found)) => found,
            _ => char::REPLACEMENT_CHARACTER,
        };
        self.skip(6 * found.len_utf16());
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_repeat() {
        let text = "{ \"run\": 10, /* once\n more */ \"sleep\": -5,\n\"run\" : [1, 2,], \"a\\\"b\": {\"x\":True,}, }\n";
        let Ok(Value::Object(members)) = parse(text) else {
            panic!("{:?}", parse(text));
        };
        let keys: Vec<(&str, u64)> = members.iter().map(|m| (m.key.as_str(), m.line)).collect();
        assert_eq!(keys, [("run", 1), ("sleep", 2), ("run", 3), ("a\"b", 3)]);
        assert_eq!(members[2].value, Value::Array(vec![Value::Number(1), Value::Number(2)]));
    }

    #[test]
    fn escapes_and_reals_are_read_as_json_c_reads_them() {
        let text = r#"{"\u0041\ud83d\ude00\ud83d\/\n": 'it"s', "frag": 1.5, "b": -1e3, "c": 007}"#;
        let Ok(Value::Object(members)) = parse(text) else {
            panic!("{:?}", parse(text));
        };
        assert_eq!(members[0].key, "A\u{1f600}\u{fffd}/\n");
        let values: Vec<&Value> = members.iter().map(|m| &m.value).collect();
        let text = Value::Text("it\"s".to_string());
        let (real, thousand) = (Value::Real(1.5), Value::Real(-1000.0));
        assert_eq!(values, [&text, &real, &thousand, &Value::Number(7)]);
    }

    #[test]
    fn what_is_no_json_is_named_by_its_line() {
        for (text, line, words) in [
            ("", 1, "a value, the file ends"),
            ("{\n\"run\" 10}", 2, "`:`"),
            ("{\"run\": 10\n\"sleep\": 5}", 2, "`,` or `}`"),
            ("{\"run\": 1.5.2}", 1, "a number"),
            ("{\"\\u12\": 1}", 1, "four hexadecimal digits"),
            ("{} {}", 1, "the end of the file"),
            ("{\n/* ", 2, "an end of this comment"),
            ("{\"a\nb\": 1}", 1, "in which a text begins, there is ``"),
            ("{run: 1}", 1, "a key in quotes"),
        ] {
            let why = parse(text).expect_err(text).to_string();
            assert!(
                why.starts_with(&format!("line {line}: ")) && why.contains(words),
                "{text}: {why}"
            );
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
