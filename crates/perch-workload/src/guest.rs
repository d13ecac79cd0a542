// SPDX-License-Identifier: GPL-2.0-or-later
//! The computers of a workload: each task's place among them, the parts of a virtual machine, and
//! the network to the computers that are not simulated.

/// The computer that a task runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Site {
    /// The task runs on the machine that is simulated.
    #[default]
    Host,
    /// The task runs in the virtual machine of this number in [`crate::Workload::guests`].
    Guest(u32),
    /// The task runs on another computer, which has a CPU for each task: its work takes time and
    /// nothing else.
    Outside,
}

/// A virtual machine. The tasks whose program is [`crate::Op::Vcpu`] are its vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestSpec {
    /// Number of vCPUs, 1 to 256.
    pub vcpus: u32,
    /// Ticks a second of the guest's kernel on each vCPU, 1 to 10,000. An idle vCPU ticks too.
    pub hz: u32,
    /// Time from the guest into the host's kernel and back, the host kernel's work included,
    /// nanoseconds.
    pub exit_ns: u64,
    /// Work of a tick of the guest's kernel, nanoseconds.
    pub tick_ns: u64,
    /// Work of the host's thread that moves the guest's packets (vhost) for each packet,
    /// nanoseconds.
    pub vhost_ns: u64,
    /// Work of the receiving side of the guest's network stack for each packet, nanoseconds.
    pub receive_ns: u64,
    /// The guest's programs write to pipes. A pipe tells the reader's wake-up that the writer will
    /// sleep soon (`wake_up_interruptible_sync()`); a socket of 2.6.18 does not
    /// (`sock_def_readable()`).
    pub pipes: bool,
    /// The guest's kernel sends the interrupt for a woken task with the lock of the other vCPU's queue
    /// held (2.6.18), and nothing tells the host that a vCPU spins.
    pub spins: bool,
}

impl Default for GuestSpec {
    /// The values of KVM on a Nehalem of 2009, virtio-net with vhost, and a guest without dynamic
    /// ticks.
    ///
    /// An exit and entry takes that processor 1009 cycles (Agesen and others, "Software Techniques
    /// for Avoiding Hardware Virtualization Exits", 2012, table 1, from memory), 0.35 us at 2.93
    /// GHz; KVM's work in between is a guess of twice that. The other values are guesses of an
    /// order of magnitude.
    fn default() -> GuestSpec {
        GuestSpec {
            vcpus: 1,
            hz: 1000,
            exit_ns: 1000,
            tick_ns: 1500,
            vhost_ns: 2500,
            receive_ns: 3000,
            pipes: false,
            spins: true,
        }
    }
}

/// The network to the other computers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Time from one computer's network card to the other computer's program, or back,
    /// nanoseconds.
    pub latency_ns: u64,
    /// Time that the interrupt of a packet takes from the CPU that handles it, nanoseconds.
    pub interrupt_ns: u64,
    /// Queues of the card. A connection's number decides which queue its packets come to, and each
    /// queue interrupts one CPU, so this many CPUs at most handle packets.
    pub queues: u32,
}

impl Default for Network {
    /// The values of a switched network of 1 or 10 Gbit/s of 2012: a packet and its reply take some
    /// 50 us. The card has four queues, as an early multi-queue card had. Both are guesses.
    fn default() -> Network {
        Network { latency_ns: 20_000, interrupt_ns: 3000, queues: 4 }
    }
}
