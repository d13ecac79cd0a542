// SPDX-License-Identifier: GPL-2.0-or-later
//! The host's end of the agent's port: it sends requests and hands each event to the process or
//! transfer that it is about.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::agent::frame::{Event, PROTOCOL, Request, receive, send};

/// The agent's port, by name.
pub(super) const PORT: &str = "perch.agent";

/// The receivers of events, by the number of the process or transfer; `None` once the guest is
/// gone.
type Listeners = Arc<Mutex<Option<HashMap<u32, Sender<Event>>>>>;

/// The reason why an event does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It did not come within the time given.
    Late,
    /// The guest is gone.
    Gone,
}

/// The connection.
pub(super) struct Link {
    output: Mutex<UnixStream>,
    listeners: Listeners,
    next: Mutex<u32>,
    ready: Mutex<Receiver<String>>,
}

/// The number of the job that a guest runs by itself when it comes up.
pub(super) const JOB: u32 = 0;

impl Link {
    /// A connection over a stream whose other end a guest will get.
    pub fn new(stream: UnixStream) -> std::io::Result<Link> {
        let mut input = stream.try_clone()?;
        let listeners: Listeners = Arc::new(Mutex::new(Some(HashMap::new())));
        let (said, ready) = channel();
        let told = Arc::clone(&listeners);
        thread::spawn(move || {
            while let Ok(Some(event)) = receive::<Event>(&mut input) {
                match (event.about(), event) {
                    // A receiver that is gone needs no events.
                    (None, Event::Ready(words)) => drop(said.send(words)),
                    (Some(id), event) => {
                        if let Some(listener) = lock(&told).as_ref().and_then(|all| all.get(&id)) {
                            let _ = listener.send(event);
                        }
                    }
                    (None, _) => {}
                }
            }
            *lock(&told) = None;
        });
        Ok(Link {
            output: Mutex::new(stream),
            listeners,
            next: Mutex::new(JOB + 1),
            ready: Mutex::new(ready),
        })
    }

    /// Waits until the agent says that it listens.
    pub fn await_ready(&self, limit: Duration) -> Result<(), Silence> {
        match lock(&self.ready).recv_timeout(limit) {
            Ok(words) if words == PROTOCOL => Ok(()),
            // Another protocol means another build of perch, whose messages could not be
            // understood.
            Ok(_) => Err(Silence::Gone),
            Err(RecvTimeoutError::Timeout) => Err(Silence::Late),
            Err(RecvTimeoutError::Disconnected) => Err(Silence::Gone),
        }
    }

    /// An unused number for a new process or transfer, and the receiver of its events.
    pub fn listen(&self) -> (u32, Receiver<Event>) {
        let mut next = lock(&self.next);
        let id = *next;
        *next += 1;
        (id, self.listen_to(id))
    }

    /// The receiver of the events about `id`.
    pub fn listen_to(&self, id: u32) -> Receiver<Event> {
        let (sender, receiver) = channel();
        if let Some(listeners) = &mut *lock(&self.listeners) {
            listeners.insert(id, sender);
        }
        receiver
    }

    /// Drops the receiver of `id`, whose further events are ignored.
    pub fn forget(&self, id: u32) {
        if let Some(listeners) = &mut *lock(&self.listeners) {
            listeners.remove(&id);
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// Those of the stream; a frame's own when the request is too long.
    pub fn send(&self, request: &Request) -> std::io::Result<()> {
        send(&mut *lock(&self.output), request)
    }
}

/// The next event before `deadline`; without one, whenever it comes.
pub(super) fn next(events: &Receiver<Event>, deadline: Option<Instant>) -> Result<Event, Silence> {
    match deadline {
        None => events.recv().map_err(|_| Silence::Gone),
        Some(deadline) => {
            let left = deadline.saturating_duration_since(Instant::now());
            events.recv_timeout(left).map_err(|error| match error {
                RecvTimeoutError::Timeout => Silence::Late,
                RecvTimeoutError::Disconnected => Silence::Gone,
            })
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
