// SPDX-License-Identifier: GPL-2.0-or-later
//! The network between this machine and other computers.
//!
//! A message from outside arrives as an interrupt of the network card on a CPU of the host. For a
//! task of the host the interrupt wakes it, as the card's driver would. For a guest it wakes vhost,
//! a thread of the host in the virtual machine's group (virtio-net of 2012), which moves the packet
//! and sends the guest's first vCPU an interrupt. A message to the outside goes the same way
//! backwards: the vCPU leaves the guest to wake vhost, unless vhost is at work already.

use perch_sched::{Sched, Waker};
use perch_workload::{Network, Op, Site, Workload};

use super::event;
use super::guest::{Guests, Job};
use super::place::Place;
use crate::id::{ChannelId, IdVec, TaskId};

/// The network.
#[derive(Debug)]
pub struct Net {
    spec: Network,
    /// The site of each channel's reader.
    readers: IdVec<ChannelId, Site>,
}

impl Net {
    /// The network of a workload, if it has one.
    pub fn new(workload: &Workload) -> Option<Box<Net>> {
        let spec = workload.network?;
        let mut readers: IdVec<ChannelId, Site> =
            (0..workload.channels).map(|_| Site::Host).collect();
        for task in &workload.tasks {
            for op in task.program.iter() {
                if let Op::Receive { channel } = op {
                    readers[ChannelId(*channel)] = task.site;
                }
            }
        }
        Some(Box::new(Net { spec, readers }))
    }

    /// The site of a channel's reader.
    pub fn reader(&self, channel: ChannelId) -> Site {
        self.readers[channel]
    }

    /// Returns whether the reader of a channel is on another computer.
    #[inline]
    pub fn is_outward(&self, channel: ChannelId) -> bool {
        self.reader(channel) == Site::Outside
    }

    /// The CPU of the host, of `nr_cpus`, on which the network card's interrupt for a channel
    /// arrives, and the interrupt's cost, nanoseconds.
    pub fn interrupt(&self, channel: ChannelId, nr_cpus: usize) -> (usize, u64) {
        let cpu = (channel.0 % self.spec.queues) as usize % nr_cpus;
        (cpu, self.spec.interrupt_ns)
    }

    /// Sends a packet, which arrives after the network's latency.
    pub fn send_packet(&self, sched: &mut Sched<'_>, channel: ChannelId, lines: u32) {
        let at_ns = sched.now_ns() + self.spec.latency_ns.max(1);
        sched.at(at_ns, event::PACKET, channel.0, lines);
    }

    /// A task, which runs on `cpu`, sends a message to another computer. The task's program has the
    /// time that the host's network stack takes.
    pub fn transmit(
        &self,
        sched: &mut Sched<'_>,
        guests: &mut Guests,
        cpu: usize,
        task: TaskId,
        (channel, lines): (ChannelId, u32),
    ) {
        let Place::Guest(guest) = guests.place(task) else {
            return self.send_packet(sched, channel, lines);
        };
        let job = Job { inward: false, channel, lines };
        let cost = guests.give_vhost(sched, cpu, guest, job, Waker::Task(task));
        sched.charge_kernel(cpu, task, cost);
    }
}
