// SPDX-License-Identifier: GPL-2.0-or-later
//! The protocol between the host and the agent in the guest: frames on a byte stream.
//!
//! A frame is its length (four bytes, least significant first, not counting themselves) and that
//! many bytes of [`postcard`]. Both ends are the same build of perch, so there is one version of the
//! messages, and [`Event::Ready`] carries its name.

use std::io::{self, ErrorKind, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The agent's first words. They name the protocol, so that the host notices another build of perch
/// in a guest.
pub const PROTOCOL: &str = "perch-lab 2";

/// The most bytes of a file or of output that one frame carries.
pub const CHUNK: usize = 64 << 10;

/// The longest frame that a receiver accepts, in bytes; a longer one is an error.
const LONGEST: usize = 16 << 20;

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Start {
    /// The program, by name or path, and its arguments.
    pub argv: Vec<String>,
    /// Variables that it gets besides the agent's own.
    pub env: Vec<(String, String)>,
    /// The bytes of its standard input, which ends after them.
    pub stdin: Vec<u8>,
}

/// Host to guest. A number names a process or a transfer; the host chooses it and uses it once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Request {
    /// Start a program as the leader of a process group.
    Start(u32, Start),
    /// Send a signal to a started program's process group.
    Signal(u32, u32),
    /// Write bytes to a file: the first piece makes it (with a mode), the others are appended.
    Put {
        /// The transfer.
        id: u32,
        /// Absolute path.
        path: String,
        /// Permission bits.
        mode: u32,
        /// True when an earlier piece of the transfer made the file already.
        append: bool,
        /// The piece.
        bytes: Vec<u8>,
    },
    /// Send a file's bytes.
    Get(u32, String),
    /// End the agent, upon which the guest powers off.
    End,
}

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Status {
    /// It ended with an exit code.
    Code(u32),
    /// A signal ended it.
    Signal(u32),
}

/// Guest to host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Event {
    /// The agent listens; says [`PROTOCOL`].
    Ready(String),
    /// A program runs, with this process id.
    Started(u32, u32),
    /// Bytes that a program wrote to its standard output.
    Stdout(u32, Vec<u8>),
    /// Bytes that a program wrote to its standard error.
    Stderr(u32, Vec<u8>),
    /// A program ended; nothing more comes from it.
    Ended(u32, Status),
    /// A piece of a file.
    File(u32, Vec<u8>),
    /// A transfer is complete.
    Done(u32),
    /// A program could not be started, or a transfer failed, for the reason given.
    Failed(u32, String),
}

impl Event {
    /// The number of the process or transfer that this event is about; `None` for the agent itself.
    pub fn about(&self) -> Option<u32> {
        match self {
            Event::Ready(_) => None,
            Event::Started(id, _)
            | Event::Stdout(id, _)
            | Event::Stderr(id, _)
            | Event::Ended(id, _)
            | Event::File(id, _)
            | Event::Done(id)
            | Event::Failed(id, _) => Some(*id),
        }
    }
}

/// Writes a message as one frame, in one write.
///
/// # Errors
/// Those of the stream; `InvalidInput` when the message is too long for a frame.
pub fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let refused = |words: String| io::Error::new(ErrorKind::InvalidInput, words);
    let mut frame = postcard::to_extend(message, vec![0; 4])
        .map_err(|error| refused(format!("a message that cannot be written: {error}")))?;
    let length = frame.len() - 4;
    if length > LONGEST {
        return Err(refused(format!("{length} bytes are too many for a frame of {LONGEST}")));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    stream.write_all(&frame)?;
    stream.flush()
}

