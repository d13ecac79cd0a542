// SPDX-License-Identifier: GPL-2.0-or-later
//! The QEMU of a guest: its arguments, and a process that does not outlive this one.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::link::PORT;
use super::setup::{Accelerator, Setup};
use super::{describe, files};
use crate::arch::Arch;
use crate::coherence::Plugin;
use crate::console::{scratch, written};
use crate::error::{Error, Result};
use crate::topology::Memory;

/// Words for every guest's kernel: its log goes to the console, it ends instead of rebooting, and
/// it skips work that takes long or misleads in an emulated machine: mitigations, tests of ciphers, and
/// on x86 the measuring of delay loops and the checks of a timer and a clock that are perfect there.
const WORDS: &str = "panic=-1 mitigations=off nokaslr cryptomgr.notests sched_verbose";
const X86_TCG_WORDS: &str = "tsc=reliable no_timer_check lpj=8000000 cpuhp.parallel=0";

/// Words that take randomness out of the kernel of a guest that counts instructions.
const COUNTING_WORDS: &str = "norandmaps random.trust_cpu=off random.trust_bootloader=off";

/// A running QEMU. Dropping the value kills it.
pub(super) struct Hypervisor {
    process: OwnedFd,
    ended: Ended,
    said: File,
}

/// The state in which a guest's CPUs begin.
pub(super) enum Origin {
    /// The state of a machine that was just switched on, which boots.
    Boot {
        initramfs: File,
        /// The tree that QEMU is to use in place of its own.
        device_tree: Option<File>,
    },
    /// A state that QEMU gets over its monitor.
    Snapshot,
}

impl Origin {
    /// Makes the files that this guest boots from, and tells the MiB of memory that it needs for them.
    ///
    /// # Errors
    /// When its archive or its device tree cannot be made.
    pub fn boot(setup: &Setup) -> Result<(Origin, u64)> {
        let initramfs = files::archive(setup)?;
        let mib = setup.memory_mib(&initramfs);
        let device_tree = describe::device_tree(setup, mib)?;
        let origin = Origin::Boot { initramfs, device_tree };
        Ok((origin, mib))
    }
}

/// The open files and sockets that QEMU inherits beside its standard streams.
pub(super) struct Inherited<'a> {
    pub console: &'a File,
    pub origin: &'a Origin,
    /// The plugin that follows cache lines.
    pub plugin: Option<&'a Plugin>,
    pub agent: UnixStream,
    /// The socket on which QEMU takes commands.
    pub monitor: UnixStream,
}

impl Hypervisor {
    /// Starts QEMU.
    pub fn start(setup: &Setup, memory: &Memory, inherited: Inherited) -> Result<Hypervisor> {
        let said = scratch("perch-qemu")?;
        let errors = said.try_clone().map_err(spawn_error)?;
        let mut fds = vec![
            inherited.console.as_raw_fd(),
            inherited.agent.as_raw_fd(),
            inherited.monitor.as_raw_fd(),
        ];
        let plugin = inherited.plugin.into_iter().flat_map(Plugin::inherited);
        fds.extend(plugin.map(AsRawFd::as_raw_fd));
        if let Origin::Boot { initramfs, device_tree } = inherited.origin {
            fds.push(initramfs.as_raw_fd());
            fds.extend(device_tree.as_ref().map(AsRawFd::as_raw_fd));
        }
        let mut command = setup.qemu.command();
        command
            .args(arguments(setup, memory, &inherited))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            // Ctrl-C in a terminal signals perch alone; QEMU ends when perch does.
            .process_group(0);
        die_with_parent(&mut command, fds);

        let ended = Arc::new((Mutex::new(None), Condvar::new()));
        let process = spawn(command, Arc::clone(&ended))?;
        let process = process.recv().unwrap_or_else(|gone| Err(io::Error::other(gone)));
        Ok(Hypervisor { process: process.map_err(spawn_error)?, ended, said })
    }

    /// Waits for QEMU's end; `None` when it did not come within `limit`.
    pub fn wait(&self, limit: Duration) -> Option<String> {
        let (status, signal) = &*self.ended;
        let deadline = Instant::now() + limit;
        let mut status = status.lock().unwrap_or_else(PoisonError::into_inner);
        while status.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = signal.wait_timeout(status, left);
            status = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(match status.as_ref()? {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        })
    }

    /// The text that QEMU wrote to its standard error.
    pub fn said(&self) -> String {
        written(&self.said).trim().to_string()
    }

