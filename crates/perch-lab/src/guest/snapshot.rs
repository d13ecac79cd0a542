// SPDX-License-Identifier: GPL-2.0-or-later
//! A booted guest's state, from which any number of guests go on: that takes a tenth of what
//! a boot takes.
//!
//! The memory of the guest that boots is in files that QEMU shares with this process; they stay as
//! they are when that guest has gone, and each guest that goes on maps them for itself, so that it
//! copies no more than what it writes. What remains, the state of CPUs and devices, is what QEMU's
//! migration writes when it leaves out shared memory (x-ignore-shared): less than a megabyte.
//! All files are in this process's memory: none is left, however it ends.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use super::hypervisor::Origin;
use super::setup::{Accelerator, Clock, Setup};
use super::{Guest, Result};
use crate::console::scratch;
use crate::error::Error;
use crate::topology::Memory;

/// How long QEMU may take to write a state or to read one. It takes a tenth of a second, on a host
/// that has time for it.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Without the memory, which both guests have.
const CAPABILITIES: &str =
    r#"{"capabilities": [{"capability": "x-ignore-shared", "state": true}]}"#;

/// A guest that had just come up, and what it was made of: the kernel, the QEMU, the machine and
/// the files stay what they were, so a change of any of them needs a snapshot of its own.
pub struct Snapshot {
    setup: Setup,
    mib: u64,
    memory: Vec<File>,
    state: File,
}

impl Snapshot {
    /// Boots a guest, keeps its state, and ends it.
    ///
    /// # Errors
    /// [`Error::Input`] when the guest is to be deterministic, has a job or a file for its console,
    /// or is not emulated; else as [`Guest::boot`].
    pub fn take(setup: Setup) -> Result<Snapshot> {
        setup.check()?;
        if let Some(why) = unfit(&setup) {
            let words = format!("{why} cannot go on from a snapshot; boot it");
            return Err(Error::Input(words));
        }
        let began = Instant::now();
        let (origin, mib) = Origin::boot(&setup)?;
        let machine = setup.topology.machine();
        let bytes = Memory::own(mib).node_mib(machine) << 20;
        let node = |_| {
            let file = scratch("perch-memory")?;
            let sized = file.set_len(bytes);
            sized.map_err(Error::file("make", Path::new("the guest's memory")))?;
            Ok(file)
        };
        let snapshot = Snapshot {
            mib,
            memory: (0..machine.nodes()).map(node).collect::<Result<_>>()?,
            state: scratch("perch-state")?,
            setup,
        };
        let setup = &snapshot.setup;
        let guest = Guest::launch(setup, &origin, &snapshot.memory(true))?;
        let guest = guest.come_up(setup.boot_timeout, began)?;
        guest.pause()?;
        snapshot.migrate(&guest, "migrate", "exec:cat >")?;
        Ok(snapshot)
    }

    /// The parts that its guests are made of.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// A guest that goes on from here. For it, no time has passed since; its console begins here,
    /// its kernel's log with the boot. The kernel's random numbers start from the same state in
    /// each of them: a test may have such a guest, nobody who needs secrets.
    ///
    /// # Errors
    /// As [`Guest::boot`].
    pub fn restore(&self) -> Result<Guest> {
        let began = Instant::now();
        let memory = self.memory(false);
        let mut guest = Guest::launch(&self.setup, &Origin::Snapshot, &memory)?;
        self.migrate(&guest, "migrate-incoming", "exec:cat")?;
        guest.resume()?;
        guest.boot_time = began.elapsed();
        Ok(guest)
    }

    /// By the number of this process: QEMU opens them anew.
    fn path(file: &File) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
    }

    fn memory(&self, shared: bool) -> Memory {
        Memory { mib: self.mib, files: self.memory.iter().map(Snapshot::path).collect(), shared }
    }

    /// Has QEMU write the state or read it, over a program, as QEMU before 8.2 knows no files.
    fn migrate(&self, guest: &Guest, command: &str, program: &str) -> Result<()> {
        guest.monitor("migrate-set-capabilities", CAPABILITIES)?;
        let file = Snapshot::path(&self.state);
        guest.monitor(command, &format!("{{\"uri\": \"{program} {file}\"}}"))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = guest.monitor("query-migrate", "{}")?;
            if answer.contains("\"status\": \"completed\"") {
                return Ok(());
            }
            if answer.contains("\"status\": \"failed\"") || Instant::now() > deadline {
                let words = format!("the guest's state did not pass: {}", answer.trim());
                return Err(guest.shared.error(words));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The kind of guest that this is, when it has to be booted.
fn unfit(setup: &Setup) -> Option<&'static str> {
    if setup.clock == Clock::Deterministic {
        // Its boot is part of what is the same each time.
        Some("a deterministic guest")
    } else if setup.job.is_some() {
        // The first of them would run it for all.
        Some("a guest with a job")
    } else if setup.console.is_some() {
        // They would write over one another.
        Some("a guest whose console is a file")
    } else if setup.accelerator == Accelerator::Kvm {
        // The state of a KVM guest was never tried.
        Some("a guest on KVM")
    } else {
        None
    }
}
