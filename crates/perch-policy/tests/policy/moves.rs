// SPDX-License-Identifier: GPL-2.0-or-later
//! The answers of 7.2's cache-aware scheduling to a balancer, held against the text of
//! docs/mechanisms/cache.md#upstream in plain numbers.

use perch_machine::Machine;
use perch_policy::{Era, Host, Mode, Modes, Move, Policy, TaskState, Topology};
use proptest::prelude::*;

use crate::dice::Dice;

fn policy() -> Policy {
    let modes = Modes { cache: Mode::Upstream, ..Modes::default() };
    Policy::new(Era::V7_2, modes)
}

/// Two LLCs of `cores` cores with `threads` threads each.
fn host(cores: usize, threads: usize) -> Host {
    let machine = Machine::regular("two", 1, 1, 2, 0, cores, threads).expect("a machine");
    Host::new(Topology::new(&machine))
}

/// Utilisation and capacity of an LLC as the last balance noted them, both 0 before the first.
type Noted = (f64, f64);

/// The rule as the page has it.
fn rule(src: Noted, dst: Noted, util: f64, smt: bool, towards: bool) -> Move {
    let calm = |used: f64, capacity: f64| used < capacity * if smt { 0.5 } else { 0.75 };
    let (from, to) = ((src.0 - util).max(0.0), dst.0 + util);
    let (from_calm, to_calm) = (calm(from, src.1), calm(to, dst.1));
    if !from_calm && !to_calm {
        Move::Free
    } else if towards {
        let crowds = !to_calm && to * 10.0 > from * 12.0;
        if crowds { Move::Stay } else { Move::Go }
    } else if from_calm || from * 10.0 <= to * 12.0 {
        Move::Stay
    } else {
        Move::Free
    }
}

proptest! {
    #![proptest_config(crate::config())]

    /// An LLC is calm by what the last balance noted, of utilisation and of capacity alike,
    /// whatever its CPUs have left since; and one that no balance has looked at is not calm.
    #[test]
    fn upstream_moves_by_what_the_last_balance_noted(
        seed: u64,
        cores in 2..20usize,
        threads in 1..3usize,
    ) {
        let (mut dice, mut host) = (Dice::new(seed), host(cores, threads));
        let width = cores * threads;
        let own = host.only_process();
        let mut task = TaskState::new(1);
        task.set_process(Some(own));
        let mut noted = [(0.0, 0.0); 2];
        for step in 0..40 {
            (0..2 * width).for_each(|cpu| host.cpu_mut(cpu).capacity = dice.range(0, 1024));
            let llc = dice.below(2);
            if dice.chance(40) {
                let span = llc * width..(llc + 1) * width;
                let left: u32 = span.map(|cpu| host.cpu(cpu).capacity).sum();
                let util = dice.range(0, 1024 * width as u32);
                host.note_llc(llc, util, 0);
                noted[llc] = (f64::from(util), f64::from(left));
            }
            task.util = dice.range(0, 1024);
            let (src, dst) = (dice.below(2) * width, dice.below(2) * width);
            let pref = dice.below(2);
            host.prefer(own, Some(pref * width), &[pref]);
            let said = host.cache_move(&policy(), &task, src, dst);
            let (src, dst) = (src / width, dst / width);
            let expected = match src == dst {
                true => Move::Free,
                false => {
                    let util = f64::from(task.util);
                    rule(noted[src], noted[dst], util, threads > 1, pref == dst)
                }
            };
            assert_eq!(said, expected, "seed {seed}, step {step}: {src} to {dst}: {noted:?}");
            if src != dst && pref == dst {
                let draws = rule(noted[src], noted[dst], 0.0, threads > 1, true) == Move::Go;
                assert_eq!(host.llc_draws(src, dst), draws, "seed {seed}, step {step}: {noted:?}");
            }
        }
    }
}

/// Before the first pass the mechanism has no say, however idle the machine is; after it the task is
/// wanted in its LLC.
#[test]
fn upstream_waits_for_the_first_pass() {
    let mut host = host(8, 1);
    let own = host.only_process();
    host.prefer(own, Some(0), &[0]);
    let mut task = TaskState::new(1);
    task.set_process(Some(own));
    task.util = 100;
    let said = |host: &mut Host, src, dst| host.cache_move(&policy(), &task, src, dst);
    (0..16).for_each(|cpu| host.cpu_mut(cpu).capacity = 1024);
    assert_eq!(said(&mut host, 8, 0), Move::Free);
    assert_eq!(said(&mut host, 0, 8), Move::Free);
    assert!(!host.llc_draws(1, 0));
    (0..2).for_each(|llc| host.note_llc(llc, 100, 1));
    assert_eq!(said(&mut host, 8, 0), Move::Go);
    assert_eq!(said(&mut host, 0, 8), Move::Stay);
    assert!(host.llc_draws(1, 0));
    // Real-time tasks and interrupts leave 100 of each CPU: with the task, 700 of 800 are used.
    (0..16).for_each(|cpu| host.cpu_mut(cpu).capacity = 100);
    (0..2).for_each(|llc| host.note_llc(llc, 600, 1));
    assert_eq!(said(&mut host, 8, 0), Move::Stay);
}
