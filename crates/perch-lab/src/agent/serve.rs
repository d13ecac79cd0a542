// SPDX-License-Identifier: GPL-2.0-or-later
//! The agent's work: one thread reads requests, and three threads attend to each program.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::frame::{CHUNK, Event, PROTOCOL, Request, Start, Status, receive, send};

/// The time after which the agent asks whether anything is left of the output of a program that
/// has ended. It waits no longer than that for output that nobody has written yet: a background
/// process that keeps the pipe open must not keep the host waiting.
const GRACE: Duration = Duration::from_millis(500);

/// Answers requests until the stream ends or says [`Request::End`]. Runs `job` first.
///
/// # Errors
/// Those of the streams; `InvalidData` when a frame holds no request.
pub fn serve(
    mut input: impl Read,
    output: impl Write + Send + 'static,
    job: Option<Request>,
) -> io::Result<()> {
    let agent = Agent {
        output: Arc::new(Mutex::new(Box::new(output))),
        held: Arc::default(),
        running: Arc::default(),
    };
    agent.say(&Event::Ready(PROTOCOL.to_string()));
    if let Some(Request::Start(id, start)) = job {
        *lock(&agent.held) = Some(Vec::new());
        if let Some(attendant) = agent.start(id, start) {
            // This thread panics only when the program's other attendants do; then there is nothing
            // to say.
            let _ = attendant.join();
        }
        let held = lock(&agent.held).take();
        for event in held.into_iter().flatten() {
            agent.say(&event);
        }
    }
    loop {
        match receive(&mut input)? {
            None | Some(Request::End) => return Ok(()),
            Some(Request::Start(id, start)) => drop(agent.start(id, start)),
            Some(Request::Signal(id, signal)) => agent.signal(id, signal),
            Some(Request::Get(id, path)) => agent.get(id, &path),
            Some(Request::Put { id, path, mode, append, bytes }) => {
                agent.answer(id, &path, put(&path, mode, append, &bytes));
            }
        }
    }
}

/// The state that the agent's threads share.
#[derive(Clone)]
struct Agent {
    output: Arc<Mutex<Box<dyn Write + Send>>>,
    /// Events that wait for the end of the job.
    held: Arc<Mutex<Option<Vec<Event>>>>,
    /// Programs that the agent has not waited for yet; the kernel gives their process ids to nobody
    /// else until then.
    running: Arc<Mutex<HashMap<u32, Pid>>>,
}

impl Agent {
    fn say(&self, event: &Event) {
        if let Some(held) = &mut *lock(&self.held) {
            held.push(event.clone());
            return;
        }
        // The thread that reads requests notices when the host is gone, so this one ignores errors.
        let _ = send(&mut *lock(&self.output), event);
    }

    fn answer(&self, id: u32, about: &str, result: io::Result<()>) {
        match result {
            Ok(()) => self.say(&Event::Done(id)),
            Err(error) => self.say(&Event::Failed(id, format!("{about}: {error}"))),
        }
    }

