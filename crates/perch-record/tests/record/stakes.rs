// SPDX-License-Identifier: GPL-2.0-or-later
//! A replay counts agreement by reason, and apart where an idle CPU was to be won.

use perch_machine::library;
use perch_policy::{CpuMask, Era, Modes, Policy, Topology};
use perch_record::format::{Footer, Header, Reader, Writer};
use perch_record::{
    Agreement, Cpu, CpuRow, GroupRow, Replay, Row, Tally, TaskRow, UNSEEN_ROWS, WakeUp,
};

/// The comparison with a kernel that left a task on CPU 1 of kunpeng920, whose other CPUs are busy but
/// for CPU `idle`. The recorder looked at all CPUs, or only at those of the two tasks' LLC.
fn compared(idle: Option<usize>, affinity: Option<&CpuMask>, unseen: u8) -> Tally {
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
    let header = Header {
        machine: machine.to_toml(),
        ..Header::default()
    };
    let shared = topology.nr_shared();
    let mut writer = Writer::new(Vec::new(), header, cpus.len(), shared).expect("memory");
    let wake_up = WakeUp {
        this_cpu: 0,
        prev_cpu: 1,
        chosen: 1,
        waker: 1,
        wakee: 2,
        unseen,
        ..WakeUp::default()
    };
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
    let wrong = Agreement {
        asked: 1,
        differ: 1,
        unexplained: 1,
    };
    assert_eq!((tally.asked, tally.same), (1, 0));
    assert_eq!(sums(&tally), [Agreement::default(), wrong]);
}
