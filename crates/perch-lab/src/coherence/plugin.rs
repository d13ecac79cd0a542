// SPDX-License-Identifier: GPL-2.0-or-later
//! The plugin as QEMU is given it: by descriptors, so that no file is left when perch is killed.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use perch_machine::Machine;

use super::arguments::{costs, shape};
use super::export::missing;
use super::record::Counted;
use crate::console::scratch;
use crate::error::{Error, Result};
use crate::qemu::Qemu;

/// The compiled plugin; empty in a perch for another architecture.
const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin.so"));

/// The most CPUs whose copies of a line the plugin's words hold (`plugin/machine.h`).
const MAX_CPUS: usize = 56;

/// The functions of QEMU beside the plugin interface that the plugin calls.
const NEEDED: [&str; 16] = [
    "qemu_plugin_register_vcpu_tb_exec_cond_cb",
    "qemu_get_cpu",
    "tb_flush",
    "tcg_cpu_init_cflags",
    "current_cpu",
    "async_run_on_cpu",
    "cpu_exit",
    "cpus_get_accel",
    "rr_kick_vcpu_thread",
    "qemu_notify_event",
    "bql_lock_impl",
    "tcg_handle_interrupt",
    "icount_handle_interrupt",
    "icount_get",
    "icount_get_raw",
    "qemu_clock_deadline_ns_all",
];

/// The duties of the plugin in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duties {
    /// It counts the lines that move between marks.
    pub count: bool,
    /// Its costs make the time that the guest's clocks show.
    pub time: bool,
}

impl Duties {
    /// Returns whether it follows the cache lines. Without duties it only keeps the host's speed from
    /// the guest's clock.
    pub fn follows(self) -> bool {
        self.count || self.time
    }
}

pub(crate) fn is_here() -> bool {
    !PLUGIN.is_empty()
}

/// Returns an error if the machine is too large for lines to be followed.
///
/// # Errors
/// [`Error::Input`] with the limit and what to do.
pub(crate) fn check_lines(machine: &Machine) -> Result<()> {
    if !is_here() {
        return Err(Error::Input(
            "lines are counted and timed by a perch for x86-64, and this one is not".to_string(),
        ));
    }
    if machine.cpus.len() > MAX_CPUS {
        return Err(Error::Input(format!(
            "lines are counted and timed in guests of at most {MAX_CPUS} CPUs, and this one has {}; \
             take fewer (--cpus)",
            machine.cpus.len()
        )));
    }
    Ok(())
}

/// Returns an error if `qemu` cannot load the plugin.
///
/// # Errors
/// [`Error::Input`] with what is missing and what to do.
pub(crate) fn check(qemu: &Qemu) -> Result<()> {
    match missing(&qemu.program, &NEEDED)?[..] {
        [] => Ok(()),
        ref names => Err(Error::Input(format!(
            "{} does not export {}, which a deterministic guest needs; Debian's QEMU 10.0 does (take it \
             off PATH, and perch fetches that one)",
            qemu.program.display(),
            names.join(", ")
        ))),
    }
}

/// The plugin of one guest, and the file that it writes to.
#[derive(Debug)]
pub(crate) struct Plugin {
    library: File,
    counts: File,
}

impl Plugin {
    /// The plugin, in memory.
    ///
    /// # Errors
    /// [`Error::File`] when there is no memory for it.
    pub fn new() -> Result<Plugin> {
        let mut library = scratch("perch-coherence.so")?;
        let written = library.write_all(PLUGIN);
        written.map_err(Error::file("write", Path::new("QEMU's plugin")))?;
        Ok(Plugin { library, counts: scratch("perch-counts")? })
    }

    /// The descriptors that QEMU has to inherit.
    pub fn inherited(&self) -> [&File; 2] {
        [&self.library, &self.counts]
    }

    /// QEMU's arguments for a guest that shows `machine` and has `memory_mib` MiB.
    pub fn arguments(&self, machine: &Machine, memory_mib: u64, duties: Duties) -> [String; 2] {
        let path = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut words = vec![path(&self.library)];
        if duties.follows() {
            words.extend(shape(machine, memory_mib));
        }
        if duties.count {
            words.push(format!("out={}", path(&self.counts)));
        }
        if duties.time {
            words.extend(costs(machine));
        }
        ["-plugin".to_string(), words.join(",")]
    }

    /// The counts of the slots that have ended.
    ///
    /// # Errors
    /// [`Error::File`] when the file cannot be read, [`Error::Input`] when it is not as the plugin
    /// writes it.
    pub fn counted(&self) -> Result<Counted> {
        let unread = Error::file("read", Path::new("the plugin's counts"));
        let length = self.counts.metadata().map_err(unread)?.len();
        let mut bytes = vec![0; length as usize];
        let read = self.counts.read_exact_at(&mut bytes, 0);
        read.map_err(Error::file("read", Path::new("the plugin's counts")))?;
        Counted::parse(&String::from_utf8_lossy(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_told_its_duties() {
        let machine = perch_machine::resolve("juno").unwrap();
        let plugin = Plugin::new().unwrap();
        let words = |count, time| plugin.arguments(&machine, 512, Duties { count, time });
        let [option, counts] = words(true, false);
        assert_eq!(option, "-plugin");
        assert!(counts.contains(",out=/proc/self/fd/") && !counts.contains(",transfer="));
        let [_, neither] = words(false, false);
        assert!(neither.starts_with("/proc/self/fd/") && !neither.contains(','));
        let [_, times] = words(false, true);
        assert!(!times.contains(",out=") && times.contains(",transfer="));
        assert_eq!(plugin.counted().unwrap(), Counted::default());
    }
}
