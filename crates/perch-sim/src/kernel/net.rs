// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks on other computers, and how their messages come and go.
//!
//! A message from outside arrives as an interrupt of the network card on a CPU of the host. For a
//! task of the host the interrupt wakes it, as the card's driver would. For a guest it wakes vhost,
//! a thread of the host in the virtual machine's group (virtio-net of 2012), which moves the packet
//! and sends the guest's first vCPU an interrupt. The way out is the same backwards: the vCPU
//! leaves the guest to wake vhost unless that is at work already.

use super::guest::Job;
use super::mutex::Step;
use super::task::{Life, Phase, Place};
use super::wake::Waker;
use super::{Kernel, kind};
use crate::engine::Event;
use crate::guest::{Network, Site};
use crate::workload::{Op, Workload};

/// The network.
#[derive(Debug)]
pub struct Net {
    spec: Network,
    /// Who reads from a channel, by its number.
    readers: Vec<Site>,
}

impl Net {
    /// The network of a workload, if it has one.
    pub fn new(workload: &Workload) -> Option<Box<Net>> {
        let spec = workload.network?;
        let mut readers = vec![Site::Host; workload.channels];
        for task in &workload.tasks {
            for op in task.program.iter() {
                if let Op::Receive { channel } = op {
                    readers[*channel as usize] = task.site;
                }
            }
        }
        Some(Box::new(Net { spec, readers }))
    }
}

