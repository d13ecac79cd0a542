// SPDX-License-Identifier: GPL-2.0-or-later
//! The agent over a pair of sockets, on this host.

use super::*;
use proptest::prelude::*;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The host's end.
struct Host(UnixStream);

impl Host {
    fn new(job: Option<Request>) -> Host {
        let (here, there) = UnixStream::pair().unwrap();
        let output = there.try_clone().unwrap();
        thread::spawn(move || serve(there, output, job));
        let mut host = Host(here);
        assert_eq!(host.next(), Event::Ready(PROTOCOL.to_string()));
        host
    }

    fn say(&mut self, request: Request) {
        send(&mut self.0, &request).unwrap();
    }

    fn next(&mut self) -> Event {
        receive(&mut self.0).unwrap().expect("the agent is there")
    }

    fn start(&mut self, id: u32, argv: &[&str], stdin: &[u8]) {
        self.say(Request::Start(id, shell(argv, stdin)));
    }

    /// Reads events until each of `ids` has come to its end.
    fn finish(&mut self, ids: &[u32]) -> HashMap<u32, (Vec<u8>, Vec<u8>, Event)> {
        let mut seen: HashMap<u32, (Vec<u8>, Vec<u8>)> = HashMap::new();
        let mut ended = HashMap::new();
        while ended.len() < ids.len() {
            let event = self.next();
            let id = event.about().unwrap();
            let parts = seen.entry(id).or_default();
            match event {
                Event::Started(..) => {}
                Event::Stdout(_, bytes) | Event::File(_, bytes) => parts.0.extend(bytes),
                Event::Stderr(_, bytes) => parts.1.extend(bytes),
                event => {
                    let (out, err) = std::mem::take(parts);
                    ended.insert(id, (out, err, event));
                }
            }
        }
        ended
    }

    fn one(&mut self, argv: &[&str], stdin: &[u8]) -> (Vec<u8>, Vec<u8>, Event) {
        self.start(7, argv, stdin);
        self.finish(&[7]).remove(&7).unwrap()
    }
}

fn shell(argv: &[&str], stdin: &[u8]) -> Start {
    Start {
        argv: argv.iter().map(|word| word.to_string()).collect(),
        env: vec![("WORD".to_string(), "set".to_string())],
        stdin: stdin.to_vec(),
    }
}

#[test]
fn a_program_is_heard_and_its_end_told() {
    let mut host = Host::new(None);
    let (out, err, end) = host.one(&["sh", "-c", "cat; echo $WORD >&2; exit 3"], b"in");
    assert_eq!((&out[..], &err[..]), (&b"in"[..], &b"set\n"[..]));
    assert_eq!(end, Event::Ended(7, Status::Code(3)));
    let (.., end) = host.one(&["sh", "-c", "kill -9 $$"], b"");
    assert_eq!(end, Event::Ended(7, Status::Signal(9)));
    let (.., end) = host.one(&["no-such-program"], b"");
    let words = "no-such-program: there is no such program".to_string();
    assert_eq!(end, Event::Failed(7, words));
    let (.., end) = host.one(&[], b"");
    assert!(matches!(end, Event::Failed(7, _)));
}

#[test]
fn programs_run_side_by_side_and_are_signalled_with_their_children() {
    let mut host = Host::new(None);
    host.start(1, &["sh", "-c", "sleep 100 | sleep 100"], b"");
    host.start(2, &["sh", "-c", "echo two"], b"");
    let two = host.finish(&[2]).remove(&2).unwrap();
    assert_eq!(two.0, b"two\n");
    host.say(Request::Signal(1, 15));
    let (.., end) = host.finish(&[1]).remove(&1).unwrap();
    assert_eq!(end, Event::Ended(1, Status::Signal(15)));
    // A signal reaches neither a program that has ended nor one that never was.
    host.say(Request::Signal(1, 9));
    host.say(Request::Signal(99, 9));
    assert_eq!(host.one(&["true"], b"").2, Event::Ended(7, Status::Code(0)));
}

