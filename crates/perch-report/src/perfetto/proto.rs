// SPDX-License-Identifier: GPL-2.0-or-later
//! The part of the protocol buffers' encoding that a trace needs: numbers of seven bits a byte, and
//! fields that begin with their length. (The crate for it that is kept best may not be linked into
//! a program of this licence.)

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    /// Appends a number without its field, in the form of packed fields.
    pub fn bare(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, kind: u64) {
        self.bare(u64::from(field) << 3 | kind);
    }

    /// Appends a number that is not negative, or an enumeration's value.
    pub fn uint(&mut self, field: u32, value: u64) -> &mut Message {
        self.key(field, VARINT);
        self.bare(value);
        self
    }

    /// Appends a number that always takes 64 bits.
    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Message {
        self.key(field, FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends a text.
    pub fn text(&mut self, field: u32, text: &str) -> &mut Message {
        self.bytes(field, text.as_bytes())
    }

    /// Appends the content of another message: as a message of its own, or as packed numbers.
    pub fn message(&mut self, field: u32, message: &Message) -> &mut Message {
        self.bytes(field, &message.0)
    }

    /// Appends a message within this one, which `write` fills in place: nothing is copied unless
    /// the inner message gets longer than 127 bytes.
    pub fn within(&mut self, field: u32, write: impl FnOnce(&mut Message)) -> &mut Message {
        self.key(field, LENGTH);
        let at = self.0.len();
        self.0.push(0);
        write(self);
        let length = self.0.len() - at - 1;
        if length < 0x80 {
            self.0[at] = length as u8;
        } else {
            let mut long = Message::default();
            long.bare(length as u64);
            self.0.splice(at..=at, long.0);
        }
        self
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Message {
        self.key(field, LENGTH);
        self.bare(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Appends the fields of another message, as if they were this one's.
    pub fn append(&mut self, other: &Message) {
        self.0.extend(&other.0);
    }

    /// Clears the message, and keeps its memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns true where the message is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(write: impl FnOnce(&mut Message)) -> Message {
        let mut message = Message::default();
        write(&mut message);
        message
    }

    #[test]
    fn numbers_texts_and_messages_are_encoded_as_the_specification_has_them() {
        let message = of(|m| {
            m.uint(1, 150).text(2, "testing");
        });
        let mut expected = vec![0x08, 0x96, 0x01, 0x12, 0x07];
        expected.extend(b"testing");
        assert_eq!(message.as_bytes(), expected);
        let most = of(|m| {
            m.uint(16, u64::MAX);
        });
        assert_eq!(most.as_bytes()[..3], [0x80, 0x01, 0xff]);
        assert_eq!(most.as_bytes().len(), 12);
        let fixed = of(|m| {
            m.fixed64(1, 1);
        });
        assert_eq!(fixed.as_bytes(), [0x09, 1, 0, 0, 0, 0, 0, 0, 0]);
        let packed = of(|m| {
            m.message(4, &of(|m| [3, 270, 86_942].map(|v| m.bare(v)).into_iter().collect()));
        });
        let expected = [0x22, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05];
        assert_eq!(packed.as_bytes(), expected);
    }

    /// The test writes short and long messages, and one within the other.
    #[test]
    fn what_is_within_is_as_if_it_had_been_made_before() {
        for length in [0, 1, 100, 127, 128, 20_000] {
            let text = "x".repeat(length);
            let inner = of(|m| {
                m.text(2, &text);
            });
            let outer = of(|m| {
                m.message(3, &inner).uint(1, 1);
            });
            let made = of(|m| {
                m.message(5, &outer);
            });
            let filled = of(|m| {
                m.within(5, |m| {
                    m.within(3, |m| {
                        m.text(2, &text);
                    });
                    m.uint(1, 1);
                });
            });
            assert_eq!(filled.as_bytes(), made.as_bytes(), "{length}");
        }
    }
}
