// SPDX-License-Identifier: GPL-2.0-or-later
//! Guests whose clocks show modelled time.

use perch_lab::Cpus;
use perch_lab::coherence::{Counted, Slot};
use perch_lab::guest::Guest;
use perch_machine::moves::{LineKind, Move};
use perch_machine::{Distance, Machine};

use crate::guest::{PERCH, Place, bare_deterministic, boot, printed, resolve, watched};

/// CPU 1 shares CPU 0's cluster, CPU 2 its LLC, CPU 4 is in another node of its package.
const PARTNERS: [(usize, Distance); 3] =
    [(1, Distance::Cluster), (2, Distance::Llc), (4, Distance::Package)];

/// The loads, and the CPUs with which CPU 0 plays them.
const LOADS: [(&str, &[(usize, Distance)]); 3] =
    [("pipe", &PARTNERS), ("tcp", PARTNERS.split_at(2).0), ("udp", PARTNERS.split_at(2).0)];

/// kunpeng920 with a core that waits for each line by itself, so that time is a sum.
fn plain() -> Machine {
    let mut machine = resolve("kunpeng920");
    machine.hardware.core.misses_at_once = 1;
    machine.hardware.core.store_buffer = 0;
    machine
}

/// A guest of 8 CPUs in modelled time that has run `script`, and what the script printed.
fn timed(machine: &Machine, seed: &str, script: &str) -> (Guest, String) {
    let mut setup = bare_deterministic(machine, Cpus::AtMost(8));
    setup.coherence = true;
    setup.timed = true;
    setup.job = Some(watched(seed, script));
    let guest = boot(&setup);
    let text = printed(&guest);
    (guest, text)
}

/// The time that the CPUs `of` wait for lines and for others that had them first, in nanoseconds a
/// round, without the lines for which nobody waits.
fn cost(slot: &Slot, machine: &Machine, of: [usize; 2]) -> f64 {
    let ps = of.map(|cpu| {
        let spent = &slot.spent[cpu];
        let transfer =
            |moved: &Move| 1000 * u64::from(machine.hardware.transfer_ns.at(moved.distance));
        let between =
            |moved: &Move| moved.kind.is_between_cpus() && moved.kind != LineKind::LoadClean;
        let aside = spent.aside.iter().filter(|(moved, _)| between(moved));
        let aside: u64 = aside.map(|(moved, count)| count * transfer(moved)).sum();
        // Nothing overlaps, so that a line's time is what the machine says.
        for (moved, ps) in spent.lines.iter().filter(|(moved, _)| between(moved)) {
            assert_eq!(ps % transfer(moved), 0, "{moved:?}");
        }
        spent.queue + spent.lines.values().sum::<u64>() - aside
    });
    ps.iter().sum::<u64>() as f64 / 1000.0 / slot.rounds as f64
}

/// The time of the instructions of the CPUs `of`, in nanoseconds a round.
fn instructions(slot: &Slot, of: [usize; 2]) -> f64 {
    let ps: u64 = of.iter().map(|&cpu| slot.spent[cpu].instructions).sum();
    ps as f64 / 1000.0 / slot.rounds as f64
}

/// What a ping printed: the time of a round by the three clocks, in nanoseconds. The guest's TSC has
/// a tick a nanosecond.
fn clocks(lines: &[&str]) -> [f64; 3] {
    let number = |line: &str, before: &str| -> f64 {
        let (text, _) = line.split_once(before).expect(line);
        text.rsplit(' ').next().unwrap().parse().expect(line)
    };
    [number(lines[0], " ns each"), number(lines[1], " ns each"), number(lines[1], " ticks each")]
}

/// How often each ping is played. The quickest counts: the kernel's own work of a moment, a burst of
/// 150 us between two thousand rounds, is neither a line nor an interrupt.
const TRIES: usize = 3;

