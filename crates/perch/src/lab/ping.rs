// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab ping`: a byte there and back between two processes, each on a CPU of its own.
//!
//! It is the smallest load whose cache lines are known by name: what moves in a round is what the
//! kernel needs to hand a byte over and to wake the reader. Its rounds are marked, so that a guest
//! that counts (`perch lab run --coherence --marked`) says what one of them takes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use clap::{Args, ValueEnum};
use perch_lab::coherence::{Mark, SLOTS, mark};

use crate::agent;
use crate::output::{Failure, emit};

/// The agent's command that is the other side.
pub const PONG: &str = "pong";

/// Rounds before those that count, beside a quarter of these: connections, caches and estimates
/// settle.
const WARM_UP: u64 = 100;

/// The way of the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Two pipes
    Pipe,
    /// A TCP connection over loopback
    Tcp,
    /// Two UDP sockets over loopback
    Udp,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            By::Pipe => "pipe",
            By::Tcp => "tcp",
            By::Udp => "udp",
        }
    }
}

/// A load of two processes.
#[derive(Args)]
pub struct Arguments {
    /// How the byte goes
    #[arg(long, value_enum, default_value = "pipe")]
    by: By,
    /// The CPUs of the two processes
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1, required = true)]
    cpus: Vec<usize>,
    /// Rounds that are measured
    #[arg(long, value_name = "N", default_value_t = 400,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rounds: u64,
    /// Also say what a round takes by other clocks: CLOCK_MONOTONIC_RAW, and the TSC in its ticks
    #[arg(long)]
    clocks: bool,
    /// The slot into which a guest counts the measured rounds
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..i64::from(SLOTS)))]
    slot: u8,
}

/// The other side's.
#[derive(Args)]
pub struct PongArguments {
    #[arg(long, value_enum)]
    by: By,
    #[arg(long)]
    rounds: u64,
    /// The port of the first side; none for pipes.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

/// A side's end of the way: a byte goes out, a byte comes in.
pub trait End {
    fn put(&mut self) -> std::io::Result<()>;
    fn get(&mut self) -> std::io::Result<()>;
}

/// Two pipes, or a connection twice.
struct Stream<R, W>(R, W);

impl<R: Read, W: Write> End for Stream<R, W> {
    fn put(&mut self) -> std::io::Result<()> {
        self.1.write_all(&[1])?;
        self.1.flush()
    }

    fn get(&mut self) -> std::io::Result<()> {
        self.0.read_exact(&mut [0])
    }
}

impl End for UdpSocket {
    fn put(&mut self) -> std::io::Result<()> {
        self.send(&[1]).map(drop)
    }

    fn get(&mut self) -> std::io::Result<()> {
        self.recv(&mut [0]).map(drop)
    }
}

/// Lets this process run on one CPU only.
fn pin(cpu: usize) -> Result<(), Failure> {
    // SAFETY: a set of CPUs is plain bits, and CPU_SET looks whether the number fits.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu < libc::CPU_SETSIZE as usize {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    match done {
        0 => Ok(()),
        _ => {
            Err(Failure::input(format!("--cpus: there is no CPU {cpu} that this process may use")))
        }
    }
}

pub fn failed(doing: &str) -> impl Fn(std::io::Error) -> Failure {
    let doing = doing.to_string();
    move |error| {
        let hint = match error.raw_os_error() {
            Some(libc::ENETUNREACH | libc::EADDRNOTAVAIL) => {
                "; is the loopback interface up (ip link set lo up)?"
            }
            _ => "",
        };
        Failure::run(format!("cannot {doing}: {error}{hint}"))
    }
}

/// Starts the other side, and returns this side's end of the way to it. A process inherits its CPUs:
/// `place` pins this one for the time of the start.
pub fn start(
    by: By,
    rounds: u64,
    place: impl FnOnce() -> Result<(), Failure>,
) -> Result<(Child, Box<dyn End>), Failure> {
    let this = std::env::current_exe().map_err(failed("find this program"))?;
    let mut command = Command::new(this);
    command.args([agent::NAME, PONG, "--by", by.name()]);
    command.args(["--rounds", &rounds.to_string()]);
    place()?;
    let spawn = |command: &mut Command| command.spawn().map_err(failed("start the other side"));
    let loopback = (Ipv4Addr::LOCALHOST, 0);
    match by {
        By::Pipe => {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = spawn(&mut command)?;
            let (out, back) = (child.stdin.take(), child.stdout.take());
            let out = out.expect("its input is a pipe");
            let back = back.expect("its output is a pipe");
            Ok((child, Box::new(Stream(back, out))))
        }
        By::Tcp => {
            let listener = TcpListener::bind(loopback).map_err(failed("listen"))?;
            let port = listener.local_addr().map_err(failed("listen"))?.port();
            let child = spawn(command.args(["--port", &port.to_string()]))?;
            let (stream, _) = listener.accept().map_err(failed("accept"))?;
            stream.set_nodelay(true).map_err(failed("set TCP_NODELAY"))?;
            let other = stream.try_clone().map_err(failed("use the socket"))?;
            Ok((child, Box::new(Stream(stream, other))))
        }
        By::Udp => {
            let socket = UdpSocket::bind(loopback).map_err(failed("bind"))?;
            let port = socket.local_addr().map_err(failed("bind"))?.port();
            let child = spawn(command.args(["--port", &port.to_string()]))?;
            let (_, from) = socket.recv_from(&mut [0]).map_err(failed("receive"))?;
            socket.connect(from).map_err(failed("connect"))?;
            Ok((child, Box::new(socket)))
        }
    }
}