    /// Starts a program. The thread returned ends when the agent has sent the program's last event.
    fn start(&self, id: u32, start: Start) -> Option<thread::JoinHandle<()>> {
        let Some((program, arguments)) = start.argv.split_first() else {
            self.say(&Event::Failed(id, "no program was named".to_string()));
            return None;
        };
        let stdin = if start.stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
        let spawned = Command::new(program)
            .args(arguments)
            .envs(start.env)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                let words = match error.kind() {
                    ErrorKind::NotFound => format!("{program}: there is no such program"),
                    _ => format!("{program}: {error}"),
                };
                self.say(&Event::Failed(id, words));
                return None;
            }
        };
        let pid = Pid::from_child(&child);
        lock(&self.running).insert(id, pid);
        self.say(&Event::Started(id, child.id()));
        if let Some(mut pipe) = child.stdin.take() {
            // A program may close the pipe before it has read everything; that is no error.
            thread::spawn(move || pipe.write_all(&start.stdin));
        }
        let agent = self.clone();
        Some(thread::spawn(move || agent.attend(id, pid, child)))
    }

    /// Passes on what a program writes, and how it ends.
    fn attend(&self, id: u32, pid: Pid, mut child: Child) {
        let stdout = child.stdout.take();
        let stdout =
            stdout.map(|pipe| self.pump(pipe.into(), move |bytes| Event::Stdout(id, bytes)));
        let stderr = child.stderr.take();
        let stderr =
            stderr.map(|pipe| self.pump(pipe.into(), move |bytes| Event::Stderr(id, bytes)));
        // The process keeps its id, and can be signalled, until the agent waits for it below.
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        lock(&self.running).remove(&id);
        let status = child.wait();
        for pump in [stdout, stderr].iter().flatten() {
            pump.drain();
        }
        self.say(&match status.map(|status| (status.code(), status.signal())) {
            Ok((Some(code), _)) => Event::Ended(id, Status::Code(code as u32)),
            Ok((None, signal)) => Event::Ended(id, Status::Signal(signal.unwrap_or(0) as u32)),
            Err(error) => Event::Failed(id, format!("waiting for it: {error}")),
        });
    }

    /// Passes on what a program writes to one of its streams.
    fn pump(&self, pipe: OwnedFd, event: impl Fn(Vec<u8>) -> Event + Send + 'static) -> Pump {
        let (done, ended) = channel();
        let (pipe, turn) = (Arc::new(File::from(pipe)), Arc::default());
        let pump = Pump { ended, pipe: Arc::clone(&pipe), turn: Arc::clone(&turn) };
        let agent = self.clone();
        thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            loop {
                // The read that follows tells of errors, if there are any.
                let _ = poll(&mut [PollFd::new(&*pipe, PollFlags::IN)], None);
                let _turn = lock(&turn);
                match (&*pipe).read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => agent.say(&event(buffer[..count].to_vec())),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            // The receiver is gone once the agent has sent the program's end.
            let _ = done.send(());
        });
        pump
    }

    /// A program that has ended gets no signal, and that is no error: the host could not have known
    /// of its end.
    fn signal(&self, id: u32, signal: u32) {
        let running = lock(&self.running);
        let signal = i32::try_from(signal).ok().and_then(Signal::from_named_raw);
        if let (Some(pid), Some(signal)) = (running.get(&id), signal) {
            let _ = kill_process_group(*pid, signal);
        }
    }

    fn get(&self, id: u32, path: &str) {
        let read = || {
            let mut file = File::open(path)?;
            let mut buffer = vec![0; CHUNK];
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok(()),
                    count => self.say(&Event::File(id, buffer[..count].to_vec())),
                }
            }
        };
        self.answer(id, path, read());
    }
}

/// A thread that passes on what a program writes to one of its streams.
struct Pump {
    /// Says that nobody can write to the stream any more, and that everything was passed on.
    ended: Receiver<()>,
    pipe: Arc<File>,
    /// The thread holds this from before it reads until it has passed on what it read.
    turn: Arc<Mutex<()>>,
}

impl Pump {
    /// Returns once everything was passed on that a program wrote before its end, however long that
    /// takes: a time limit lost output on a busy host.
    fn drain(&self) {
        while let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(GRACE) {
            let _turn = lock(&self.turn);
            if !matches!(ioctl_fionread(&*self.pipe), Ok(1..)) {
                return;
            }
        }
    }
}

fn put(path: &str, mode: u32, append: bool, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.mode(mode).write(true).create(!append);
    let mut file = options.append(append).truncate(!append).open(path)?;
    file.write_all(bytes)?;
    match append {
        true => Ok(()),
        // The umask cuts the mode at creation, and a file that existed before keeps its own mode.
        false => match file.set_permissions(PermissionsExt::from_mode(mode)) {
            // Files of the kernel (/proc, /sys) take bytes and no permissions.
            Err(error) if error.kind() != ErrorKind::PermissionDenied => Err(error),
            _ => Ok(()),
        },
    }
}

/// Takes the lock even when a thread panicked under it: no thread leaves the data half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
