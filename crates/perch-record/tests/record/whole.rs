// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of recordings of random moments: the moments come back, replay decides as the policy
//! decided, and every damage of a file is reported.

use std::sync::Arc;

use perch_machine::library;
use perch_policy::testing::dice::Dice;
use perch_policy::testing::machines::{self, Shape};
use perch_policy::testing::scenario::Scenario;
use perch_policy::{Era, Host, Mode, Modes, Policy, Topology, Verdict};
use perch_record::format::{Footer, FormatError, Header, Moment, Reader, Writer};
use perch_record::{
    Cause, Class, Cpu, CpuRow, GroupRow, HEARD, Replay, Row, TaskRow, WakeUp, group_capacities,
    replay,
};
use proptest::prelude::*;

/// Random wake-ups of a random machine, and the policy's answer to each.
struct Recorded {
    topology: Arc<Topology>,
    policy: Policy,
    scenarios: Vec<Scenario>,
    verdicts: Vec<Verdict>,
    file: Vec<u8>,
}

/// The writer flushes after each `every` wake-ups, which determines the number of blocks.
fn record(seed: u64, max_cpus: usize, count: usize, every: usize) -> Recorded {
    let shape = Shape::new(&machines::random(seed, max_cpus));
    let topology = Topology::new(&shape.machine);
    let mut dice = Dice::new(seed);
    let mut policies = perch_policy::testing::scenario::policies();
    // The length of tasks' turns and how busy each LLC is are not recorded.
    policies.retain(|policy| {
        let modes = policy.modes();
        (modes.behind, modes.spread) == (Mode::Off, Mode::Off)
    });
    let policy = policies[dice.below(policies.len())];
    let header = Header {
        perch: "test".to_string(),
        machine: shape.machine.to_toml(),
        era: policy.era().to_string(),
        ..Header::default()
    };
    let (n, shared) = (topology.nr_cpus(), topology.nr_shared());
    let mut writer = Writer::new(Vec::new(), header, n, shared).expect("memory");
    let mut recorded = Recorded {
        topology,
        policy,
        scenarios: Vec::new(),
        verdicts: Vec::new(),
        file: Vec::new(),
    };
    for i in 0..count {
        // The home of a process is not recorded, so this policy must do without one.
        let scenario = Scenario { home: None, ..Scenario::random(&shape, &mut dice) };
        let mut host = Host::new(recorded.topology.clone());
        scenario.put(&mut host);
        let (wake, wakee) = (scenario.wake.to_policy(), scenario.wakee_of(&mut host));
        let waker = scenario.waker.to_policy();
        let tasks = [Row::<TaskRow>::of(&waker), Row::<TaskRow>::of(&wakee)];
        let cpus: Vec<_> = (0..n).map(|cpu| Row::<[u64; 11]>::of(&host, cpu)).collect();
        let groups: Vec<_> = (0..shared).map(|g| Row::<GroupRow>::of(&host, g)).collect();
        let (mut after, mut left) = (waker, wakee);
        let affinity = scenario.affinity();
        let verdict = host.select(&policy, &wake, &mut after, &mut left, &affinity);
        let mut queued = Vec::new();
        if let Some(group) = &scenario.group {
            queued = vec![0; n.div_ceil(64)];
            let cpus = group.iter().enumerate().filter(|(_, is)| **is);
            cpus.for_each(|(cpu, _)| queued[cpu / 64] |= 1 << (cpu % 64));
        }
        let wake_up = WakeUp {
            at_ns: wake.now_ns,
            class: Class::Fair,
            flags: wake.flags(),
            this_cpu: wake.this_cpu as u32,
            prev_cpu: wake.prev_cpu as u32,
            chosen: verdict.cpu as u32,
            waker: waker.id,
            wakee: wakee.id,
            queued,
            capacities: group_capacities(&host, &wake),
            later: vec![(n as u32 - 1, Row([dice.below(1000) as u64; 11]))],
            ..WakeUp::default()
        };
        let all = affinity.weight() as usize == n;
        let tasks = [&tasks[0], &tasks[1]];
        let affinity = (!all).then_some(&affinity);
        writer.add(&wake_up, tasks, affinity, &cpus, &groups).expect("memory");
        if (i + 1) % every == 0 {
            writer.flush().expect("memory");
        }
        recorded.scenarios.push(scenario);
        recorded.verdicts.push(verdict);
    }
    (_, recorded.file) = writer.finish(Footer::default()).expect("memory");
    recorded
}

