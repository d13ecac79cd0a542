// SPDX-License-Identifier: GPL-2.0-or-later
//! The properties of cache-aware wake-up (docs/testing.md#properties: P1, P3, P4, P8, P9, P18)
//! over random machines, and what a process prefers in cases that can be reckoned by hand.

use perch_machine::Machine;
use perch_policy::{
    CacheStep, Era, Host, Mode, Modes, Move, Policy, ProcessId, Reason, TaskState, Topology,
};
use proptest::prelude::*;

use crate::decision::{Decision, decide};
use crate::dice::Dice;
use crate::machines;

const EPOCH: u64 = 10_000_000;

fn cache(mode: Mode) -> Policy {
    let modes = Modes { cache: mode, ..Modes::default() };
    Policy::new(Era::V6_15, modes)
}

/// `llcs` last-level caches of `cores` cores with `threads` threads each, in one node.
fn host(llcs: usize, cores: usize, threads: usize) -> Host {
    let machine = Machine::regular("llcs", 1, 1, llcs, 0, cores, threads).expect("a machine");
    Host::new(Topology::new(&machine))
}

/// A process of so many threads, so many of which run at every look.
fn process(host: &mut Host, threads: u32, running: u32) -> ProcessId {
    let process = host.add_process();
    let (alive, on_cpu) = host.threads(process);
    (*alive, *on_cpu) = (threads, running);
    process
}

/// The LLCs that the process prefers after it has run `share` percent of each epoch on each CPU
/// named, for so many epochs from epoch `from` on.
fn run(
    host: &mut Host,
    policy: &Policy,
    process: ProcessId,
    from: u64,
    epochs: u64,
    cpus: &[(usize, u64)],
) -> Vec<usize> {
    for epoch in from..from + epochs {
        let now = (epoch + 1) * EPOCH;
        for &(cpu, share) in cpus {
            host.account(process, cpu, now, EPOCH * share / 100);
        }
        if host.due(policy, process, cpus[0].0, now) {
            host.scan(policy, process, cpus[0].0, now);
        }
    }
    host.preferred_llcs(policy, process)
}

fn at(d: &Decision, seed: u64) -> String {
    let (wake, home) = (d.before.wake, &d.before.home);
    format!(
        "seed {seed}, era {}, {}: {wake:?}, {home:?}: {:?}",
        d.policy.era(),
        d.policy.modes(),
        d.verdict
    )
}

