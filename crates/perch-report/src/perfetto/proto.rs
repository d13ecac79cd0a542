// SPDX-License-Identifier: GPL-2.0-only
//! As much of the protocol buffers' encoding as a trace needs: numbers of seven bits a byte, and
//! what has a length. (The crate for it that is kept best may not be linked into a program of this
//! licence.)

/// A message in the making.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, kind: u64) {
        self.varint(u64::from(field) << 3 | kind);
    }

    /// A number that is not negative, or an enumeration's.
    pub fn uint(mut self, field: u32, value: u64) -> Message {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// A number of 64 bits whatever it is.
    pub fn fixed64(mut self, field: u32, value: u64) -> Message {
        self.key(field, FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A text.
    pub fn text(self, field: u32, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    /// A message within this one.
    pub fn message(self, field: u32, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Message {
        self.key(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// The fields of another message, as if they were this one's.
    pub fn append(&mut self, other: &Message) {
        self.0.extend(&other.0);
    }

    /// What it is on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_texts_and_messages_are_encoded_as_the_specification_has_them() {
        let message = Message::default().uint(1, 150).text(2, "testing");
        let mut expected = vec![0x08, 0x96, 0x01, 0x12, 0x07];
        expected.extend(b"testing");
        assert_eq!(message.as_bytes(), expected);
        let within = Message::default().message(3, &Message::default().uint(1, 150));
        assert_eq!(within.as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let most = Message::default().uint(16, u64::MAX);
        assert_eq!(most.as_bytes()[..3], [0x80, 0x01, 0xff]);
        assert_eq!(most.as_bytes().len(), 12);
        let fixed = Message::default().fixed64(1, 1);
        assert_eq!(fixed.as_bytes(), [0x09, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
