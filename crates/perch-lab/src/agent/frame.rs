// SPDX-License-Identifier: GPL-2.0-or-later
//! What the host and the agent in the guest say to each other: frames on a byte stream.
//!
//! A frame is its length (four bytes, least significant first, not counting themselves), a byte
//! that tells its kind, and the kind's fields in order: numbers of four bytes, strings and bytes
//! as a length and that many bytes, lists as a count and their items. Both ends are the same
//! build of perch, so there is one version and [`Event::Ready`] carries its name.

use std::io::{self, ErrorKind, Read, Write};

/// What the agent says first: the protocol, so that a foreign perch in a guest is noticed.
pub const PROTOCOL: &str = "perch-lab 1";

/// The most bytes of a file or of output that one frame carries.
pub const CHUNK: usize = 64 << 10;

/// The longest frame that is believed.
const LONGEST: usize = 16 << 20;

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The program, by name or path, and its arguments.
    pub argv: Vec<String>,
    /// Variables that it gets besides the agent's own.
    pub env: Vec<(String, String)>,
    /// What it reads; its standard input ends after that.
    pub stdin: Vec<u8>,
}

/// Host to guest. A number names a process or a transfer; the host chooses it and uses it once.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        /// Whether the file stands already, from an earlier piece.
        append: bool,
        /// The piece.
        bytes: Vec<u8>,
    },
    /// Send a file's bytes.
    Get(u32, String),
    /// End the agent, upon which the guest powers off.
    End,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With an exit code.
    Code(u32),
    /// By a signal.
    Signal(u32),
}

/// Guest to host.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// A program or a transfer came to nothing, in words.
    Failed(u32, String),
}

impl Event {
    /// The process or transfer that it is about; `None` for the agent itself.
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

/// Something that travels in a frame.
pub trait Message: Sized {
    /// Appends its kind and fields.
    fn pack(&self, frame: &mut Pack);
    /// Reads them back; an error names what makes no sense.
    fn unpack(frame: &mut Unpack) -> Result<Self, &'static str>;
}

/// Writes a message as one frame, in one write.
///
/// # Errors
/// Those of the stream; `InvalidInput` when the message is too long for a frame.
pub fn send(stream: &mut impl Write, message: &impl Message) -> io::Result<()> {
    let mut pack = Pack(vec![0; 4]);
    message.pack(&mut pack);
    let length = pack.0.len() - 4;
    if length > LONGEST {
        let words = format!("{length} bytes are too many for a frame of {LONGEST}");
        return Err(io::Error::new(ErrorKind::InvalidInput, words));
    }
    pack.0[..4].copy_from_slice(&(length as u32).to_le_bytes());
    stream.write_all(&pack.0)?;
    stream.flush()
}

/// Reads the next message; `None` when the stream ended between two.
///
/// # Errors
/// Those of the stream; `InvalidData` when what came is no message; `UnexpectedEof` when the
/// stream ended within one.
pub fn receive<M: Message>(stream: &mut impl Read) -> io::Result<Option<M>> {
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
    // Grows with what arrives: a length alone reserves nothing.
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let mut frame = Unpack(&bytes);
    let message = M::unpack(&mut frame).map_err(|words| invalid(words.to_string()))?;
    match frame.0 {
        [] => Ok(Some(message)),
        rest => Err(invalid(format!("{} bytes after a message", rest.len()))),
    }
}

/// A frame that is being put together.
pub struct Pack(Vec<u8>);

impl Pack {
    fn byte(&mut self, value: u8) -> &mut Pack {
        self.0.push(value);
        self
    }

    fn number(&mut self, value: u32) -> &mut Pack {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(&mut self, value: &[u8]) -> &mut Pack {
        self.number(value.len() as u32);
        self.0.extend(value);
        self
    }

    fn text(&mut self, value: &str) -> &mut Pack {
        self.bytes(value.as_bytes())
    }
}

/// What of a frame is still to be read.
pub struct Unpack<'a>(&'a [u8]);

impl<'a> Unpack<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or("a frame cut short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u32, &'static str> {
        let bytes = self.take(4)?.try_into().expect("four bytes were taken");
        Ok(u32::from_le_bytes(bytes))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, &'static str> {
        let length = self.number()? as usize;
        Ok(self.take(length)?.to_vec())
    }

