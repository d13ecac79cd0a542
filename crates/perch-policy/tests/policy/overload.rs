// SPDX-License-Identifier: GPL-2.0-or-later
//! The counters of overloaded CPUs (docs/testing.md#properties: P3, P10, P11) over random
//! machines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use perch_machine::Machine;
use perch_policy::{Layout, Memory, OutOfMemory, Overload, OverloadLevel, Topology};
use proptest::prelude::*;

use crate::dice::Dice;
use crate::machines;

fn level(cpus: usize) -> OverloadLevel {
    [OverloadLevel::None, OverloadLevel::One, OverloadLevel::More][cpus.min(2)]
}

fn layouts() -> impl Strategy<Value = (Layout, bool)> {
    (prop::sample::select(&Layout::ALL[..]), any::<bool>())
}

proptest! {
    #![proptest_config(crate::config())]

    /// P10, one after another: the counters sum to the CPUs that are counted, none is ever below
    /// zero, each is its own CPUs' count, and every CPU reads as much as matters of the sum.
    #[test]
    fn counters_sum_to_the_cpus_that_are_counted(
        machine in any::<u64>().prop_map(|seed| machines::random(seed, 24)),
        (layout, exact) in layouts(),
        seed in any::<u64>(),
    ) {
        let topology = Topology::new(&machine);
        let counters = Overload::new(layout, exact, &topology).expect("memory");
        let n = topology.nr_cpus();
        let expected = match layout {
            Layout::Shared => 1,
            Layout::Node | Layout::NodePadded => machine.nodes(),
            Layout::LlcPadded => machine.declared_llcs(),
        };
        prop_assert_eq!(counters.counters(), expected);
        let mut dice = Dice::new(seed);
        let mut set = vec![false; n];
        for _ in 0..200 {
            let cpu = dice.below(n);
            set[cpu] = !set[cpu];
            let written = match set[cpu] {
                true => counters.set(cpu),
                false => counters.clear(cpu),
            };
            prop_assert_eq!(written, counters.home(cpu));
            let mut counts = vec![0; expected];
            (0..n).filter(|&c| set[c]).for_each(|c| counts[counters.home(c)] += 1);
            prop_assert_eq!(&counters.counts(), &counts);

            let reader = dice.below(n);
            let reading = counters.read(reader);
            let sum = counts.iter().sum::<i32>() as usize;
            prop_assert_eq!(reading.level, level(sum));
            // No load that could not change the answer, from the own counter on.
            let mut seen = 0;
            let order = (0..expected).map(|i| counts[(counters.home(reader) + i) % expected]);
            let enough = order.take_while(|c| { seen += c; seen <= 1 }).count() + 1;
            let again = if exact && expected > 1 { 2 } else { 1 };
            let loads = if sum > 1 { enough } else { expected * again };
            prop_assert_eq!(reading.loads as usize, loads);
        }
    }

    /// P3: with one node and one LLC every layout reads alike, load for load.
    #[test]
    fn on_one_node_nothing_changes(cpus in 1usize..20, seed in any::<u64>()) {
        let machine = Machine::regular("one", 1, 1, 1, 0, cpus, 1).expect("a machine");
        let topology = Topology::new(&machine);
        let all: Vec<Overload> = Layout::ALL
            .iter()
            .flat_map(|&layout| [false, true].map(|exact| Overload::new(layout, exact, &topology)))
            .collect::<Result<_, _>>()
            .expect("memory");
        let mut dice = Dice::new(seed);
        for _ in 0..50 {
            let (cpu, reader) = (dice.below(cpus), dice.below(cpus));
            let seen: Vec<_> = all
                .iter()
                .map(|o| {
                    let written = if o.is_set(cpu) { o.clear(cpu) } else { o.set(cpu) };
                    (written, o.read(reader))
                })
                .collect();
            prop_assert!(seen.iter().all(|s| *s == seen[0]), "{:?}", seen);
        }
    }

    /// A CPU whose node changes between the two: mode perch lowers what it raised, mode posted
    /// leaves one counter below zero and another up.
    #[test]
    fn a_cpu_that_changes_its_node_lowers_what_it_raised(
        nodes in 2usize..6,
        from in 0usize..6,
        to in 0usize..6,
        exact in any::<bool>(),
    ) {
        let (from, to) = (from % nodes, to % nodes);
        let machine = Machine::regular("nodes", 1, nodes, 1, 0, 2, 1).expect("a machine");
        let topology = Topology::new(&machine);
        let mut counters = Overload::new(Layout::Node, exact, &topology).expect("memory");
        let cpu = (0..topology.nr_cpus()).find(|&c| topology.node(c) == from).expect("a CPU");
        prop_assert_eq!(counters.set(cpu), from);
        counters.rehome(cpu, to);
        prop_assert_eq!(counters.clear(cpu), if exact { from } else { to });
        let counts = counters.counts();
        if exact || from == to {
            prop_assert!(counts.iter().all(|&c| c == 0), "{:?}", counts);
        } else {
            prop_assert_eq!((counts[from], counts[to]), (1, -1));
        }
    }

    /// P11: whichever allocation fails, what was given is given back, once and as it was asked for.
    #[test]
    fn nothing_leaks_when_memory_is_short(
        machine in any::<u64>().prop_map(|seed| machines::random(seed, 24)),
        (layout, exact) in layouts(),
        lasts in 0usize..12,
    ) {
        let topology = Topology::new(&machine);
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let memory = Box::new(Scarce { ledger: ledger.clone(), lasts });
        let made = Overload::new_in(layout, exact, &topology, memory);
        let needed = match layout {
            Layout::Shared => 1,
            Layout::Node | Layout::NodePadded => machine.nodes(),
            Layout::LlcPadded => machine.declared_llcs(),
        } + 1;
        prop_assert_eq!(made.is_ok(), needed <= lasts);
        if let Ok(counters) = made {
            let ledger = ledger.lock().expect("no panic");
            prop_assert_eq!(ledger.alive.len(), needed);
            let padded = if layout.padded() { 128 } else { 8 };
            // Of the node whose CPUs write them.
            for (i, &(bytes, align, node)) in ledger.order.iter().enumerate().skip(1) {
                let cpu = (0..topology.nr_cpus()).find(|&c| counters.home(c) == i - 1);
                let of = topology.node(cpu.expect("every counter has a CPU"));
                prop_assert_eq!((bytes, align, node), (padded, padded, of));
            }
        } else {
            prop_assert_eq!(made.err(), Some(OutOfMemory));
        }
        let ledger = ledger.lock().expect("no panic");
        prop_assert!(ledger.alive.is_empty(), "left: {:?}", ledger.alive);
        prop_assert!(ledger.wrong.is_empty(), "{:?}", ledger.wrong);
    }
}