/// Returns the number of wake-ups that can be read from a file, and how the file ends.
fn readable(file: &[u8], topology: &Topology) -> (usize, Result<bool, FormatError>) {
    let mut count = 0;
    let mut reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (0, Err(error)),
    };
    let mut moment = Moment::new(topology.nr_cpus(), topology.nr_shared());
    loop {
        let block = match reader.next_block() {
            Ok(Some(block)) => block,
            Ok(None) => return (count, Ok(reader.cut_off().is_none())),
            Err(error) => return (count, Err(error)),
        };
        let mut cursor = block.cursor();
        cursor.begin(&mut moment);
        while cursor.advance(&mut moment).expect("its checksum is right") {
            count += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A replay repeats every decision that the policy made live, whatever the number of threads.
    #[test]
    fn replay_decides_as_was_decided(seed: u64, max_cpus in 1..200usize, every in 1..9usize) {
        let r = record(seed, max_cpus, 24, every);
        for jobs in [1, 3] {
            let mut reader = Reader::new(&r.file[..]).expect("a recording");
            let tally = replay(&mut reader, &r.topology, r.policy, Some(r.policy), jobs).expect("a recording");
            prop_assert_eq!(tally.change.as_ref().map(|c| c.same), Some(24), "seed {}", seed);
            let tally = tally.model;
            prop_assert_eq!(tally.asked, 24, "seed {}", seed);
            prop_assert_eq!(tally.same, 24, "seed {}, {:?}", seed, tally);
            let examined: u64 = r.verdicts.iter().map(|v| u64::from(v.examined)).sum();
            prop_assert_eq!(tally.examined, examined, "seed {}", seed);
            prop_assert_eq!(reader.footer().map(|f| f.wake_ups), Some(24));
        }
    }

    /// The reader reads a file that ends early up to the last whole block.
    #[test]
    fn a_cut_off_file_is_read_until_there(seed: u64, max_cpus in 1..80usize, cut: u16) {
        let r = record(seed, max_cpus, 12, 2);
        let cut = usize::from(cut) % r.file.len();
        let (count, end) = readable(&r.file[..cut], &r.topology);
        match end {
            Ok(whole) => prop_assert!(!whole && count % 2 == 0 && count <= 12),
            Err(FormatError::NoHeader { .. }) => prop_assert_eq!(count, 0),
            Err(FormatError::Foreign { .. }) => prop_assert_eq!(cut, 0),
            Err(error) => prop_assert!(false, "seed {seed}, cut at {cut}: {error}"),
        }
        // The file without a cut has a footer and all of its 12 wake-ups.
        let (all, whole) = readable(&r.file, &r.topology);
        prop_assert!(whole.is_ok_and(|whole| whole) && all == 12);
    }

    /// The reader finds a byte that changed, and reads the blocks before the byte's block.
    #[test]
    fn a_changed_byte_is_found(seed: u64, at: u16, flip in 1..=255u8) {
        let mut r = record(seed, 20, 12, 2);
        let at = usize::from(at) % r.file.len();
        r.file[at] ^= flip;
        let (count, end) = readable(&r.file, &r.topology);
        prop_assert!(count < 12 || matches!(end, Err(_) | Ok(false)), "seed {seed}, byte {at}");
        prop_assert!(!matches!(end, Ok(true)), "seed {seed}, byte {at}: read as if it were whole");
    }
}

/// A second look at the CPUs comes back, and decides the cause that a replay gives for a
/// disagreement.
#[test]
fn a_second_look_explains_what_changed() {
    let machine = library::load("kunpeng920").expect("kunpeng920");
    let topology = Topology::new(&machine);
    let policy = Policy::new(Era::V7_2, Modes::default());
    let (n, shared) = (topology.nr_cpus(), topology.nr_shared());
    let mut idle = Row::<CpuRow>::default();
    idle[Cpu::Idle] = 1;
    idle[Cpu::Capacity] = 1024;
    let mut busy = idle;
    (busy[Cpu::Idle], busy[Cpu::NrRunning], busy[Cpu::Load]) = (0, 1, 1024);
    let task = Row::<TaskRow>::default();
    let header = || Header { machine: machine.to_toml(), ..Header::default() };
    // CPU 1, where the task ran last, was busy at first; the kernel chose it all the same.
    let cause_of = |unseen: u8, later: Vec<(u32, Row<CpuRow>)>| {
        let mut writer = Writer::new(Vec::new(), header(), n, shared).expect("memory");
        let wake_up = WakeUp {
            this_cpu: 0,
            prev_cpu: 1,
            chosen: 1,
            waker: 1,
            wakee: 2,
            unseen,
            later: later.clone(),
            ..WakeUp::default()
        };
        let mut cpus = vec![busy; n];
        cpus[2] = idle;
        let groups = vec![Row::<GroupRow>([4, 0]); shared];
        let add = writer.add(&wake_up, [&task, &task], None, &cpus, &groups);
        add.expect("memory");
        let (_, file) = writer.finish(Footer::default()).expect("memory");
        let mut reader = Reader::new(&file[..]).expect("a recording");
        let mut replay = Replay::new(&topology, 250, policy, None);
        let block = reader.next_block().expect("whole").expect("one");
        let mut seen = None;
        let outcome = replay.block(&block, |decided| {
            assert_eq!(decided.moment.wake_up(), &wake_up);
            seen = decided.cause;
        });
        let outcome = outcome.expect("a recording");
        assert_eq!(
            outcome.model.asked - outcome.model.same,
            outcome.model.by_cause.iter().sum::<u64>()
        );
        seen
    };
    for unseen in [0, HEARD] {
        assert_eq!(cause_of(unseen, Vec::new()), Some(Cause::Model));
        assert_eq!(cause_of(unseen, vec![(4, idle)]), Some(Cause::Model));
        let both = vec![(1, idle), (4, idle)];
        assert_eq!(cause_of(unseen, both), Some(Cause::Changed));
    }
    // Another task took the idle CPU, which the model chooses, meanwhile; but without that CPU the model
    // still chooses otherwise than the kernel.
    for unseen in [0, HEARD] {
        assert_eq!(cause_of(unseen, vec![(2, busy)]), Some(Cause::Model));
    }
}

fn error(file: &[u8]) -> String {
    Reader::new(file).expect_err("no recording").to_string()
}

#[test]
fn errors_say_what_to_do() {
    assert_eq!(
        error(b"\x7fELF\x02\x01\x01\0\0\0\0\0"),
        "not a recording of perch: it begins with [7f, 45, 4c, 46, 02, 01, 01, 00], expected \
         \"PERCHREC\"; recordings are written by perch record"
    );
    assert_eq!(
        error(b"PERCHREC\x02\0\0\0"),
        "version 2 of the format; this perch reads version 1: use the perch that wrote it, or a \
         newer one"
    );
    assert_eq!(
        error(b"PERCHREC\x01\0\0\0H"),
        "cut off after 13 bytes, before its header ends: nothing in it can be read"
    );
    assert!(error(b"").contains("not a recording"), "{}", error(b""));
}

/// A full disk loses the blocks that did not fit, and nothing else.
#[test]
fn a_full_disk_loses_nothing_that_was_written() {
    struct Disk(Vec<u8>, usize);
    impl std::io::Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let room = (self.1 - self.0.len()).min(bytes.len());
            if room == 0 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(&bytes[..room]);
            Ok(room)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let r = record(7, 40, 12, 2);
    let n = r.topology.nr_cpus();
    let (cpus, groups) = (vec![Row::default(); n], vec![Row::default(); r.topology.nr_shared()]);
    let mut disk = Disk(Vec::new(), 3000);
    let mut writer = Writer::new(&mut disk, Header::default(), n, groups.len()).expect("room");
    let mut written = 0;
    let task = Row::default();
    let full = (0..10_000u64).find_map(|i| {
        let wake_up = WakeUp { at_ns: i * 1_000_003, wakee: 1, ..WakeUp::default() };
        let added = writer.add(&wake_up, [&task, &task], None, &cpus, &groups);
        let result = added.and_then(|()| writer.flush());
        written += usize::from(result.is_ok());
        result.err()
    });
    let full = full.expect("a disk of 3000 bytes is full some day");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    drop(writer);
    let (count, end) = readable(&disk.0, &r.topology);
    assert_eq!(count, written);
    assert!(matches!(end, Ok(false)), "{end:?}");
}
