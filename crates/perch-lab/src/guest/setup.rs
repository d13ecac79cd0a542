// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts that a guest is made of, and whether these parts fit each other.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use super::command::Command;
use crate::arch::Arch;
use crate::coherence::{self, Duties};
use crate::error::{Error, Result};
use crate::initramfs::Contents;
use crate::kernel::Kernel;
use crate::qemu::{Qemu, WITH_L2_CLUSTERS};
use crate::topology::Topology;

/// The ways in which QEMU executes the guest's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accelerator {
    /// By translation, on one thread of the host: works everywhere.
    #[default]
    Tcg,
    /// By the host's processor, which needs access to /dev/kvm. perch's own tests do not try this
    /// one.
    Kvm,
}

/// The unit of a guest's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The host's time.
    #[default]
    Host,
    /// Instructions of all CPUs together, 4 ns each; time in which no CPU has anything to do passes
    /// at once. CPUs keep pace with each other and with the clock however busy the host is. Requests
    /// come whenever the host sends them, so two runs are alike and not equal.
    Instructions,
    /// Instructions, 1 ns each, with nothing random: the job runs the same to the bit every time.
    Deterministic,
}

impl Clock {
    /// Returns whether the clocks count instructions.
    pub fn counts(self) -> bool {
        self != Clock::Host
    }

    /// Returns whether its guests have perch's plugin, whatever else it does for them.
    pub(crate) fn has_plugin(self) -> bool {
        self == Clock::Deterministic && coherence::is_here()
    }

    /// The value of QEMU's option -icount. By its shift an instruction takes 2^shift ns. A
    /// larger shift leaves a second fewer instructions, of which eight CPUs need most for their ticks; a
    /// smaller one makes a task that computes for a second cost the host more. We tried some of
    /// perch's tests with 1 to 4, and 2 is the best compromise.
    pub(super) fn icount(self) -> Option<&'static str> {
        match self {
            Clock::Host => None,
            Clock::Instructions => Some("shift=2,sleep=off"),
            Clock::Deterministic => Some("shift=0,sleep=off"),
        }
    }
}

/// The parts of a guest.
pub struct Setup {
    /// The kernel that the guest boots.
    pub kernel: Kernel,
    /// The QEMU that runs the guest.
    pub qemu: Qemu,
    /// The machine that it sees.
    pub topology: Topology,
    /// Its files, see [`super::contents`].
    pub contents: Contents,
    /// The way in which QEMU executes it.
    pub accelerator: Accelerator,
    /// The unit of its clocks.
    pub clock: Clock,
    /// The command that the guest runs by itself before it listens, and that [`super::Guest::job`]
    /// returns. In a deterministic guest only this command is deterministic, since requests come
    /// whenever the host sends them.
    pub job: Option<Command>,
    /// True when the kernel is to measure the time of BPF programs, which takes some time itself.
    pub bpf_stats: bool,
    /// More words for the kernel's command line.
    pub kernel_words: Option<String>,
    /// Memory in MiB; `None`: enough for the CPUs and the files.
    pub memory_mib: Option<u64>,
    /// Count the cache lines that move between CPUs, from mark to mark ([`crate::coherence`]); of a
    /// deterministic guest only. [`super::Guest::counted`] has the counts.
    pub coherence: bool,
    /// From the first mark on the guest's clocks show the time that the machine's costs give; of a
    /// deterministic guest only.
    pub timed: bool,
    /// The file that the console goes to; `None`: the console is kept in memory.
    pub console: Option<PathBuf>,
    /// The host's time that may pass until the guest listens.
    pub boot_timeout: Duration,
}

impl Setup {
    /// An ordinary guest, whose fields the caller may change.
    pub fn new(kernel: Kernel, qemu: Qemu, topology: Topology, contents: Contents) -> Setup {
        // Without KVM 8 CPUs take 3 s, 64 take 10 s, 128 take 35 s and 240 take 250 s on an idle
        // host; one with six others at work on each of its CPUs takes 70 s for 8, 130 for 16.
        let boot_timeout = Duration::from_secs(240 + 6 * topology.cpus() as u64);
        Setup {
            kernel,
            qemu,
            topology,
            contents,
            accelerator: Accelerator::Tcg,
            clock: Clock::Host,
            job: None,
            bpf_stats: false,
            kernel_words: None,
            memory_mib: None,
            coherence: false,
            timed: false,
            console: None,
            boot_timeout,
        }
    }