proptest! {
    #![proptest_config(crate::config())]

    /// P1, P4, P18 and the rest of P8: what is chosen is allowed; a search and one retry examine no
    /// more than both LLCs' budgets; without a preference, or in mode upstream, nothing changes.
    #[test]
    fn p8_one_retry_and_no_effect_without_a_preference(seed: u64, max_cpus in 1..100usize) {
        let mut off = None;
        let modes = Mode::ALL.map(cache);
        decide(&machines::random(seed, max_cpus), seed, &modes, |d| {
            let (mode, at) = (d.policy.modes().cache, at(d, seed));
            let nobody = !d.before.allowed.contains(&true);
            assert!(nobody || d.before.allowed[d.verdict.cpu], "{at}");
            if mode == Mode::Off {
                off = Some((d.verdict, d.after.clone()));
            }
            let same = Some((d.verdict, d.after.clone())) == off;
            let pref = d.before.home.as_ref().and_then(|home| home.pref);
            if pref.is_none() || mode == Mode::Upstream {
                assert!(same, "{at}");
            }
            // In perch mode a gathered process looks for idle cores, too.
            let cores = mode == Mode::Perch && d.shape.smt;
            if !cores && !matches!(d.verdict.cache, CacheStep::Redirected | CacheStep::Returned) {
                let (verdict, after) = off.as_ref().expect("off comes first");
                let (chosen, expected) = (d.verdict, *verdict);
                assert_eq!((chosen.cpu, chosen.reason), (expected.cpu, expected.reason), "{at}");
                assert_eq!(&d.after, after, "{at}");
            }
            let budget = |cpu: usize| match &d.shape.llc[cpu] {
                Some(llc) if d.shape.smt && d.before.state.idle_cores[llc[0]] => u32::MAX / 4,
                Some(llc) => d.before.state.scan[llc[0]],
                None => 0,
            };
            if d.verdict.cache == CacheStep::Returned {
                // The first search may have been in any LLC.
                let first = (0..d.shape.nr_cpus()).map(budget).max().unwrap_or(0);
                let most = first + budget(d.before.wake.prev);
                assert!(d.verdict.examined <= most, "{at}");
            }
        });
    }

    /// P8: what is full stays full when more comes. In perch mode, and beyond the LLC's width in
    /// posted mode, the number of threads changes nothing.
    #[test]
    fn p8_fuller_is_never_freer(seed: u64, cores in 2..20usize, threads in 1..3usize) {
        let mut dice = Dice::new(seed);
        let mut host = host(2, cores, threads);
        let width = (cores * threads) as u32;
        let own = host.only_process();
        host.prefer(own, Some(0), &[0]);
        let mut task = TaskState::new(1);
        task.set_process(Some(own));
        for mode in [Mode::Posted, Mode::Perch] {
            let policy = cache(mode);
            // Leaving the preferred LLC 0 (perch), or entering LLC 1 at its cost (posted).
            let seen = if mode == Mode::Perch { 0 } else { 1 };
            let free = |host: &mut Host, many: u32, util: u32, nr: u32| {
                *host.threads(own).0 = many;
                host.set_llc_load(seen, (util, nr));
                let other = cores * threads;
                let said = host.cache_move(&policy, &task, 0, other) == Move::Free;
                // "Free" says that LLC 0 is full (perch), that LLC 1 is not (posted).
                said == (mode == Mode::Posted)
            };
            for _ in 0..50 {
                let (util, nr) = (dice.range(0, width * 1100), dice.range(0, width + 2));
                let (more, longer) = (util + dice.range(0, 2000), nr + dice.range(0, 3));
                let was = free(&mut host, width, util, nr);
                let is = free(&mut host, width, more, longer);
                assert!(was || !is, "{mode}, {width} CPUs: {util}, {nr} but not {more}, {longer}");
                let many = free(&mut host, 100 * width, util, nr);
                assert_eq!(was, many, "{mode}, {width} CPUs: {util}, {nr}");
                if mode == Mode::Perch {
                    let two = free(&mut host, 2, util, nr);
                    assert_eq!(was, two, "{width} CPUs: {util}, {nr}, two threads");
                }
            }
        }
    }

    /// perch: what the balancer may take out, no wake-up puts back.
    #[test]
    fn what_leaves_does_not_come_back(seed: u64, cores in 2..20usize, threads in 1..3usize) {
        let mut dice = Dice::new(seed);
        let (mut host, policy) = (host(2, cores, threads), cache(Mode::Perch));
        let width = cores * threads;
        let own = process(&mut host, 2, 1);
        host.prefer(own, Some(0), &[0]);
        (0..2 * width).for_each(|cpu| host.set_idle(cpu, false));
        let (mut waker, mut task) = (TaskState::new(2), TaskState::new(1));
        task.set_process(Some(own));
        let allowed = perch_policy::CpuMask::full(2 * width);
        for _ in 0..50 {
            let load = (dice.range(0, width as u32 * 1100), dice.range(0, width as u32 + 2));
            host.set_llc_load(0, load);
            let leaves = host.cache_move(&policy, &task, 0, width) == Move::Free;
            let wake = perch_policy::Wake {
                this_cpu: width,
                prev_cpu: width,
                ..Default::default()
            };
            let verdict = host.select(&policy, &wake, &mut waker, &mut task, &allowed);
            // No CPU is idle: a wakee that was redirected is returned.
            let comes = verdict.cache == CacheStep::Returned;
            assert!(!leaves || !comes, "{cores} cores of {threads}: {load:?}");
        }
    }

    /// P3: with one LLC every mode is off.
    #[test]
    fn p3_one_llc_knows_no_mode(seed: u64, cores in 2..16usize, threads in 1..3usize) {
        let machine = Machine::regular("one", 1, 1, 1, 0, cores, threads).expect("a machine");
        let mut off = None;
        decide(&machine, seed, &Mode::ALL.map(cache), |d| {
            let now = (d.verdict, d.after.clone());
            if d.policy.modes().cache == Mode::Off {
                off = Some(now);
            } else {
                assert_eq!(Some(now), off, "{}", at(d, seed));
            }
        });
    }

    /// P9: a CPU that is told every epoch and one that hears of the last only have the same sums;
    /// occupancy is between nothing and all.
    #[test]
    fn p9_halving_is_path_independent(seed: u64) {
        let mut dice = Dice::new(seed);
        let (mut often, mut seldom) = (host(1, 2, 1), host(1, 2, 1));
        let policy = cache(Mode::Posted);
        let ids = [&mut often, &mut seldom].map(|h| [process(h, 2, 1), process(h, 2, 1)]);
        let mut now = 0;
        for _ in 0..30 {
            let (who, cpu) = (dice.below(2), dice.below(2));
            let until = now + u64::from(dice.range(1, 90)) * 1_000_000;
            while now + EPOCH < until {
                now += EPOCH;
                often.account(ids[0][who], cpu, now, 0);
                often.account(ids[0][1 - who], cpu, now, 0);
            }
            now = until;
            let delta = u64::from(dice.range(0, 5_000_000));
            often.account(ids[0][who], cpu, now, delta);
            seldom.account(ids[1][who], cpu, now, delta);
            for (a, b) in ids[0].into_iter().zip(ids[1]) {
                often.scan(&policy, a, 0, now);
                seldom.scan(&policy, b, 0, now);
                let sums = (often.occupancy(a), seldom.occupancy(b));
                assert_eq!(sums.0, sums.1, "seed {seed}, at {now} ns");
                assert!(sums.0[0] <= 2 << 20, "seed {seed}, at {now} ns: {sums:?}");
            }
        }
    }
}

