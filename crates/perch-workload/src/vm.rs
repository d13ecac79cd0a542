// SPDX-License-Identifier: GPL-2.0-or-later
//! A virtual machine with another workload inside, and groups of hogs around it.

use perch_engine::Dist;
use perch_machine::Machine;

use crate::keys::Keys;
use crate::words::INSIDE;
use crate::workload::Workload;
use crate::{
    Class, DEFAULT_SHARES, Demand, GroupSpec, GuestMisfit, GuestSpec, Op, SHARES, Site, Space,
    SpecError, TaskSpec,
};

/// Number of the virtual machine's group; the groups of the hogs follow.
const VM_GROUP: usize = 2;

/// Cache lines that a vCPU uses each time it leaves the guest: those of its control structure and
/// of KVM. A guess.
const VCPU_FOOTPRINT: u32 = 64;
/// Cache lines that vhost uses each time it wakes up. A guess.
const VHOST_FOOTPRINT: u32 = 96;

/// Builds a virtual machine with a workload inside, and the hogs around it.
pub(crate) fn vm(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let usual = GuestSpec::default();
    let spec = GuestSpec {
        vcpus: keys.number("vcpus", 8, 1, 256)?,
        hz: keys.number("guest_hz", usual.hz, 1, 10_000)?,
        exit_ns: keys.number("exit_ns", usual.exit_ns, 1, 1_000_000_000)?,
        tick_ns: keys.number("guest_tick_ns", usual.tick_ns, 0, 1_000_000_000)?,
        vhost_ns: keys.number("vhost_ns", usual.vhost_ns, 1, 1_000_000_000)?,
        receive_ns: keys.number("receive_ns", usual.receive_ns, 0, 1_000_000_000)?,
        pipes: false,
        spins: keys.number("spins", 1, 0, 1)? != 0,
    };
    let (groups, hogs) = hogs(keys)?;
    // Without `shares` no task is in a group, as without libvirt.
    let shares = keys.number("shares", 0, *SHARES.start(), *SHARES.end())?;
    let allowed = keys.cpus()?;
    let inside = keys.text(INSIDE).unwrap_or_else(|| "pipe".to_string());
    let counts = Demand {
        tasks: u64::from(groups * hogs + spec.vcpus),
        operations: u64::from(2 * groups * hogs),
        groups: if shares == 0 { 0 } else { u64::from(groups) + 3 },
        ..Demand::default()
    };
    keys.afford(&[("hogs", &format!("{groups}x{hogs}"))], counts)?;
    let vcpus = spec.vcpus as usize;
    let machine = Machine::regular("guest", 1, 1, 1, 0, vcpus, 1)?;
    let mut workload = Workload::parse_within(&inside, &machine, keys.budget)?;
    fits(&workload)?;
    for task in &mut workload.tasks {
        task.space = None;
        if task.site == Site::Host {
            task.site = Site::Guest(0);
        } else {
            // The affinity of a task on another computer means nothing; it names the host's CPUs.
            task.allowed = allowed.clone();
        }
    }
    workload.groups = match shares {
        0 => Vec::new(),
        shares => hierarchy(shares, groups),
    };
    let task = |program: Vec<Op>, footprint: u32, space, group| TaskSpec {
        space,
        group: (shares > 0).then_some(group),
        ..TaskSpec::new(program, &allowed, footprint, Some(Dist::Uniform(0, 1_000_000)))
    };
    workload.spaces = vec![Space::default()];
    for vcpu in 0..spec.vcpus {
        let program = vec![Op::Vcpu { guest: 0, vcpu }];
        workload.tasks.push(task(program, VCPU_FOOTPRINT, Some(0), VM_GROUP));
    }
    if workload.network.is_some() {
        let program = vec![Op::Vhost { guest: 0 }];
        workload.tasks.push(task(program, VHOST_FOOTPRINT, None, VM_GROUP));
    }
    for hog in 0..groups * hogs {
        workload.spaces.push(Space::default());
        let space = Some(workload.spaces.len() as u32 - 1);
        let program = vec![Op::Run(Dist::Const(1_000_000)), Op::Jump(0)];
        let group = VM_GROUP + 1 + (hog / hogs) as usize;
        workload.tasks.push(task(program, 16, space, group));
    }
    let pipes = inside.split(':').next() == Some("pipe");
    workload.guests = vec![GuestSpec { pipes, ..spec }];
    Ok(workload)
}

/// Groups as libvirt makes them: `/libvirt/qemu` contains a group for each virtual machine, and the
/// groups of the hogs are beside it. `shares` are the virtual machine's; all others have the
/// default.
fn hierarchy(shares: u32, hogs: u32) -> Vec<GroupSpec> {
    let group = |name: String, parent, shares| GroupSpec { name, parent, shares };
    let mut groups = vec![
        group("/libvirt".to_string(), None, DEFAULT_SHARES),
        group("/libvirt/qemu".to_string(), Some(0), DEFAULT_SHARES),
        group("/libvirt/qemu/VM".to_string(), Some(1), shares),
    ];
    groups.extend((0..hogs).map(|number| {
        let name = match ('a'..='z').nth(number as usize) {
            Some(letter) => format!("/libvirt/qemu/hog{letter}"),
            None => format!("/libvirt/qemu/hog{number}"),
        };
        group(name, Some(1), DEFAULT_SHARES)
    }));
    groups
}

/// Reads the number of groups of hogs and the number of hogs in each: `4x4`; none by default.
fn hogs(keys: &mut Keys<'_>) -> Result<(u32, u32), SpecError> {
    let Some(text) = keys.text("hogs") else {
        return Ok((0, 0));
    };
    let numbers = text.split_once('x');
    let numbers = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    numbers
        .filter(|&(groups, hogs): &(u32, u32)| groups <= 1024 && hogs <= 1024)
        .ok_or(SpecError::Hogs { value: text })
}

/// Refuses a workload that cannot run inside a guest.
fn fits(workload: &Workload) -> Result<(), SpecError> {
    let refuse = |why| Err(SpecError::InGuest { spec: workload.spec.clone(), why });
    if !workload.guests.is_empty() {
        return refuse(GuestMisfit::Guests);
    }
    if workload.spaces.iter().any(|s| *s != Space::default()) {
        return refuse(GuestMisfit::SharedSets);
    }
    for task in workload.tasks.iter().filter(|t| t.site == Site::Host) {
        if task.class != Class::Fair {
            return refuse(GuestMisfit::RealTime);
        }
        let moves = |op: &Op| matches!(op, Op::Bind { .. } | Op::Join { .. });
        if task.program.iter().any(moves) {
            return refuse(GuestMisfit::Moves);
        }
        let by_cpu = |op: &Op| matches!(op, Op::LockCpu | Op::UnlockCpu | Op::Spin(_));
        if task.program.iter().any(by_cpu) {
            return refuse(GuestMisfit::CpuLocks);
        }
    }
    Ok(())
}
