// SPDX-License-Identifier: GPL-2.0-or-later
//! Answers a collector's HTTP requests with what the scheduler reports at that moment.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Client, Report, StatisticsError, openmetrics, prometheus};

/// A request's line and headers; no collector's have a tenth of it.
const LONGEST_REQUEST: usize = 16 * 1024;
/// Headers of a request.
const MOST_HEADERS: usize = 64;
/// So many may be connected at once. One more, and the one that came first goes: a collector needs a
/// moment, and who stays has no request.
const MOST_CLIENTS: usize = 16;
/// So many of one peer may be, in the same way: whoever keeps more ends its own, and not others'.
const MOST_OF_ONE: usize = 4;
/// So many may be served at once while the scheduler does not answer; more are turned away.
const MOST_THREADS: usize = 4 * MOST_CLIENTS;
/// A collector that is alive sends its whole request within this time, and takes the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way in which Prometheus and others ask for OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text";

/// A port at which a collector may ask.
#[derive(Debug)]
pub struct Listener {
    port: TcpListener,
    socket: Arc<PathBuf>,
    patience: Duration,
}

impl Listener {
    /// Listens at `address` for the scheduler that answers at `socket`, which may be loaded later, or
    /// end and come back: until then the metrics say that none is up.
    ///
    /// # Errors
    /// When the system does not give the port.
    pub fn bind(address: SocketAddr, socket: PathBuf) -> io::Result<Listener> {
        Ok(Listener {
            port: TcpListener::bind(address)?,
            socket: Arc::new(socket),
            patience: PATIENCE,
        })
    }

    /// Returns the listener with another time in which a collector has to send its request and take the
    /// answer.
    pub fn with_patience(self, patience: Duration) -> Listener {
        Listener { patience, ..self }
    }

    /// The address at which it listens, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    /// Answers for as long as the process lives.
    pub fn serve(&self) {
        let clients = Arc::new(Clients::default());
        for stream in self.port.incoming() {
            // Out of descriptors, or the client has gone: the next may do better.
            let Ok(stream) = stream else { continue };
            let Ok(from) = stream.peer_addr() else {
                continue;
            };
            if Arc::strong_count(&clients) > MOST_THREADS {
                continue;
            }
            let stream = Arc::new(stream);
            let (socket, among) = (Arc::clone(&self.socket), Arc::clone(&clients));
            let patience = self.patience;
            clients.come(&stream, peer(from.ip()));
            let thread = thread::Builder::new().name("perch-listen".to_string());
            let served = Arc::clone(&stream);
            let started = thread.spawn(move || {
                // A client that stops listening ends its own connection only.
                let _ = answer(&served, &socket, patience);
                among.go(&served);
            });
            if started.is_err() {
                clients.go(&stream);
            }
        }
    }
}

/// Whom [`MOST_OF_ONE`] is about: an address, of IPv6 the first half, as a host may choose the other.
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// The clients that are connected, in the order in which they came, and their peers.
#[derive(Default)]
struct Clients(Mutex<VecDeque<(IpAddr, Arc<TcpStream>)>>);

impl Clients {
    fn come(&self, client: &Arc<TcpStream>, from: IpAddr) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back((from, Arc::clone(client)));
        let of_one = all.iter().filter(|(peer, _)| *peer == from).count();
        let oldest = if of_one > MOST_OF_ONE {
            all.iter().position(|(peer, _)| *peer == from)
        } else {
            (all.len() > MOST_CLIENTS).then_some(0)
        };
        // Its thread reads the end of the request, and goes.
        let _ =
            oldest.and_then(|at| all.remove(at)).map(|(_, oldest)| oldest.shutdown(Shutdown::Both));
    }

    fn go(&self, client: &Arc<TcpStream>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, other)| !Arc::ptr_eq(other, client));
    }
}

struct Asked {
    is_get: bool,
    path: String,
    openmetrics: bool,
}

fn answer(mut stream: &TcpStream, socket: &Path, patience: Duration) -> io::Result<()> {
    stream.set_write_timeout(Some(patience))?;
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match asked(stream, patience)? {
        None => ("400 Bad Request", plain, "no HTTP request\n".to_string()),
        Some(Asked { is_get: false, .. }) => {
            ("405 Method Not Allowed", plain, "expected GET /metrics\n".to_string())
        }
        Some(asked) if asked.path != "/metrics" => {
            ("404 Not Found", plain, "expected /metrics\n".to_string())
        }
        Some(asked) => match (report(socket), asked.openmetrics) {
            (Err(error), _) => ("500 Internal Server Error", plain, format!("{error}\n")),
            (Ok(report), true) => (
                "200 OK",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                openmetrics(report.as_ref()),
            ),
            (Ok(report), false) => {
                ("200 OK", "text/plain; version=0.0.4; charset=utf-8", prometheus(report.as_ref()))
            }
        },
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The report of the scheduler; none if there is no scheduler.
fn report(socket: &Path) -> Result<Option<Report>, StatisticsError> {
    match Client::connect(socket).and_then(|mut client| client.report()) {
        Ok(report) => Ok(Some(report)),
        Err(StatisticsError::NoScheduler(_) | StatisticsError::Ended) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a request up to the end of its headers; none if it is none, or longer than any that makes
/// sense.
fn asked(mut stream: &TcpStream, patience: Duration) -> io::Result<Option<Asked>> {
    let mut text = Vec::new();
    let until = Instant::now() + patience;
    loop {
        // No time left is an error.
        stream.set_read_timeout(Some(until.saturating_duration_since(Instant::now())))?;
        let mut piece = [0; 2048];
        let length = match stream.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        text.extend_from_slice(&piece[..length]);
        if length == 0 || text.len() > LONGEST_REQUEST {
            return Ok(None);
        }
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&text) {
            Ok(httparse::Status::Partial) => {}
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.unwrap_or_default();
                let path = path.split('?').next().unwrap_or_default().to_string();
                let accepts = request.headers.iter().any(|header| {
                    header.name.eq_ignore_ascii_case("accept")
                        && String::from_utf8_lossy(header.value).contains(OPENMETRICS)
                });
                return Ok(Some(Asked {
                    is_get: request.method == Some("GET"),
                    path,
                    openmetrics: accepts,
                }));
            }
            Err(_) => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_keeps_many_connections_ends_its_own() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let clients = Clients::default();
        let come = |from: &str| {
            let stream = Arc::new(TcpStream::connect(port.local_addr().unwrap()).unwrap());
            clients.come(&stream, peer(from.parse().unwrap()));
            stream
        };
        let is_open = |stream: &Arc<TcpStream>| (&**stream).write(b"x").is_ok();
        let collector = come("192.0.2.1");
        let slow: Vec<_> = (0..40).map(|_| come("::ffff:192.0.2.2")).collect();
        let open = slow.iter().map(is_open);
        assert_eq!(open.filter(|open| *open).count(), MOST_OF_ONE);
        assert!(is_open(&slow[39]) && is_open(&collector));
        let hosts: Vec<_> = (0..9).map(|host| come(&format!("2001:db8::{host}"))).collect();
        assert!(is_open(&hosts[5]) && !is_open(&hosts[4]) && is_open(&collector));
        let hosts: Vec<_> = (3..11).map(|host| come(&format!("192.0.2.{host}"))).collect();
        assert!(!is_open(&collector) && hosts.iter().all(is_open));
    }
}