    fn text(&mut self) -> Result<String, &'static str> {
        String::from_utf8(self.bytes()?).map_err(|_| "a text that is not UTF-8")
    }
}

impl Message for Request {
    fn pack(&self, frame: &mut Pack) {
        match self {
            Request::Start(id, start) => {
                frame.byte(0).number(*id).number(start.argv.len() as u32);
                for word in &start.argv {
                    frame.text(word);
                }
                frame.number(start.env.len() as u32);
                for (name, value) in &start.env {
                    frame.text(name).text(value);
                }
                frame.bytes(&start.stdin);
            }
            Request::Signal(id, signal) => {
                frame.byte(1).number(*id).number(*signal);
            }
            Request::Put {
                id,
                path,
                mode,
                append,
                bytes,
            } => {
                frame.byte(2).number(*id).text(path).number(*mode);
                frame.byte(u8::from(*append)).bytes(bytes);
            }
            Request::Get(id, path) => {
                frame.byte(3).number(*id).text(path);
            }
            Request::End => {
                frame.byte(4);
            }
        }
    }

    fn unpack(frame: &mut Unpack) -> Result<Request, &'static str> {
        Ok(match frame.byte()? {
            0 => {
                let id = frame.number()?;
                let mut start = Start::default();
                for _ in 0..frame.number()? {
                    start.argv.push(frame.text()?);
                }
                for _ in 0..frame.number()? {
                    start.env.push((frame.text()?, frame.text()?));
                }
                start.stdin = frame.bytes()?;
                Request::Start(id, start)
            }
            1 => Request::Signal(frame.number()?, frame.number()?),
            2 => Request::Put {
                id: frame.number()?,
                path: frame.text()?,
                mode: frame.number()?,
                append: match frame.byte()? {
                    0 => false,
                    1 => true,
                    _ => return Err("neither yes nor no"),
                },
                bytes: frame.bytes()?,
            },
            3 => Request::Get(frame.number()?, frame.text()?),
            4 => Request::End,
            _ => return Err("a request of an unknown kind"),
        })
    }
}

impl Message for Event {
    fn pack(&self, frame: &mut Pack) {
        match self {
            Event::Ready(protocol) => frame.byte(0).text(protocol),
            Event::Started(id, pid) => frame.byte(1).number(*id).number(*pid),
            Event::Stdout(id, bytes) => frame.byte(2).number(*id).bytes(bytes),
            Event::Stderr(id, bytes) => frame.byte(3).number(*id).bytes(bytes),
            Event::Ended(id, Status::Code(code)) => frame.byte(4).number(*id).number(*code),
            Event::Ended(id, Status::Signal(signal)) => frame.byte(5).number(*id).number(*signal),
            Event::File(id, bytes) => frame.byte(6).number(*id).bytes(bytes),
            Event::Done(id) => frame.byte(7).number(*id),
            Event::Failed(id, words) => frame.byte(8).number(*id).text(words),
        };
    }

    fn unpack(frame: &mut Unpack) -> Result<Event, &'static str> {
        Ok(match frame.byte()? {
            0 => Event::Ready(frame.text()?),
            1 => Event::Started(frame.number()?, frame.number()?),
            2 => Event::Stdout(frame.number()?, frame.bytes()?),
            3 => Event::Stderr(frame.number()?, frame.bytes()?),
            4 => Event::Ended(frame.number()?, Status::Code(frame.number()?)),
            5 => Event::Ended(frame.number()?, Status::Signal(frame.number()?)),
            6 => Event::File(frame.number()?, frame.bytes()?),
            7 => Event::Done(frame.number()?),
            8 => Event::Failed(frame.number()?, frame.text()?),
            _ => return Err("an event of an unknown kind"),
        })
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

    /// Gives a stream's bytes one to three at a time, as a virtio port may.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(self.0.len()).min(1 + self.0.len() % 3);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn there_and_back<M: Message + PartialEq + std::fmt::Debug>(messages: &[M]) {
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