/// Random moments reach every step in both modes that have steps, also on asymmetric machines.
#[test]
fn random_moments_reach_every_step() {
    for mode in [Mode::Posted, Mode::Perch] {
        let mut seen = [0; CacheStep::ALL.len()];
        for seed in 0..200 {
            decide(&machines::random(seed, 100), seed, &[cache(mode)], |d| {
                seen[d.verdict.cache as usize] += 1;
            });
        }
        for step in CacheStep::ALL {
            // posted redirects whether the CPU is allowed or not.
            let never = mode == Mode::Posted && step == CacheStep::Unfit;
            assert!(seen[step as usize] >= 20 || never, "{mode}, {step:?}: {seen:?}");
        }
    }
}

/// "From zero, an 8-CPU LLC needs ≥8 runnable to reach 1 and ≥10 to reach the trip point 3"; and
/// once there it never comes down to it again (docs/mechanisms/cache.md#defects, the average that
/// stands still).
#[test]
fn the_posted_average_stands_still_within_seven() {
    let mut host = host(2, 8, 1);
    let settled = |host: &mut Host, nr: u32| {
        (0..100).for_each(|_| host.note_llc(0, 0, nr));
        host.llc_load(0).nr
    };
    assert_eq!(settled(&mut host, 7), 0);
    assert_eq!(settled(&mut host, 8), 1);
    assert_eq!(settled(&mut host, 9), 2);
    assert_eq!(settled(&mut host, 10), 3);
    assert_eq!(settled(&mut host, 0), 3);
    assert_eq!(settled(&mut host, 40), 33);
    assert_eq!(settled(&mut host, 0), 7);
}

/// posted: an LLC at which no balance has looked is unused as far as the mechanism knows, and so it
/// takes the threads of any process.
#[test]
fn posted_enters_an_llc_without_statistics() {
    let (mut host, policy) = (host(2, 8, 1), cache(Mode::Posted));
    let own = process(&mut host, 30, 2);
    host.prefer(own, Some(3), &[0]);
    let (mut waker, mut task) = (TaskState::new(2), TaskState::new(1));
    task.set_process(Some(own));
    let wake = perch_policy::Wake { this_cpu: 8, prev_cpu: 9, ..Default::default() };
    let allowed = perch_policy::CpuMask::full(16);
    let verdict = host.select(&policy, &wake, &mut waker, &mut task, &allowed);
    assert_eq!((verdict.cpu, verdict.cache), (3, CacheStep::Redirected));
    // The balancer may take a thread out to such an LLC.
    assert_eq!(host.cache_move(&policy, &task, 3, 9), Move::Free);
}