impl Kernel<'_> {
    /// Whether a channel is read on another computer.
    pub(super) fn is_outward(&self, channel: u32) -> bool {
        let net = self.net.as_ref();
        net.is_some_and(|net| net.readers[channel as usize] == Site::Outside)
    }

    fn send_packet(&mut self, channel: u32, lines: u32) {
        let latency_ns = self.net.as_ref().map_or(0, |net| net.spec.latency_ns);
        self.events.push(Event {
            at_ns: self.now + latency_ns.max(1),
            kind: kind::PACKET,
            key: channel,
            tag: lines,
        });
    }

    /// A task, which runs on `cpu`, sends a message to another computer. What the host's network
    /// stack takes is part of its program.
    pub(super) fn transmit(&mut self, cpu: usize, task: u32, channel: u32, lines: u32) {
        let Place::Guest(guest) = self.tasks[task as usize].place else {
            return self.send_packet(channel, lines);
        };
        let job = Job {
            inward: false,
            channel,
            lines,
        };
        let cost = self.give_vhost(cpu, guest, job, Waker::Task(task));
        self.charge_kernel(cpu, task, cost);
    }

    /// Gives vhost a packet, and wakes it if it sleeps. Returns what that costs on `cpu`.
    fn give_vhost(&mut self, cpu: usize, guest: u32, job: Job, waker: Waker) -> u64 {
        let g = &mut self.guests[guest as usize];
        g.jobs.push_back(job);
        let vhost = g.vhost.expect("a guest on a network has vhost");
        if self.tasks[vhost as usize].life != Life::Asleep {
            return 0;
        }
        // The waker on the host is the vCPU, not who runs on it.
        let (waker, exit_ns) = match job.inward {
            true => (waker, 0),
            false => {
                let vcpu = self.cpus[cpu].current.map_or(waker, Waker::Task);
                (vcpu, self.guests[guest as usize].spec.exit_ns)
            }
        };
        self.metrics.guest.overhead_ns += exit_ns;
        exit_ns + self.wake(vhost, cpu, waker, false)
    }

    /// A packet arrives at its reader's computer.
    pub(super) fn packet(&mut self, channel: u32, lines: u32) {
        let Some(net) = &self.net else {
            return;
        };
        let (reader, spec) = (net.readers[channel as usize], net.spec);
        if reader == Site::Outside {
            if let Some(receiver) = self.put_message(channel, lines, 0) {
                self.go_on_outside(receiver);
            }
            return;
        }
        let cpu = (channel % spec.queues) as usize % self.cpus.len();
        self.acting = cpu;
        let waker = self.cpus[cpu].current.map_or(Waker::Idle, Waker::Task);
        let mut cost = spec.interrupt_ns;
        match reader {
            Site::Guest(guest) => {
                let job = Job {
                    inward: true,
                    channel,
                    lines,
                };
                cost += self.give_vhost(cpu, guest, job, waker);
            }
            _ => {
                if let Some(receiver) = self.put_message(channel, lines, cpu) {
                    cost += self.wake(receiver, cpu, waker, true);
                }
            }
        }
        if let Some(task) = self.cpus[cpu].current {
            self.stop_segment(cpu);
            self.charge_kernel(cpu, task, cost);
            self.begin_segment(cpu);
        }
        self.resched_if_needed(cpu);
    }

    /// Puts a message into a channel; returns who waited for one.
    fn put_message(&mut self, channel: u32, lines: u32, cpu: usize) -> Option<u32> {
        let c = &mut self.channels[channel as usize];
        c.messages.push_back((lines, cpu as u32));
        c.sent += 1;
        c.waiting.pop_front()
    }

    /// vhost, which runs on `cpu`, goes on: it has moved a packet, begins with the next one, or
    /// sleeps.
    pub(super) fn vhost(&mut self, cpu: usize, task: u32, guest: u32) -> Step {
        let guest = guest as usize;
        if let Some(job) = self.guests[guest].moving.take() {
            self.tasks[task as usize].phase = Phase::Fresh;
            self.metrics.guest.packets += 1;
            if job.inward {
                self.hand_to_guest(guest, job.channel, job.lines);
                let cost = self.announce_packets(cpu, guest, Waker::Task(task));
                self.charge_kernel(cpu, task, cost);
            } else {
                self.send_packet(job.channel, job.lines);
            }
            return Step::Done;
        }
        if self.tasks[task as usize].debt_ns > 0 {
            return Step::Works;
        }
        let Some(job) = self.guests[guest].jobs.pop_front() else {
            self.block(cpu, task);
            return Step::Left;
        };
        self.guests[guest].moving = Some(job);
        let work_ns = self.guests[guest].spec.vhost_ns.max(1);
        self.tasks[task as usize].phase = Phase::Inside;
        self.tasks[task as usize].left_ns = work_ns;
        self.note_kernel(cpu, work_ns);
        Step::Works
    }

    /// A task on another computer goes on, until something there takes time or it waits.
    pub(super) fn go_on_outside(&mut self, task: u32) {
        loop {
            let t = &mut self.tasks[task as usize];
            t.life = Life::Asleep;
            match t.program[t.pc as usize] {
                Op::Run(time) | Op::Kernel(time) | Op::Sleep(time) => {
                    t.pc += 1;
                    let at_ns = self.now + time.sample(&mut t.random).max(1);
                    self.events.push(Event {
                        at_ns,
                        kind: kind::TIMER,
                        key: task,
                        tag: 0,
                    });
                    return;
                }
                Op::Send { channel, lines, .. } => {
                    t.pc += 1;
                    self.send_packet(channel, lines);
                }
                Op::Receive { channel } => {
                    let c = &mut self.channels[channel as usize];
                    if c.messages.pop_front().is_none() {
                        c.waiting.push_back(task);
                        return;
                    }
                    c.taken += 1;
                    self.tasks[task as usize].pc += 1;
                }
                Op::Count => {
                    t.pc += 1;
                    self.metrics.counted += 1;
                }
                Op::Jump(pc) => t.pc = pc,
                Op::Repeat { to, times } => {
                    t.rounds += 1;
                    if t.rounds < times {
                        t.pc = to;
                    } else {
                        t.rounds = 0;
                        t.pc += 1;
                    }
                }
                Op::Exit => {
                    t.life = Life::Dead;
                    return;
                }
                op => unreachable!("{op:?} on another computer"),
            }
        }
    }
}
