// SPDX-License-Identifier: GPL-2.0-or-later
//! What a workload says of virtual machines and of the network: where its tasks are, and what a
//! guest and the way to other computers are made of.

/// Where a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Site {
    /// On the machine that is simulated.
    #[default]
    Host,
    /// In a virtual machine on it, by its number in [`crate::Workload::guests`].
    Guest(u32),
    /// On another computer, which has a CPU for everybody: its work takes time and nothing else.
    Outside,
}

/// A virtual machine. Its vCPUs are the tasks of the workload whose program is
/// [`crate::Op::Vcpu`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestSpec {
    /// vCPUs, 1 to 256.
    pub vcpus: u32,
    /// Ticks of the guest's kernel a second on each vCPU, idle ones too, 1 to 10,000.
    pub hz: u32,
    /// From the guest into the host's kernel and back, with what is done there, nanoseconds.
    pub exit_ns: u64,
    /// Work of the guest's tick, nanoseconds.
    pub tick_ns: u64,
    /// What the thread that moves the guest's packets (vhost) does for each, nanoseconds.
    pub vhost_ns: u64,
    /// What the receiving side of the guest's network stack does for each, nanoseconds.
    pub receive_ns: u64,
    /// What its programs write to are pipes, which tell the reader's wake-up that the writer will sleep
    /// soon (`wake_up_interruptible_sync()`). Sockets do not in 2.6.18 (`sock_def_readable()`).
    pub pipes: bool,
}

impl Default for GuestSpec {
    /// KVM on a Nehalem of 2009, virtio-net with vhost, a guest without dynamic ticks.
    ///
    /// An exit and entry takes that processor 1009 cycles (Agesen and others, "Software Techniques
    /// for Avoiding Hardware Virtualization Exits", 2012, table 1, from memory), 0.35 us at 2.93
    /// GHz; what KVM does in between is a guess of twice that. The rest are guesses of an order
    /// of magnitude.
    fn default() -> GuestSpec {
        GuestSpec {
            vcpus: 1,
            hz: 1000,
            exit_ns: 1000,
            tick_ns: 1500,
            vhost_ns: 2500,
            receive_ns: 3000,
            pipes: false,
        }
    }
}

/// The network to the other computers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// From one computer's network card to the other's program, or back, nanoseconds.
    pub latency_ns: u64,
    /// What the interrupt of a packet takes from the CPU that it comes to, nanoseconds.
    pub interrupt_ns: u64,
    /// The card's queues: a connection's packets come to the CPU of this number, at most, that
    /// follows from its own number.
    pub queues: u32,
}

impl Default for Network {
    /// A switched 1 or 10 Gbit/s network of 2012: some 50 us there and back. The card has as many
    /// queues as an early multi-queue card had, four. Both are guesses.
    fn default() -> Network {
        Network {
            latency_ns: 20_000,
            interrupt_ns: 3000,
            queues: 4,
        }
    }
}