/// A search at the preferred CPU does not look at the recent CPU, and yet puts the preferred CPU in
/// its place; one that returns puts the true previous CPU there.
#[test]
fn a_redirected_search_writes_the_recent_cpu() {
    for mode in [Mode::Posted, Mode::Perch] {
        for (idle, step, recent) in [(4, CacheStep::Redirected, 3), (8, CacheStep::Returned, 9)] {
            let (mut host, policy) = (host(2, 8, 1), cache(mode));
            let own = process(&mut host, 2, 2);
            host.prefer(own, Some(3), &[0]);
            (0..16).for_each(|cpu| host.set_idle(cpu, cpu == idle));
            let (mut waker, mut task) = (TaskState::new(2), TaskState::new(1));
            task.set_process(Some(own));
            task.set_recent_cpu(Some(4));
            (0..2).for_each(|set| host.set_nr_idle_scan(set, 8));
            let wake = perch_policy::Wake { this_cpu: 10, prev_cpu: 9, ..Default::default() };
            let allowed = perch_policy::CpuMask::full(16);
            let verdict = host.select(&policy, &wake, &mut waker, &mut task, &allowed);
            assert_eq!((verdict.cpu, verdict.cache), (idle, step), "{mode}");
            assert_eq!(task.recent_cpu(), Some(recent), "{mode}, {step:?}");
        }
    }
}

/// posted: the average over an LLC decides, and must reach 1/32: one busy CPU of 32 does, one of
/// 33 does not. The hottest CPU is preferred.
#[test]
fn posted_prefers_by_the_average() {
    let policy = cache(Mode::Posted);
    let mut small = host(2, 32, 1);
    let own = process(&mut small, 2, 1);
    // What is asked of is 1024 of 1025: a slice beside the CPU's own sum plus one nanosecond.
    assert!(run(&mut small, &policy, own, 1, 1, &[(5, 100)]).is_empty());
    assert_eq!(run(&mut small, &policy, own, 2, 1, &[(5, 100), (7, 1)]), [0]);
    assert_eq!(small.preferred_cpu(own), Some(5));
    let mut large = host(2, 33, 1);
    let own = process(&mut large, 2, 1);
    assert!(run(&mut large, &policy, own, 1, 1, &[(5, 100)]).is_empty());
    // One thread alone has no other thread to gather with.
    let alone = process(&mut small, 1, 1);
    assert!(run(&mut small, &policy, alone, 9, 3, &[(1, 50), (2, 50)]).is_empty());
    // 50 ms without a look.
    small.account(own, 5, 8 * EPOCH, 1);
    assert_eq!(small.preferred_cpu(own), Some(5));
    small.account(own, 5, 9 * EPOCH, 1);
    assert_eq!(small.preferred_cpu(own), None);
}

/// upstream: the sum decides, and must double what is preferred so far; too many threads, or too
/// much memory, prefer nothing.
#[test]
fn upstream_holds_on_to_what_it_prefers() {
    let policy = cache(Mode::Upstream);
    let mut host = host(2, 4, 1);
    let rival = process(&mut host, 2, 1);
    let own = process(&mut host, 3, 2);
    assert_eq!(run(&mut host, &policy, own, 1, 1, &[(0, 50)]), [0]);
    // As much on two CPUs of the other: not more than twice.
    host.account(rival, 0, 3 * EPOCH, 1);
    assert_eq!(run(&mut host, &policy, own, 2, 1, &[(4, 90), (5, 90)]), [0]);
    assert_eq!(run(&mut host, &policy, own, 3, 1, &[(4, 90), (5, 90), (6, 90)]), [1]);
    host.set_footprint(own, 1 << 30);
    assert!(run(&mut host, &policy, own, 4, 1, &[(4, 90)]).is_empty());
    host.set_footprint(own, 1);
    assert_eq!(run(&mut host, &policy, own, 5, 1, &[(4, 90)]), [1]);
    // 4 running threads x 1.25 are more than 4 CPUs, but an average of whole threads stays at 3.
    *host.threads(own).1 = 4;
    assert_eq!(run(&mut host, &policy, own, 6, 9, &[(4, 90)]), [1]);
    *host.threads(own).1 = 5;
    assert!(run(&mut host, &policy, own, 15, 9, &[(4, 90)]).is_empty());
    // No scan looks at the threads of a barred process, and so it stays barred.
    *host.threads(own).1 = 1;
    assert!(run(&mut host, &policy, own, 24, 50, &[(4, 90)]).is_empty());
}

/// upstream: a slice takes the preference away as soon as the process must not gather, without
/// waiting for a scan.
#[test]
fn upstream_asks_with_every_slice() {
    let policy = cache(Mode::Upstream);
    let mut host = host(2, 4, 1);
    let own = process(&mut host, 3, 2);
    assert_eq!(run(&mut host, &policy, own, 1, 1, &[(0, 50)]), [0]);
    host.check(own, 0);
    assert_eq!(host.preferred_cpu(own), Some(0));
    host.set_footprint(own, 1 << 30);
    host.check(own, 0);
    assert_eq!(host.preferred_cpu(own), None);
}