    /// The guest's memory, MiB. The archive is in memory twice, packed and unpacked, and the kernel
    /// lets the unpacked files take at most half of the memory; a CPU's own data and stacks take
    /// less than 8 MiB.
    pub(super) fn memory_mib(&self, archive: &File) -> u64 {
        let files = archive.metadata().map_or(0, |metadata| metadata.len()) >> 20;
        let enough = 320 + 8 * self.topology.cpus() as u64 + 5 * files;
        let nodes = self.topology.machine().nodes() as u64;
        self.memory_mib.unwrap_or(enough).max(64 * nodes)
    }

    /// The settings of an x86 CPU.
    pub(super) fn cpu_features(&self) -> Vec<&'static str> {
        let mut features = Vec::new();
        if self.clock.counts() {
            features.extend(["-rdrand", "-rdseed"]);
        }
        // The kernel and libc clear and copy memory byte by byte if the CPU claims to do that fast.
        // QEMU does not: with -icount it leaves its translated code after each byte, which were half
        // of its exits during a boot. Deterministic guests keep these features, since our documents
        // quote their counts.
        if self.accelerator == Accelerator::Tcg && self.clock != Clock::Deterministic {
            features.extend(["-erms", "-fsrm"]);
            // We tried it from that version on; QEMU refuses a feature that it does not know.
            if self.qemu.version >= WITH_L2_CLUSTERS {
                features.push("-fsrs");
            }
        }
        features
    }

    /// The duties of QEMU's plugin; `None` without it.
    pub(super) fn duties(&self) -> Option<Duties> {
        let duties = Duties { count: self.coherence, time: self.timed };
        (duties.follows() || self.clock.has_plugin()).then_some(duties)
    }

    /// Refuses parts that do not fit each other, before QEMU is started. [`super::Guest::boot`] does
    /// so, too; who boots many guests can look at all of them first.
    ///
    /// # Errors
    /// [`Error::Input`] with the part that is at fault.
    pub fn check(&self) -> Result<()> {
        let arch = self.topology.arch();
        if self.kernel.arch != arch {
            return Err(Error::Input(format!(
                "kernel {} is for {} and the guest is {arch}",
                self.kernel.release, self.kernel.arch
            )));
        }
        if self.accelerator == Accelerator::Kvm && Arch::host() != Some(arch) {
            return Err(Error::Input(format!(
                "KVM runs guests of the host's architecture, and this one is {arch}"
            )));
        }
        if let Some((option, what)) = self.kernel.lacking().first() {
            return Err(Error::Input(format!(
                "kernel {} cannot boot in a guest: {option} is not built in, and {what} needs it",
                self.kernel.release
            )));
        }
        if self.topology.arch() == Arch::X86_64
            && self.topology.has_clusters()
            && self.qemu.version < WITH_L2_CLUSTERS
        {
            return Err(Error::Input(format!(
                "clusters that share an L2 need QEMU 10.0 or newer; {} is {:?}",
                self.qemu.program.display(),
                self.qemu.version
            )));
        }
        if let Some(duties) = self.duties() {
            if duties.follows() {
                self.check_lines()?;
            }
            coherence::check(&self.qemu)?;
        }
        if self.clock.counts() && self.accelerator == Accelerator::Kvm {
            return Err(Error::Input(
                "a guest that counts its instructions cannot run on KVM, which does not count them"
                    .to_string(),
            ));
        }
        Ok(())
    }

    /// Refuses a guest whose lines can't be counted.
    fn check_lines(&self) -> Result<()> {
        if self.topology.arch() != Arch::X86_64 {
            return Err(Error::Input(
                "lines are counted and timed in x86-64 guests only; leave --arch out, or take a machine \
                 without [[capacity]]"
                    .to_string(),
            ));
        }
        if self.clock != Clock::Deterministic {
            return Err(Error::Input(
                "lines are counted and timed in deterministic guests only".to_string(),
            ));
        }
        coherence::check_lines(self.topology.machine())
    }
}