/// The failure of a round: the other side's, which has told it, or this side's.
fn ended(child: &mut Child, error: std::io::Error) -> Failure {
    match child.wait() {
        Ok(status) if !status.success() => {
            Failure::input(format!("the other side ended with {status}"))
        }
        _ => failed("send a byte there and back")(error),
    }
}

/// What clocks show: the library's, the kernel's raw one in nanoseconds, and the TSC's ticks where
/// there is one.
struct Clocks {
    monotonic: Instant,
    raw_ns: u64,
    ticks: Option<u64>,
}

impl Clocks {
    /// Reads them twice: the first reading waits for lines that the kernel wrote to when it brought
    /// its clocks up to date, the second one does not.
    fn warm() -> Clocks {
        Clocks::read();
        Clocks::read()
    }

    fn read() -> Clocks {
        let raw = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicRaw);
        Clocks {
            monotonic: Instant::now(),
            raw_ns: raw.tv_sec as u64 * 1_000_000_000 + raw.tv_nsec as u64,
            ticks: ticks(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> Option<u64> {
    // SAFETY: every x86-64 CPU has the instruction, which reads a register.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> Option<u64> {
    None
}

/// Runs the load and prints what a round took by this process's clock.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let [first, second] = arguments.cpus[..] else {
        return Err(Failure::input("--cpus: expected two CPUs, for example 0,2"));
    };
    let warm_up = arguments.rounds / 4 + WARM_UP;
    let (mut child, mut end) = start(arguments.by, warm_up + arguments.rounds, || {
        // A CPU that is not there is refused before anybody waits.
        pin(second)
    })?;
    pin(first)?;
    let mut rounds = |number: u64, marked: bool| -> std::io::Result<()> {
        for _ in 0..number {
            end.put()?;
            end.get()?;
            if marked {
                mark(Mark::Round);
            }
        }
        Ok(())
    };
    if let Err(error) = rounds(warm_up, false) {
        return Err(ended(&mut child, error));
    }
    let began = Clocks::warm();
    mark(Mark::Start(arguments.slot));
    let done = rounds(arguments.rounds, true);
    mark(Mark::Stop(arguments.slot));
    let over = Clocks::warm();
    done.map_err(|error| ended(&mut child, error))?;
    child.wait().map_err(failed("wait for the other side"))?;
    let each = |sum: u128| sum as f64 / arguments.rounds as f64;
    let mut text = format!(
        "{} between CPUs {first} and {second}: {} rounds, {:.1} ns each\n",
        arguments.by.name(),
        arguments.rounds,
        each((over.monotonic - began.monotonic).as_nanos())
    );
    if arguments.clocks {
        text += &format!("raw {:.1} ns each", each((over.raw_ns - began.raw_ns).into()));
        let ticks = over.ticks.zip(began.ticks);
        let ticks = ticks.map(|(over, began)| each((over - began).into()));
        text += &ticks.map_or(String::new(), |ticks| format!(", TSC {ticks:.1} ticks each"));
        text.push('\n');
    }
    emit(&text)
}

/// The other side: every byte goes back.
pub fn run_pong(arguments: &PongArguments) -> Result<(), Failure> {
    let there = (Ipv4Addr::LOCALHOST, arguments.port);
    let mut end: Box<dyn End> = match arguments.by {
        // Standard output of the library is buffered by line and locked; the descriptors are not.
        By::Pipe => {
            let input = std::fs::File::open("/proc/self/fd/0").map_err(failed("open the pipe"))?;
            let output = std::fs::File::options().write(true).open("/proc/self/fd/1");
            Box::new(Stream(input, output.map_err(failed("open the pipe"))?))
        }
        By::Tcp => {
            let stream = TcpStream::connect(there).map_err(failed("connect"))?;
            stream.set_nodelay(true).map_err(failed("set TCP_NODELAY"))?;
            let other = stream.try_clone().map_err(failed("use the socket"))?;
            Box::new(Stream(stream, other))
        }
        By::Udp => {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed("bind"))?;
            socket.connect(there).map_err(failed("connect"))?;
            let mut socket = socket;
            socket.put().map_err(failed("send"))?;
            Box::new(socket)
        }
    };
    for _ in 0..arguments.rounds {
        end.get().and_then(|()| end.put()).map_err(failed("send a byte back"))?;
    }
    Ok(())
}