/// perch: as many LLCs as the running threads fill, up to all.
#[test]
fn perch_prefers_as_many_as_are_needed() {
    let policy = cache(Mode::Perch);
    let mut host = host(4, 4, 2);
    let own = process(&mut host, 40, 3);
    let everywhere: Vec<_> = (0..32).map(|cpu| (cpu, 60 - cpu as u64 / 8)).collect();
    assert_eq!(run(&mut host, &policy, own, 1, 30, &everywhere), [0]);
    // As many as it needed once, until fewer would do with a fifth to spare.
    let steps = [(6, 2), (10, 3), (30, 4), (10, 4), (9, 3), (7, 3), (6, 2), (1, 1)];
    for ((running, llcs), step) in steps.into_iter().zip(1..) {
        *host.threads(own).1 = running;
        let now = run(&mut host, &policy, own, 40 * step, 40, &everywhere);
        assert_eq!(now.len(), llcs, "{running} running: {now:?}");
    }
}

/// perch: of 128 threads that woke in one LLC of 60 cores all but what the other takes stay; it
/// takes until the two are even but for an eighth of the cores.
#[test]
fn perch_leaves_a_crowded_llc() {
    let (mut host, policy) = (host(2, 60, 2), cache(Mode::Perch));
    let own = process(&mut host, 130, 128);
    host.prefer(own, Some(0), &[0, 1]);
    let allowed = perch_policy::CpuMask::full(240);
    let mut nr = [128, 0];
    for id in 0..200 {
        let from = usize::from(nr[0] < nr[1]);
        let (mut waker, mut task) = (TaskState::new(999), TaskState::new(id + 1));
        task.set_process(Some(own));
        nr[from] -= 1;
        (0..2).for_each(|llc| {
            let load = host.llc_load_mut(llc);
            (load.nr, load.util) = (nr[llc], 1024 * nr[llc]);
        });
        let cpu = host.topology().llc_span(from).iter().next().unwrap_or(0);
        let wake = perch_policy::Wake { this_cpu: cpu, prev_cpu: cpu, ..Default::default() };
        let verdict = host.select(&policy, &wake, &mut waker, &mut task, &allowed);
        let to = host.topology().llc(verdict.cpu).expect("an LLC");
        assert_eq!(verdict.cache == CacheStep::Redirected, to != from);
        nr[to] += 1;
    }
    assert_eq!(nr, [68, 60]);
}

/// Another LLC's occupancy must be twice that of the preferred one before it takes its place.
#[test]
fn perch_does_not_alternate_between_equals() {
    let policy = cache(Mode::Perch);
    let mut host = host(3, 4, 1);
    let own = process(&mut host, 4, 2);
    assert_eq!(run(&mut host, &policy, own, 1, 3, &[(1, 50), (5, 45)]), [0]);
    let rival = process(&mut host, 4, 2);
    for epoch in 4..20 {
        host.account(rival, 1, (epoch + 1) * EPOCH, EPOCH * 4 / 10);
        let now = run(&mut host, &policy, own, epoch, 1, &[(1, 40), (5, 50)]);
        assert_eq!(now, [0], "epoch {epoch}");
    }
}

/// A rush: with perch's exact count the LLC is full as soon as it is, however old the averages.
#[test]
fn perch_counts_who_is_on_the_way() {
    let (mut host, policy) = (host(2, 8, 1), cache(Mode::Perch));
    let own = process(&mut host, 30, 2);
    host.prefer(own, Some(0), &[0]);
    let allowed = perch_policy::CpuMask::full(16);
    let wake = perch_policy::Wake { this_cpu: 8, prev_cpu: 8, ..Default::default() };
    let mut went = 0;
    for id in 1..20 {
        let (mut waker, mut task) = (TaskState::new(99), TaskState::new(id));
        task.set_process(Some(own));
        let verdict = host.select(&policy, &wake, &mut waker, &mut task, &allowed);
        if verdict.cache == CacheStep::Redirected {
            assert_ne!(verdict.reason, Reason::TargetBusy);
            host.llc_load_mut(0).nr += 1;
            went += 1;
        } else {
            assert_eq!(verdict.cache, CacheStep::FullRunnable);
        }
    }
    assert_eq!(went, 7, "four fifths of eight cores");
}
