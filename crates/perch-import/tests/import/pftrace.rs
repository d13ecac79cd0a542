// SPDX-License-Identifier: GPL-2.0-or-later
//! A writer of Perfetto's traces, for tests.

/// A message.
#[derive(Clone, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    /// Adds a number without a field.
    pub fn number(mut self, mut value: u64) -> Message {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    /// Adds a field that is a number.
    pub fn uint(self, field: u64, value: u64) -> Message {
        self.number(field << 3).number(value)
    }

    /// Adds a field that is a text or another message.
    pub fn bytes(self, field: u64, bytes: &[u8]) -> Message {
        let mut message = self.number(field << 3 | 2).number(bytes.len() as u64);
        message.0.extend(bytes);
        message
    }
}

/// A trace in words: `2=5` is a number of a field, `2:a` a text, `2{ … }` a message, and `#5` a number
/// of packed ones.
pub fn of_words(text: &str) -> Vec<u8> {
    let number = |text: &str| {
        let signed = || text.parse::<i64>().map(|number| number as u64);
        text.parse().or_else(|_| signed()).unwrap_or(1)
    };
    let (mut outer, mut field, mut message) = (Vec::new(), 0, Message::default());
    for word in text.split_ascii_whitespace().chain(std::iter::repeat_n("}", 20)) {
        if let Some(of) = word.strip_suffix('{').filter(|_| outer.len() < 20) {
            outer.push((field, message));
            (field, message) = (number(of), Message::default());
        } else if word == "}" {
            let Some((of, before)) = outer.pop() else {
                continue;
            };
            (field, message) = (of, Message::bytes(before, field, &message.0));
        } else if let Some(value) = word.strip_prefix('#') {
            message = message.number(number(value));
        } else if let Some((of, value)) = word.split_once('=') {
            message = message.uint(number(of), number(value));
        } else {
            let (of, text) = word.split_once(':').unwrap_or((word, ""));
            message = message.bytes(number(of), text.as_bytes());
        }
    }
    message.0
}
