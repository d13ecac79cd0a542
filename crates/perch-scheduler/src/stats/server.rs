// SPDX-License-Identifier: GPL-2.0-or-later
//! Gives statistics to each client that connects: the side of the scheduler.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use serde::Deserialize;
use serde_json::{Value, json};

use super::Source;
use super::meta::meta;

/// Longer requests are refused; none that makes sense has a hundredth of it.
const LONGEST_REQUEST: u64 = 64 * 1024;

/// So many may be connected at once; more are turned away.
const MOST_CLIENTS: usize = 64;

/// A socket that is there until the value is dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    /// The socket's device and inode.
    bound: (u64, u64),
    /// Whoever connects before there are answers waits for them here.
    waiting: Option<UnixListener>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Makes the socket `path` and its folders. A socket at which no process answers any more is
    /// replaced, and nothing else is.
    ///
    /// # Errors
    /// When the socket cannot be made, when another process answers there, or when a file that is no
    /// socket has that name.
    pub fn bind(path: &Path) -> io::Result<Server> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        if UnixStream::connect(path).is_ok() {
            let message = "another scheduler answers there";
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => {
                let message = "another file, which is no socket, has that name";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let waiting = UnixListener::bind(path)?;
        let bound = fs::symlink_metadata(path)?;
        Ok(Server {
            path: path.to_path_buf(),
            bound: (bound.dev(), bound.ino()),
            waiting: Some(waiting),
            stop: Arc::new(AtomicBool::new(false)),
            thread: None,
        })
    }

    /// Begins to answer from `source`; does nothing if it has begun.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn answer(&mut self, source: &Source) -> io::Result<()> {
        let Some(listener) = self.waiting.take() else {
            return Ok(());
        };
        let (source, stop) = (source.clone(), Arc::clone(&self.stop));
        let thread = thread::Builder::new()
            .name("perch-stats".to_string())
            .spawn(move || accept(&listener, &source, &stop))?;
        self.thread = Some(thread);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Another process may have put something else there.
        let ours = |found: fs::Metadata| (found.dev(), found.ino()) == self.bound;
        if !fs::symlink_metadata(&self.path).is_ok_and(ours) {
            return;
        }
        // Wakes the thread that waits for a client to connect.
        let woken = self.thread.is_some() && UnixStream::connect(&self.path).is_ok();
        let _ = fs::remove_file(&self.path);
        if let (true, Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &UnixListener, source: &Source, stop: &AtomicBool) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // Out of descriptors, or the client has gone: the next may do better.
        let Ok(stream) = stream else { continue };
        if clients.fetch_add(1, Ordering::Relaxed) >= MOST_CLIENTS {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (source, count) = (source.clone(), Arc::clone(&clients));
        let thread = thread::Builder::new().name("perch-stats".to_string());
        let started = thread.spawn(move || {
            // A client that stops listening ends its own connection only.
            let _ = serve(&stream, &source);
            count.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[derive(Deserialize)]
struct Request {
    req: String,
    #[serde(default)]
    args: Value,
}

fn serve(stream: &UnixStream, source: &Source) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut line = Vec::new();
        let got = reader.by_ref().take(LONGEST_REQUEST).read_until(b'\n', &mut line)?;
        if got == 0 {
            return Ok(());
        }
        let whole = line.last() == Some(&b'\n') || (got as u64) < LONGEST_REQUEST;
        let answer = if whole { answer(&line, source) } else { Err(RequestError::TooLong) };
        let (errno, answer) = match answer {
            Ok(answer) => (0, answer),
            Err(error) => (error.errno(), Value::String(error.to_string())),
        };
        let text = json!({ "errno": errno, "args": { "resp": answer } });
        writer.write_all(format!("{text}\n").as_bytes())?;
        if !whole {
            return Ok(());
        }
    }
}

/// The reason why a request has no answer.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("a request longer than {LONGEST_REQUEST} bytes")]
    TooLong,
    #[error("not a request: {0}")]
    NoRequest(#[source] serde_json::Error),
    #[error("unknown target {0}: perch has \"top\"")]
    Target(Value),
    #[error("unknown request \"{0}\": perch answers stats and stats_meta")]
    Unknown(String),
    #[error("{0}")]
    Report(#[source] serde_json::Error),
}

impl RequestError {
    /// The number that the protocol has for it.
    fn errno(&self) -> i32 {
        match self {
            RequestError::Report(_) => libc::EIO,
            _ => libc::EINVAL,
        }
    }
}

fn answer(line: &[u8], source: &Source) -> Result<Value, RequestError> {
    let request: Request = serde_json::from_slice(line).map_err(RequestError::NoRequest)?;
    match (request.req.as_str(), request.args.get("target")) {
        ("stats", None) => {}
        ("stats", Some(target)) if target == "top" => {}
        ("stats", Some(target)) => return Err(RequestError::Target(target.clone())),
        ("stats_meta", _) => return Ok(meta()),
        (_, _) => return Err(RequestError::Unknown(request.req)),
    }
    serde_json::to_value(source.report()).map_err(RequestError::Report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_is_replaced_and_only_the_own_one_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perch.sock");
        fs::write(&path, "a thesis").unwrap();
        let why = Server::bind(&path).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "a thesis");
        fs::remove_file(&path).unwrap();
        // A socket that nobody answers at any more.
        drop(UnixListener::bind(&path).unwrap());
        let server = Server::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop(server);
        assert!(path.exists());
    }
}
