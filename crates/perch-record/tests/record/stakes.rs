// SPDX-License-Identifier: GPL-2.0-or-later
//! A replay counts agreement by reason, and apart where an idle CPU was to be won or where only one
//! CPU was possible.

use perch_machine::library;
use perch_policy::{CpuMask, Era, Mode, Modes, Policy, Topology};
use perch_record::format::{Footer, Header, Reader, Writer};
use perch_record::synthetic::{Synthetic, synthetic};
use perch_record::{
    Agreement, Cpu, CpuRow, GroupRow, Replay, Row, Tally, TaskRow, UNSEEN_ROWS, WakeUp, replay,
};

/// The comparison with a kernel that left a task on CPU 1 of kunpeng920, whose other CPUs are busy but
/// for CPU `idle`. The recorder looked at all CPUs, or only at those of the two tasks' LLC.
fn compared(idle: Option<usize>, affinity: Option<&CpuMask>, unseen: u8) -> Tally {
    let wake_up = WakeUp { this_cpu: 0, prev_cpu: 1, chosen: 1, unseen, ..WakeUp::default() };
    compared_at(wake_up, idle, affinity)
}

/// The same of another wake-up.
fn compared_at(wake_up: WakeUp, idle: Option<usize>, affinity: Option<&CpuMask>) -> Tally {
    let machine = library::load("kunpeng920").expect("kunpeng920");
    let topology = Topology::new(&machine);
    let mut busy = Row::<CpuRow>::default();
    busy[Cpu::Capacity] = 1024;
    (busy[Cpu::NrRunning], busy[Cpu::Load]) = (1, 1024);
    let mut cpus = vec![busy; topology.nr_cpus()];
    if let Some(cpu) = idle {
        (cpus[cpu][Cpu::NrRunning], cpus[cpu][Cpu::Load]) = (0, 0);
        cpus[cpu][Cpu::Idle] = 1;
    }
    let groups = vec![Row::<GroupRow>([4, 0]); topology.nr_shared()];
    let header = Header { machine: machine.to_toml(), ..Header::default() };
    let shared = topology.nr_shared();
    let mut writer = Writer::new(Vec::new(), header, cpus.len(), shared).expect("memory");
    let wake_up = WakeUp { waker: 1, wakee: 2, ..wake_up };
    let task = Row::<TaskRow>::default();
    let added = writer.add(&wake_up, [&task, &task], affinity, &cpus, &groups);
    added.expect("memory");
    let (_, file) = writer.finish(Footer::default()).expect("memory");
    let mut reader = Reader::new(&file[..]).expect("a recording");
    let policy = Policy::new(Era::V7_2, Modes::default());
    let mut replay = Replay::new(&topology, 250, policy, None);
    let block = reader.next_block().expect("whole").expect("one");
    replay.block(&block, |_| {}).expect("whole").model
}

/// The sums over reasons: of choices without an idle CPU, then of those with one.
fn sums(tally: &Tally) -> [Agreement; 2] {
    let mut sums = [Agreement::default(); 2];
    for stakes in &tally.by_reason {
        for (sum, part) in sums.iter_mut().zip(stakes) {
            sum.add(part);
        }
    }
    sums
}

#[test]
fn an_idle_cpu_that_was_seen_and_is_allowed_can_be_won() {
    let here = CpuMask::of(128, [1, 64]);
    for (idle, affinity, unseen, to_win) in [
        (None, None, 0, false),
        (Some(2), None, 0, true),
        (Some(2), None, UNSEEN_ROWS, true),
        // CPU 64 is of another package: only who looks at every CPU knows that it idles.
        (Some(64), None, 0, true),
        (Some(64), None, UNSEEN_ROWS, false),
        (Some(2), Some(&here), 0, false),
        (Some(64), Some(&here), 0, true),
    ] {
        let sums = sums(&compared(idle, affinity, unseen));
        let asked = sums.map(|sum| sum.asked);
        let expected = if to_win { [0, 1] } else { [1, 0] };
        assert_eq!(asked, expected, "{idle:?} {affinity:?} {unseen}");
    }
}