/// A line's transfer takes as long as the machine says, and every clock of the guest shows it: what
/// a round takes longer over a longer distance is what its lines and its two interrupts take longer.
/// No line counts that moves to a CPU after it has woken its partner, as it is fetched while the
/// interrupt is on its way. The kernel's own work differs from ping to ping by some hundred
/// instructions per round, before a wake-up or after it: they explain any time up to their own.
fn pings_take_what_their_lines_cost(loads: &[(&'static str, &[(usize, Distance)])]) {
    let _place = Place::take();
    let machine = plain();
    let pings: Vec<(&str, usize, Distance)> = loads
        .iter()
        .flat_map(|&(by, partners)| partners.iter().map(move |&(cpu, far)| (by, cpu, far)))
        .collect();
    let mut script = "ip link set lo up".to_string();
    for slot in 0..pings.len() * TRIES {
        let (by, cpu, _) = pings[slot / TRIES];
        script += &format!(
            "; perch lab ping --clocks --by {by} --cpus 0,{cpu} --slot {slot} --rounds 1000"
        );
    }
    let (guest, text) = timed(&machine, "1", &script);
    let (counted, _) = guest.counted().unwrap().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        (counted.slots.len(), lines.len()),
        (pings.len() * TRIES, 2 * pings.len() * TRIES),
        "{text}"
    );
    let tries: Vec<(&Slot, &[&str])> = counted.slots.iter().zip(lines.chunks(2)).collect();
    let mut before: Option<(&str, f64, f64, f64)> = None;
    for (tries, &(by, cpu, distance)) in tries.chunks(TRIES).zip(&pings) {
        let ipi = 2.0 * f64::from(machine.hardware.ipi_ns.at(distance));
        let mut quickest = (f64::INFINITY, 0.0, 0.0);
        for (slot, lines) in tries {
            let [monotonic, raw, tsc] = clocks(lines);
            let apart = (monotonic - raw).abs().max((monotonic - tsc).abs());
            assert!(apart <= 1.0, "{monotonic}, {raw} and {tsc} ns");
            let cost = cost(slot, &machine, [0, cpu]) + ipi;
            println!("{}, TSC {tsc}; lines and interrupts {cost:.1}", lines[0]);
            if monotonic < quickest.0 {
                quickest = (monotonic, cost, instructions(slot, [0, cpu]));
            }
        }
        let (time, cost, work) = quickest;
        if let Some((_, less, least, idler)) = before.filter(|before| before.0 == by) {
            let (found, expected, more) = (time - less, cost - least, work - idler);
            println!(
                "{by}: {found:.1} ns more, expected {expected:.1} and at most {more:.1} of its instructions"
            );
            let (low, high) = (expected + more.min(0.0), expected + more.max(0.0));
            assert!(
                (low - 0.02 * expected..=high + 0.02 * expected).contains(&found),
                "{found} ns, expected {low} to {high}, within 2 % of {expected}"
            );
        }
        before = Some((by, time, cost, work));
    }
}

#[test]
fn a_ping_by_pipe_takes_what_its_lines_cost() {
    pings_take_what_their_lines_cost(&LOADS[..1]);
}

#[test]
#[ignore = "the pipe's pings are tested anyway, for --long"]
fn a_ping_by_a_socket_takes_what_its_lines_cost() {
    pings_take_what_their_lines_cost(&LOADS[1..]);
}

/// Loops of the shell on the CPUs `on`, at the same time, in a slot.
fn loops(slot: u8, on: &[usize], turns: u32) -> String {
    let work = format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done");
    let starts = on.iter().map(|cpu| format!("taskset {:x} sh -c '{work}' & ", 1 << cpu));
    let starts: String = starts.collect();
    format!("; perch lab mark start {slot}; {starts}wait; perch lab mark stop {slot}")
}

/// What a seed's guest counted and printed: a ping between two cores, and loops of `turns` beside each
/// other on the threads of a core (slot 3) and on two cores (slot 4).
fn pinged_and_looped(machine: &Machine, seed: &str, turns: u32) -> (Counted, String) {
    let _place = Place::take();
    let script = [
        "perch lab ping --clocks --cpus 0,2 --slot 2 --rounds 100; cat /proc/uptime",
        &loops(3, &[0, 1], turns),
        &loops(4, &[0, 2], turns),
        "; cat /proc/uptime",
    ]
    .concat();
    let (guest, text) = timed(machine, seed, &script);
    (guest.counted().unwrap().unwrap().0, text)
}

/// Modelled time is the same to the nanosecond in every run, and so is what was counted in it; with
/// another seed it differs. Two threads of a core slow each other down as the machine says, and two
/// of different cores don't: the third guest's loops are long enough to tell.
#[test]
#[ignore = "three deterministic guests, which may differ on a busy host (docs/hardware.md), for --long"]
fn time_is_the_same_twice() {
    let machine = resolve("x5570");
    let [long, first, again] = std::thread::scope(|scope| {
        let run = |seed, turns| {
            let machine = &machine;
            scope.spawn(move || pinged_and_looped(machine, seed, turns))
        };
        [run("2", 12000), run("1", 500), run("1", 500)].map(|run| run.join().unwrap())
    });
    assert_eq!(first, again);
    let pinged = |text: &str| text.lines().take(3).collect::<Vec<_>>().join(", ");
    assert_ne!(pinged(&first.1), pinged(&long.1));

    let slowed = |slot: usize, cpu: usize| {
        let spent = &long.0.slots[slot].spent[cpu];
        spent.smt as f64 / spent.instructions as f64
    };
    let together = 1024.0 / f64::from(machine.hardware.smt_throughput_1024) - 1.0;
    for cpu in [0, 1] {
        let found = slowed(1, cpu) / together;
        println!("CPU {cpu} beside a sibling: {found:.3} of the slowdown");
        assert!((0.85..=1.001).contains(&found), "{found}");
    }
    for cpu in [0, 2] {
        let found = slowed(2, cpu) / together;
        println!("CPU {cpu} alone: {found:.3} of the slowdown");
        assert!(found < 0.3, "{found}");
    }
}

/// A guest's recording and a simulation of the same pair have wake-ups and rates of the same order.
#[test]
#[ignore = "a guest in modelled time for minutes, for --long"]
fn teach_records_a_guest_and_its_simulation() {
    let _place = Place::take();
    let folder = tempfile::tempdir().expect("a folder");
    let output = std::process::Command::new(PERCH)
        .args(["lab", "teach", "-m", "x5570", "--cpus", "2", "--pairs", "1"])
        .args(["--by", "pipe", "--format", "json", "--keep"])
        .arg(folder.path())
        .output()
        .expect("perch");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let kept = std::fs::read(folder.path().join("result.json")).expect("a result");
    assert_eq!(kept, output.stdout);
    let json: serde_json::Value = serde_json::from_slice(&kept).expect("JSON");
    let rates = ["guest", "simulated"].map(|whose| {
        let rate = &json["loads"][0][whose]["per_second"];
        rate.as_f64().expect("a rate")
    });
    assert!(rates[0] > 10_000.0 && rates[1] > 10_000.0, "{rates:?}");
    for name in ["guest-pipe-1.perch", "simulated-pipe-1.perch"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
}
