// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest: a kernel that runs on a machine nobody owns, and commands in it.
//!
//! ```no_run
//! use perch_lab::guest::{Command, Guest, Setup, contents};
//! use perch_lab::qemu::Qemu;
//! use perch_lab::{Cpus, Store, Topology, kernel::Kernel};
//!
//! # fn main() -> perch_lab::Result<()> {
//! let machine = perch_machine::resolve("kunpeng920").unwrap();
//! let topology = Topology::new(&machine, Cpus::AtMost(16))?;
//!
//! let store = Store::open()?;
//! let kernel = Kernel::find(&store, "7.2", topology.arch())?;
//! let qemu = Qemu::find(&store, topology.need())?;
//! let files = contents(&store, &kernel, "/usr/bin/perch".as_ref(), ["hackbench"])?;
//!
//! let guest = Guest::boot(&Setup::new(kernel, qemu, topology, files))?;
//! let output = guest.run(&Command::new(["nproc"]))?;
//! assert_eq!(output.text(), "16\n");
//!
//! let mut hog = guest.start(&Command::shell("echo on; while :; do :; done"))?;
//! hog.wait_for("on", std::time::Duration::from_secs(10))?;
//! assert!(guest.trouble()?.is_empty());
//! // Dropping the process kills it, dropping the guest ends QEMU.
//! # Ok(())
//! # }
//! ```

mod command;
mod describe;
mod files;
mod hypervisor;
mod link;
mod log;
mod monitor;
mod process;
mod setup;
mod shared;
mod sibling;
mod snapshot;

use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::agent::frame::{CHUNK, Event, Request};
use crate::coherence::{Counted, Plugin, Symbols};
use crate::console::Console;
use crate::error::{Error, Result};
use crate::topology::Memory;

pub use command::{Command, Output, Status};
pub use files::{INIT, contents};
use hypervisor::{Hypervisor, Inherited, Origin};
use link::{JOB, Link, Silence};
pub use log::trouble;
use monitor::Monitor;
pub use process::{Process, Signal};
pub use setup::{Accelerator, Clock, Setup};
use shared::Shared;
pub use sibling::perch_for;
pub use snapshot::Snapshot;

/// The time that a guest may take to power off.
const END: Duration = Duration::from_secs(600);

/// The time that a transfer of a file may take.
const TRANSFER: Duration = Duration::from_secs(1800);

/// A guest that has come up. The guest is killed when the value is dropped and when this process
/// ends in any way.
pub struct Guest {
    shared: Arc<Shared>,
    job: Mutex<Option<(Receiver<Event>, Command)>>,
    boot_time: Duration,
    plugin: Option<Plugin>,
    /// The plugin counts.
    counts: bool,
}

impl Guest {
    /// Boots a guest and waits until its agent listens.
    ///
    /// # Errors
    /// [`Error::Input`] when the parts do not fit each other, [`Error::Spawn`] when QEMU cannot be
    /// run, [`Error::Guest`] with the console's last lines when the guest does not come up.
    pub fn boot(setup: &Setup) -> Result<Guest> {
        setup.check()?;
        let began = Instant::now();
        let (origin, mib) = Origin::boot(setup)?;
        let memory = Memory::own(mib);
        let guest = Guest::launch(setup, &origin, &memory)?;
        guest.come_up(setup.boot_timeout, began)
    }

    /// Starts QEMU.
    fn launch(setup: &Setup, origin: &Origin, memory: &Memory) -> Result<Guest> {
        let console = Console::new(setup.console.as_deref())?;
        let sockets = |source| Error::Spawn {
            program: "the agent's port and the monitor's".to_string(),
            remedy: "look at the limits of this user (ulimit -a)".to_string(),
            source,
        };
        let (here, there) = UnixStream::pair().map_err(sockets)?;
        let link = Link::new(here).map_err(sockets)?;
        let (here, monitor) = UnixStream::pair().map_err(sockets)?;
        let asks = Monitor::new(here).map_err(sockets)?;
        let job = setup.job.clone().map(|job| (link.listen_to(JOB), job));
        let plugin = setup.duties().map(|_| Plugin::new()).transpose()?;
        let inherited = Inherited {
            console: console.file(),
            origin,
            plugin: plugin.as_ref(),
            agent: there,
            monitor,
        };
        let hypervisor = Hypervisor::start(setup, memory, inherited)?;
        let shared = Shared { hypervisor, console, link, monitor: Mutex::new(asks) };
        Ok(Guest {
            shared: Arc::new(shared),
            job: Mutex::new(job),
            plugin,
            counts: setup.coherence,
            boot_time: Duration::ZERO,
        })
    }

    /// Waits until its agent listens.
    fn come_up(mut self, limit: Duration, began: Instant) -> Result<Guest> {
        let shared = &self.shared;
        match shared.link.await_ready(limit) {
            Ok(()) => {
                self.boot_time = began.elapsed();
                Ok(self)
            }
            Err(Silence::Gone) => {
                let status = shared.hypervisor.wait(Duration::from_secs(2));
                let how = status.map_or("its agent failed".to_string(), |status| {
                    format!("QEMU ended with {status}")
                });
                Err(shared.error(format!("the guest did not come up: {how}")))
            }
            Err(Silence::Late) => {
                Err(shared.error(format!("the guest did not come up within {} s", limit.as_secs())))
            }
        }
    }