/// The blocks that were allocated and not given back, and the blocks that were given back without
/// having been allocated.
#[derive(Default)]
struct Ledger {
    alive: BTreeMap<usize, (usize, usize)>,
    order: Vec<(usize, usize, usize)>,
    wrong: Vec<String>,
}

/// Memory for so many blocks.
struct Scarce {
    ledger: Arc<Mutex<Ledger>>,
    lasts: usize,
}

// SAFETY: the global allocator's blocks are what is asked for.
unsafe impl Memory for Scarce {
    fn alloc(&mut self, bytes: usize, align: usize, node: usize) -> *mut u8 {
        let mut ledger = self.ledger.lock().expect("no panic");
        if ledger.order.len() == self.lasts {
            return std::ptr::null_mut();
        }
        let layout = std::alloc::Layout::from_size_align(bytes, align).expect("a layout");
        // SAFETY: no block is empty.
        let block = unsafe { std::alloc::alloc(layout) };
        // The pattern finds out a caller that takes the memory for zero. SAFETY: as long as was
        // asked for.
        unsafe { block.write_bytes(0xa5, bytes) };
        ledger.alive.insert(block as usize, (bytes, align));
        ledger.order.push((bytes, align, node));
        block
    }

    unsafe fn free(&mut self, block: *mut u8, bytes: usize, align: usize) {
        let mut ledger = self.ledger.lock().expect("no panic");
        match ledger.alive.remove(&(block as usize)) {
            Some(was) if was == (bytes, align) => {
                let layout = std::alloc::Layout::from_size_align(bytes, align).expect("a layout");
                // SAFETY: from `alloc`, with this layout, and taken off the ledger just now.
                unsafe { std::alloc::dealloc(block, layout) };
            }
            was => {
                ledger.wrong.push(format!("{block:?} of {bytes} by {align} given back: {was:?}"));
            }
        }
    }
}