#[test]
fn what_stays_behind_does_not_hold_the_end_up() {
    let mut host = Host::new(None);
    // The background process waits for the end of the pipe of which this test holds the other side, so it is
    // there until the test has heard of the end.
    let (reader, writer) = std::io::pipe().unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), reader.as_raw_fd());
    let script = format!("cat <{path} & echo here");
    let (out, _, end) = host.one(&["sh", "-c", &script], b"");
    assert_eq!((&out[..], end), (&b"here\n"[..], Event::Ended(7, Status::Code(0))));
    drop(writer);
}

/// On a busy host the thread that reads a stream may get no CPU for longer than the grace.
#[test]
fn what_was_written_is_waited_for_and_no_more() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (_done, ended) = channel();
    let pump =
        Pump { ended, pipe: Arc::new(File::from(OwnedFd::from(reader))), turn: Arc::default() };
    writer.write_all(b"late").unwrap();
    let pipe = pump.pipe.clone();
    let late = thread::spawn(move || {
        thread::sleep(3 * GRACE);
        (&*pipe).read(&mut [0; 8]).unwrap()
    });
    pump.drain();
    assert_eq!(ioctl_fionread(&*pump.pipe), Ok(0));
    assert_eq!(late.join().unwrap(), 4);
    // The other end is open still, and nobody waits for what may yet be written there.
    drop(writer);
}

#[test]
fn a_job_runs_first_and_is_told_at_its_end() {
    let job = Request::Start(5, shell(&["sh", "-c", "echo one; sleep 0.1; echo two"], b""));
    let mut host = Host::new(Some(job));
    let (out, _, end) = host.finish(&[5]).remove(&5).unwrap();
    assert_eq!((&out[..], end), (&b"one\ntwo\n"[..], Event::Ended(5, Status::Code(0))));
    assert_eq!(host.one(&["true"], b"").2, Event::Ended(7, Status::Code(0)));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let mut host = Host::new(None);
    host.say(Request::Get(3, "/nonexistent/file".to_string()));
    let (.., end) = host.finish(&[3]).remove(&3).unwrap();
    let Event::Failed(3, words) = end else {
        panic!("{end:?}");
    };
    assert!(words.starts_with("/nonexistent/file: No such file"), "{words}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A program gets any bytes back as it sent them, whatever other programs run beside it.
    #[test]
    fn programs_do_not_mix(inputs in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..3000), 1..5,
    )) {
        let mut host = Host::new(None);
        let ids: Vec<u32> = (0..inputs.len() as u32).collect();
        for (id, input) in ids.iter().zip(&inputs) {
            host.start(*id, &["sh", "-c", "tee /dev/stderr"], input);
        }
        let ended = host.finish(&ids);
        for (id, input) in ids.iter().zip(&inputs) {
            let (out, err, end) = &ended[id];
            prop_assert_eq!(out, input);
            prop_assert_eq!(err, input);
            prop_assert_eq!(end, &Event::Ended(*id, Status::Code(0)));
        }
    }

    /// A file that the host puts in pieces comes back whole.
    #[test]
    fn files_travel_both_ways(pieces in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..CHUNK + 10), 1..4,
    )) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file").to_str().unwrap().to_string();
        let mut host = Host::new(None);
        for (index, bytes) in pieces.iter().enumerate() {
            host.say(Request::Put {
                id: 1,
                path: path.clone(),
                mode: 0o750,
                append: index > 0,
                bytes: bytes.clone(),
            });
            prop_assert_eq!(host.next(), Event::Done(1));
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        prop_assert_eq!(mode, 0o750);
        host.say(Request::Get(2, path));
        let (bytes, _, end) = host.finish(&[2]).remove(&2).unwrap();
        prop_assert_eq!(bytes, pieces.concat());
        prop_assert_eq!(end, Event::Done(2));
    }
}