    /// Kills QEMU at once.
    pub fn kill(&self) {
        // The call fails when QEMU has ended already, which is the end that is wanted.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }
}

impl Drop for Hypervisor {
    fn drop(&mut self) {
        self.kill();
        // The caller may look for QEMU's process after this, and must not find it.
        self.wait(Duration::from_secs(10));
    }
}

type Ended = Arc<(Mutex<Option<io::Result<ExitStatus>>>, Condvar)>;

/// Starts `command` from a thread that lives as long as it: the kernel kills a child whose parent
/// thread ends, and the thread that wants a guest may well end before the guest.
fn spawn(mut command: Command, ended: Ended) -> Result<Receiver<io::Result<OwnedFd>>> {
    let (started, process) = channel();
    let attend = move || {
        let child = command.spawn().and_then(|child| {
            let fd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
            Ok((child, fd))
        });
        let mut child = match child {
            Ok((child, fd)) => {
                let _ = started.send(Ok(fd));
                child
            }
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        let status = child.wait();
        *ended.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
        ended.1.notify_all();
    };
    let thread = thread::Builder::new().name("perch-qemu".to_string());
    thread.spawn(attend).map_err(spawn_error)?;
    Ok(process)
}

fn spawn_error(source: io::Error) -> Error {
    Error::Spawn {
        program: "QEMU".to_string(),
        remedy: "it was found, so look at the limits of this user (ulimit -a)".to_string(),
        source,
    }
}

/// Has the kernel kill `command` when this process ends in any way, and gives `command` the
/// descriptors `fds`.
fn die_with_parent(command: &mut Command, fds: Vec<RawFd>) {
    let parent = rustix::process::getpid();
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // This process may have ended just before that call.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        for &fd in &fds {
            // SAFETY: the caller of this function keeps the descriptors open until QEMU runs.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated or locked.
    unsafe {
        command.pre_exec(prepare);
    }
}

fn arguments(setup: &Setup, memory: &Memory, inherited: &Inherited) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| word.to_string()));
    let arch = setup.topology.arch();
    let terminal = match arch {
        Arch::X86_64 => "ttyS0",
        Arch::Aarch64 => "ttyAMA0",
    };
    let mut append = format!("console={terminal} {WORDS}");
    match setup.accelerator {
        Accelerator::Kvm => add(&["-accel", "kvm"]),
        Accelerator::Tcg => {
            // With several threads, QEMU corrupts kernel code that is patched while it runs.
            add(&["-accel", "tcg,thread=single"]);
            if arch == Arch::X86_64 {
                append = format!("{append} {X86_TCG_WORDS}");
            }
        }
    }
    if let Some(icount) = setup.clock.icount() {
        add(&["-icount", icount, "-seed", "1"]);
        add(&["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
        append = format!("{append} {COUNTING_WORDS}");
    }
    if let Some(words) = &setup.kernel_words {
        append = format!("{append} {words}");
    }
    add(&["-nodefaults", "-display", "none", "-no-reboot", "-net", "none"]);

    // QEMU gets files by descriptor, so that no path needs quoting and no file is left when perch
    // is killed.
    let path = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
    match inherited.origin {
        Origin::Boot { initramfs, device_tree } => {
            let image = setup.kernel.image.to_string_lossy();
            add(&["-kernel", &image, "-append", &append]);
            add(&["-initrd", &path(initramfs)]);
            if let Some(tree) = device_tree {
                add(&["-dtb", &path(tree)]);
            }
        }
        Origin::Snapshot => add(&["-incoming", "defer"]),
    }
    let console = path(inherited.console);
    add(&["-chardev", &format!("file,id=console,path={console}")]);
    add(&["-serial", "chardev:console"]);
    // The CPU that kicks the device handles the kick at once; with ioeventfd a thread would do so
    // at some later time.
    add(&["-device", "virtio-serial-pci,ioeventfd=off"]);
    let agent = inherited.agent.as_raw_fd();
    add(&["-chardev", &format!("socket,id=agent,fd={agent}")]);
    add(&["-device", &format!("virtserialport,chardev=agent,name={PORT}")]);
    let monitor = inherited.monitor.as_raw_fd();
    add(&["-chardev", &format!("socket,id=monitor,fd={monitor}")]);
    add(&["-mon", "chardev=monitor,mode=control"]);
    if let Some((plugin, duties)) = inherited.plugin.zip(setup.duties()) {
        arguments.extend(plugin.arguments(setup.topology.machine(), memory.mib, duties));
    }
    arguments.extend(setup.topology.arguments(memory, &setup.cpu_features()));
    arguments
}
