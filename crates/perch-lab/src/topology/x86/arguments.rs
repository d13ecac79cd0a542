// SPDX-License-Identifier: GPL-2.0-or-later
//! The grid in QEMU's words.

use std::collections::BTreeSet;

use perch_machine::Machine;

use super::super::memory::{self, Memory};
use super::{Grid, Seat};

impl Grid {
    /// `-machine`, `-cpu`, `-smp`, `-m` and `-numa` of the guest that its kernel will find to be
    /// `machine`, with this memory; `features` are more CPU flags, each with its sign. Where
    /// `shares_l2` is true, the cores of a cluster share an L2, by which the kernel knows clusters.
    pub fn arguments(
        &self,
        machine: &Machine,
        memory: &Memory,
        features: &[&str],
        shares_l2: bool,
    ) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |option: &str, value: String| {
            arguments.push(option.to_string());
            arguments.push(value);
        };
        add("-machine", board(shares_l2));
        // The kernel reads leaf 0x1f, the only one that tells modules and dies, on Intel's CPUs and
        // when the highest basic leaf lies beyond it.
        let mut cpu = "max,vendor=GenuineIntel,level=0x20".to_string();
        for feature in features {
            cpu = format!("{cpu},{feature}");
        }
        add("-cpu", cpu);
        add("-smp", self.smp());
        for seat in self.latecomers() {
            add("-device", self.device(seat));
        }
        if machine.nodes() > 1 {
            for home in self.homes(machine) {
                add("-numa", home);
            }
        }
        // Nodes come before the CPUs that are in them.
        [memory::arguments(machine, memory), arguments].concat()
    }

    fn smp(&self) -> String {
        let places = self.places();
        let mut smp = match self.is_regular() {
            true => format!("{places}"),
            // The first seat always has a CPU; the other CPUs are plugged in one by one.
            false => format!("1,maxcpus={places}"),
        };
        smp += &format!(",sockets={},dies={}", self.sockets, self.dies);
        // Older QEMUs do not know the word.
        if self.modules > 1 {
            smp += &format!(",modules={}", self.modules);
        }
        smp + &format!(",cores={},threads={}", self.cores, self.threads)
    }

    fn places(&self) -> usize {
        self.sockets * self.dies * self.modules * self.cores * self.threads
    }

    /// Returns whether every place of the grid has a CPU.
    fn is_regular(&self) -> bool {
        self.places() == self.seats.len()
    }

    /// The seats of the CPUs that have to be plugged in one by one.
    fn latecomers(&self) -> &[Seat] {
        if self.is_regular() { &[] } else { &self.seats[1..] }
    }

    fn device(&self, seat: &Seat) -> String {
        let mut device = format!("max-x86_64-cpu,socket-id={}", seat.socket);
        if self.dies > 1 {
            device += &format!(",die-id={}", seat.die);
        }
        if self.modules > 1 {
            device += &format!(",module-id={}", seat.module);
        }
        device + &format!(",core-id={},thread-id={}", seat.core, seat.thread)
    }

    /// The node of each die; dies without CPUs get one too, or QEMU complains about their seats.
    fn homes(&self, machine: &Machine) -> BTreeSet<String> {
        let mut homes = BTreeSet::new();
        for socket in 0..self.sockets {
            for die in 0..self.dies {
                let here = |seat: &Seat| seat.socket == socket && seat.die == die;
                let cpu = self.seats.iter().position(here);
                let node = cpu.map_or(0, |cpu| machine.cpus[cpu].node);
                let mut home = format!("cpu,node-id={node},socket-id={socket}");
                if self.dies > 1 {
                    home += &format!(",die-id={die}");
                }
                homes.insert(home);
            }
        }
        homes
    }
}

/// The board's argument, with the level that shares each cache.
fn board(shares_l2: bool) -> String {
    if shares_l2 {
        "q35,smp-cache.0.cache=l2,smp-cache.0.topology=module,\
                 smp-cache.1.cache=l3,smp-cache.1.topology=die"
            .to_string()
    } else {
        "q35".to_string()
    }
}
