// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the files of counts, made by hand.

use perch_machine::Distance;

use super::*;

fn moves(all: &[(LineKind, Distance, u64)]) -> Moves {
    let of = |(kind, distance, count): &(LineKind, Distance, u64)| {
        let (kind, distance) = (*kind, *distance);
        (Move { kind, distance }, *count)
    };
    all.iter().map(of).collect()
}

/// Returns where the modelled time of a CPU went, in picoseconds.
fn time() -> BTreeMap<Cause, u64> {
    let line = |kind, distance| Cause::Line(Move { kind, distance });
    BTreeMap::from([
        (Cause::Instructions, 40_000),
        (Cause::Smt, 4_000),
        (line(LineKind::LoadDirty, Distance::Llc), 2_000),
        (line(LineKind::Llc, Distance::Llc), 6_000),
        (line(LineKind::Cold, Distance::Cpu), 3_000),
        (line(LineKind::Cold, Distance::Package), 5_000),
        (Cause::Queue, 1_000),
        (Cause::Stores, 7_000),
        (Cause::Exit, 500),
    ])
}

/// Returns the counts of a slot without those that come with modelled time, but with lines of code.
fn untimed(slot: SlotCounts) -> SlotCounts {
    SlotCounts {
        used: BTreeMap::from([(0, [9, 70]), (1, [0, 3])]),
        time_ps: BTreeMap::new(),
        aside: BTreeMap::new(),
        ..slot
    }
}

/// Returns counts on two CPUs, of a slot whose time is modelled and another one, with each kind of
/// record, in which one function has a name as no kernel has it. `far` lines moved over the longest
/// distance.
fn sample(scheduler: &str, far: u64) -> LineCounts {
    let slot = |slot, operations| SlotCounts {
        slot,
        operations,
        accesses: 90,
        instructions: vec![[40, 400], [0, 7]],
        used: BTreeMap::from([(0, [9, 0]), (1, [5, 0])]),
        time_ps: BTreeMap::from([(0, time())]),
        aside: BTreeMap::from([(0, moves(&[(LineKind::Upgrade, Distance::Llc, 2)]))]),
        moved: [
            moves(&[(LineKind::LoadDirty, Distance::Cluster, 4)]),
            moves(&[
                (LineKind::LoadDirty, Distance::Machine, far),
                (LineKind::Upgrade, Distance::Llc, 20),
                (LineKind::Cold, Distance::Cpu, 8),
                (LineKind::Llc, Distance::Llc, 6),
            ]),
        ],
        functions: BTreeMap::from([
            ("(user)".to_string(), moves(&[(LineKind::LoadDirty, Distance::Cluster, 4)])),
            (
                "ttwu_<queue>".to_string(),
                moves(&[
                    (LineKind::Upgrade, Distance::Llc, 20),
                    (LineKind::Cold, Distance::Cpu, 8),
                ]),
            ),
            (
                format!("__{}", "longer_than_the_chart_has_room_for"),
                moves(&[(LineKind::LoadDirty, Distance::Machine, far)]),
            ),
        ]),
        lines: vec![
            LineMoves {
                name: "runqueues+0x8".to_string(),
                moves: 60,
                loaded_by: "ttwu_<queue>".to_string(),
                written_by: "(user)".to_string(),
            },
            LineMoves {
                name: "ffff888000002000".to_string(),
                moves: 4,
                loaded_by: String::new(),
                written_by: String::new(),
            },
        ],
        tasks: vec![TaskCounts {
            name: "task 1 on 0-1".to_string(),
            runs: 2,
            instructions: [40, 380],
            data: 30,
            own: 12,
            code: 50,
            moved: moves(&[(LineKind::Upgrade, Distance::Llc, 20)]),
        }],
    };
    LineCounts {
        perch: "0.1.0".to_string(),
        command: "perch lab run -- sh -c 'echo \"<b>\" & true'".to_string(),
        machine: "kunpeng920".to_string(),
        kernel: "7.2.12".to_string(),
        scheduler: scheduler.to_string(),
        cpus: 2,
        slots: vec![slot(1, 4), untimed(slot(2, 1))],
    }
}

#[test]
fn nothing_counted_is_said() {
    assert!(LineCounts::default().text().contains("nothing was counted"));
}

#[test]
fn json_has_a_head_and_a_line_a_record() {
    let mut counts = sample("stock", 40);
    counts.slots.truncate(1);
    insta::assert_snapshot!(counts.json());
}

#[test]
fn the_terminal_has_each_table_that_has_rows() {
    let mut counts = sample("stock", 40);
    insta::assert_snapshot!(counts.text());
    for slot in &mut counts.slots {
        *slot = SlotCounts {
            instructions: vec![[0; 2]; 2],
            moved: [moves(&[(LineKind::Upgrade, Distance::Llc, 0)]), Moves::new()],
            time_ps: BTreeMap::from([(0, BTreeMap::from([(Cause::Queue, 0)]))]),
            used: BTreeMap::from([(1, [0; 2])]),
            ..SlotCounts::default()
        };
    }
    let nothing = "slot 0: 0 operations, 0 loads and stores\n\n";
    assert_eq!(counts.text(), nothing.repeat(2));
}

/// All memory has one column, and the rows of an LLC's lines are its distance's.
#[test]
fn time_is_summed_by_distance() {
    let counts = sample("stock", 40);
    let found = time::table(&counts.slots[0]);
    let head = "CPU,instructions,SMT,memory,LLC,queue,store buffer,idle exit,sum";
    assert_eq!(found.head().join(","), head);
    let row = "0,10.00,1.000,2.000,2.000,0.250,1.750,0.125,17.12";
    let rows: Vec<String> = found.rows().iter().map(|row| row.join(",")).collect();
    assert_eq!(rows, [row]);
    assert!(time::table(&counts.slots[1]).rows().is_empty());
}

#[test]
fn a_slot_has_the_columns_that_it_counts() {
    let counts = sample("stock", 40);
    let [timed, untimed] = &counts.slots[..] else {
        panic!("two slots");
    };
    assert_eq!(tables::used(timed).head(), ["CPU", "data"]);
    assert_eq!(tables::used(timed).rows(), [["0", "9"], ["1", "5"]]);
    assert_eq!(tables::used(untimed).head(), ["CPU", "data", "code"]);
    let has_aside = |slot| tables::moves(slot).head().iter().any(|name| name == "aside");
    assert!(has_aside(timed) && !has_aside(untimed));
}