/// A choice that differs for no reason is counted beside its reason.
#[test]
fn what_is_unexplained_has_its_reason() {
    let tally = compared(Some(2), None, 0);
    let wrong = Agreement { asked: 1, differ: 1, unexplained: 1 };
    assert_eq!((tally.asked, tally.same), (1, 0));
    assert_eq!(sums(&tally), [Agreement::default(), wrong]);
}

/// The counts of forced choices.
fn forced(tally: &Tally) -> Agreement {
    tally.summary().forced
}

#[test]
fn choice_is_forced_where_one_cpu_is_possible() {
    let (two, one) = (CpuMask::of(128, [1, 64]), CpuMask::of(128, [1]));
    for (this_cpu, idle, affinity, unseen, expected) in [
        // wake_affine chooses between CPUs 0 and 1, both busy.
        (0, None, None, 0, 0),
        (1, None, None, 0, 1),
        (1, Some(2), None, 0, 0),
        // The recorder did not look as far as CPU 64, and neither does the kernel.
        (1, Some(64), None, UNSEEN_ROWS, 1),
        (1, Some(64), None, 0, 0),
        // The wakee may not use the waker's CPU, which leaves the previous one.
        (0, None, Some(&two), 0, 1),
        (0, Some(64), Some(&two), 0, 0),
        (0, None, Some(&one), 0, 1),
        (0, Some(1), Some(&one), 0, 1),
    ] {
        let wake_up = WakeUp { this_cpu, prev_cpu: 1, chosen: 1, unseen, ..WakeUp::default() };
        let tally = compared_at(wake_up, idle, affinity);
        let case = format!("{this_cpu} {idle:?} {affinity:?} {unseen}");
        assert_eq!(tally.asked, 1, "{case}");
        assert_eq!(forced(&tally).asked, expected, "{case}");
        assert_eq!(tally.summary().unforced().asked, 1 - expected, "{case}");
    }
}

/// A fork goes down the slow path, which weighs busy CPUs.
#[test]
fn fork_is_not_forced_by_busy_cpus() {
    let fork = WakeUp { this_cpu: 1, prev_cpu: 1, chosen: 1, flags: 2, ..WakeUp::default() };
    assert_eq!(forced(&compared_at(fork.clone(), None, None)).asked, 0);
    let one = CpuMask::of(128, [1]);
    assert_eq!(forced(&compared_at(fork, None, Some(&one))).asked, 1);
}

/// A kernel that chose otherwise where the model sees one CPU is not hidden.
#[test]
fn forced_choice_can_differ() {
    let elsewhere = WakeUp { this_cpu: 1, prev_cpu: 1, chosen: 3, ..WakeUp::default() };
    let differs = Agreement { asked: 1, differ: 1, unexplained: 1 };
    assert_eq!(forced(&compared_at(elsewhere, None, None)), differs);
}

/// Whatever the rules are, a forced choice is the same: a model of the wrong kernel gets all of them
/// right, and others wrong.
#[test]
fn rules_change_no_forced_choice() {
    let machine = library::load("jacobsville").expect("in the library");
    let topology = Topology::new(&machine);
    let modes = Modes { cluster: Mode::Upstream, ..Modes::default() };
    let load = Synthetic {
        seed: 3,
        wake_ups: 20_000,
        every_ns: 100_000,
        busy_pct: 95,
        real_time_every: 0,
    };
    let mut file = Vec::new();
    synthetic(&mut file, &machine, Policy::new(Era::V7_2, modes), load).expect("memory");
    for era in [Era::V6_5, Era::V6_15] {
        let mut reader = Reader::new(&file[..]).expect("a recording");
        let model = Policy::new(era, Modes::default());
        let outcome = replay(&mut reader, &topology, model, None, 1).expect("whole");
        let summary = outcome.model.summary();
        assert!(summary.forced.asked > 1000, "{summary:?}");
        assert_eq!(summary.forced.differ, 0, "{summary:?}");
        assert!(summary.unforced().differ > 100, "{summary:?}");
    }
}