    /// The host's time that the guest took to come up.
    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// Has QEMU carry out a command of its monitor.
    fn monitor(&self, command: &str, arguments: &str) -> Result<String> {
        let monitor = self.shared.monitor.lock();
        let mut monitor = monitor.unwrap_or_else(PoisonError::into_inner);
        let done = monitor.execute(command, arguments);
        done.map_err(|error| self.shared.error(format!("QEMU does not do as asked: {error}")))
    }

    /// Stops all CPUs of the guest, and with them its clocks.
    ///
    /// # Errors
    /// [`Error::Guest`] when the guest is gone.
    pub fn pause(&self) -> Result<()> {
        self.monitor("stop", "{}").map(drop)
    }

    /// Lets the CPUs of a paused guest go on, for which no time has passed.
    ///
    /// # Errors
    /// As [`Guest::pause`].
    pub fn resume(&self) -> Result<()> {
        self.monitor("cont", "{}").map(drop)
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// [`Error::Command`] when there is no such program or it takes longer than its timeout (and
    /// is killed); [`Error::Guest`] when the guest is gone. Another exit code than 0 is no error.
    pub fn run(&self, command: &Command) -> Result<Output> {
        self.start(command)?.wait()
    }

    /// Starts a command and returns while it runs.
    ///
    /// # Errors
    /// As [`Guest::run`].
    pub fn start(&self, command: &Command) -> Result<Process> {
        Process::start(&self.shared, command)
    }

    /// The job of the setup, which runs since the guest came up; `None` without one, or when a
    /// caller took it before. The agent sends all of its output at its end.
    pub fn job(&self) -> Option<Process> {
        let mut job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        let (events, command) = job.take()?;
        Some(Process::adopt(&self.shared, JOB, events, &command))
    }

    /// Writes a file in the guest, with these permission bits.
    ///
    /// # Errors
    /// [`Error::Command`] when it cannot be written, [`Error::Guest`] when the guest is gone.
    pub fn put(&self, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        let pieces = bytes.chunks(CHUNK).map(<[u8]>::to_vec);
        // An empty file is one empty piece.
        let first = std::iter::once(Vec::new()).take(usize::from(bytes.is_empty()));
        for (index, bytes) in first.chain(pieces).enumerate() {
            let path = path.to_string();
            self.transfer(|id| Request::Put { id, path, mode, append: index > 0, bytes })?;
        }
        Ok(())
    }

    /// The bytes of a file in the guest.
    ///
    /// # Errors
    /// [`Error::Command`] when it cannot be read, [`Error::Guest`] when the guest is gone.
    pub fn get(&self, path: &str) -> Result<Vec<u8>> {
        self.transfer(|id| Request::Get(id, path.to_string()))
    }

    fn transfer(&self, request: impl FnOnce(u32) -> Request) -> Result<Vec<u8>> {
        let (id, events) = self.shared.link.listen();
        let deadline = Some(Instant::now() + TRANSFER);
        let mut bytes = Vec::new();
        let sent = self.shared.ask(&request(id));
        let done = sent.and_then(|()| {
            loop {
                match link::next(&events, deadline) {
                    Ok(Event::File(_, piece)) => bytes.extend(piece),
                    Ok(Event::Failed(_, words)) => {
                        return Err(Error::Command(format!("in the guest: {words}")));
                    }
                    Ok(_) => return Ok(()),
                    Err(Silence::Gone) => return Err(self.shared.gone()),
                    Err(Silence::Late) => {
                        let words =
                            format!("a file did not travel within {} s", TRANSFER.as_secs());
                        return Err(self.shared.error(words));
                    }
                }
            }
        });
        self.shared.link.forget(id);
        done.map(|()| bytes)
    }

    /// The cache lines that moved in the stretches between marks that have ended, and the names of
    /// the kernel's addresses; `None` if the setup did not ask for counting.
    ///
    /// # Errors
    /// As [`Guest::get`], and [`Error::Input`] when the plugin's file is not as it should be.
    pub fn counted(&self) -> Result<Option<(Counted, Symbols)>> {
        let Some(plugin) = self.plugin.as_ref().filter(|_| self.counts) else {
            return Ok(None);
        };
        let symbols = self.get("/proc/kallsyms")?;
        let symbols = Symbols::parse(&String::from_utf8_lossy(&symbols));
        Ok(Some((plugin.counted()?, symbols)))
    }

    /// The last `count` lines of the console: the kernel's log until the guest is up, then only
    /// problems.
    pub fn console_tail(&self, count: usize) -> String {
        self.shared.console.tail(count)
    }

    /// The kernel's log from its beginning.
    ///
    /// # Errors
    /// As [`Guest::run`].
    pub fn log(&self) -> Result<String> {
        Ok(self.run(&Command::new(["/bin/busybox", "dmesg"]))?.text())
    }

    /// The lines of the kernel's log that tell of trouble, see [`trouble`].
    ///
    /// # Errors
    /// As [`Guest::run`].
    pub fn trouble(&self) -> Result<Vec<String>> {
        let log = self.log()?;
        Ok(trouble(&log).into_iter().map(str::to_string).collect())
    }

    /// Has the guest power off, and returns its console.
    ///
    /// # Errors
    /// [`Error::Guest`] when it does not.
    pub fn power_off(self) -> Result<String> {
        self.shared.ask(&Request::End)?;
        match self.shared.hypervisor.wait(END) {
            Some(_) => Ok(self.shared.console.text()),
            None => {
                let words = format!("the guest did not power off within {} s", END.as_secs());
                Err(self.shared.error(words))
            }
        }
    }
}