/// Reads the next message; `None` when the stream ended between two.
///
/// # Errors
/// Those of the stream; `InvalidData` when the bytes are no message; `UnexpectedEof` when the
/// stream ended within one.
pub fn receive<M: DeserializeOwned>(stream: &mut impl Read) -> io::Result<Option<M>> {
    let invalid = |words: String| io::Error::new(ErrorKind::InvalidData, words);
    let mut length = [0; 4];
    let mut got = 0;
    while got < 4 {
        match stream.read(&mut length[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(invalid(format!("a frame of {length} bytes")));
    }
    // The buffer grows as bytes arrive; a length alone reserves no memory.
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    match postcard::take_from_bytes(&bytes) {
        Ok((message, [])) => Ok(Some(message)),
        Ok((_, rest)) => Err(invalid(format!("{} bytes after a message", rest.len()))),
        Err(error) => Err(invalid(format!("a frame that is no message: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request() -> impl Strategy<Value = Request> {
        let text = || ".{0,8}";
        let bytes = || prop::collection::vec(any::<u8>(), 0..32);
        let start = (
            prop::collection::vec(text(), 0..4),
            prop::collection::vec((text(), text()), 0..3),
            bytes(),
        );
        let start = start.prop_map(|(argv, env, stdin)| Start { argv, env, stdin });
        let put = (any::<u32>(), text(), any::<u32>(), any::<bool>(), bytes());
        prop_oneof![
            (any::<u32>(), start).prop_map(|(id, start)| Request::Start(id, start)),
            any::<(u32, u32)>().prop_map(|(id, signal)| Request::Signal(id, signal)),
            put.prop_map(|(id, path, mode, append, bytes)| Request::Put {
                id,
                path,
                mode,
                append,
                bytes
            }),
            (any::<u32>(), text()).prop_map(|(id, path)| Request::Get(id, path)),
            Just(Request::End),
        ]
    }

    fn event() -> impl Strategy<Value = Event> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..32);
        prop_oneof![
            ".{0,8}".prop_map(Event::Ready),
            any::<(u32, u32)>().prop_map(|(id, pid)| Event::Started(id, pid)),
            (any::<u32>(), bytes()).prop_map(|(id, bytes)| Event::Stdout(id, bytes)),
            (any::<u32>(), bytes()).prop_map(|(id, bytes)| Event::Stderr(id, bytes)),
            any::<(u32, u32)>().prop_map(|(id, code)| Event::Ended(id, Status::Code(code))),
            any::<(u32, u32)>().prop_map(|(id, code)| Event::Ended(id, Status::Signal(code))),
            (any::<u32>(), bytes()).prop_map(|(id, bytes)| Event::File(id, bytes)),
            any::<u32>().prop_map(Event::Done),
            (any::<u32>(), ".{0,8}").prop_map(|(id, words)| Event::Failed(id, words)),
        ]
    }

    /// A stream that gives its bytes one to three at a time, as a virtio port may.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(self.0.len()).min(1 + self.0.len() % 3);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn there_and_back<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        messages: &[M],
    ) {
        let mut stream = Vec::new();
        for message in messages {
            send(&mut stream, message).unwrap();
        }
        let mut stream = Drip(&stream);
        for message in messages {
            let got: M = receive(&mut stream).unwrap().unwrap();
            assert_eq!(&got, message);
        }
        assert!(receive::<M>(&mut stream).unwrap().is_none());
    }

    proptest! {
        #[test]
        fn what_is_sent_arrives(
            requests in prop::collection::vec(request(), 0..6),
            events in prop::collection::vec(event(), 0..6),
        ) {
            there_and_back(&requests);
            there_and_back(&events);
        }

        #[test]
        fn noise_is_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut framed = (bytes.len() as u32).to_le_bytes().to_vec();
            framed.extend(&bytes);
            let _ = receive::<Request>(&mut &framed[..]);
            let _ = receive::<Event>(&mut &framed[..]);
            let _ = receive::<Event>(&mut &bytes[..]);
        }

        #[test]
        fn a_cut_stream_is_an_error(request in request(), cut in 1usize..4) {
            let mut stream = Vec::new();
            send(&mut stream, &request).unwrap();
            let short = &stream[..stream.len() - cut];
            prop_assert!(receive::<Request>(&mut &short[..]).is_err());
        }
    }
}
