// SPDX-License-Identifier: GPL-2.0-or-later
//! The drawing of every library machine is kept as a snapshot, for people to look at in review.

use perch_machine::draw::draw;
use perch_machine::{Machine, library};
use proptest::prelude::*;

/// The costs and sources of a library machine change with every better measurement and its shape
/// does not, so the snapshot keeps only the shape, of those machines that have something of their
/// own to show. The snapshot below keeps the lines of costs, for a machine that nobody calibrates.
#[test]
fn library_machines() {
    for name in library::names() {
        let drawing = draw(&library::load(name).unwrap(), 80);
        let (shape, costs) = drawing.split_once("\ncaches ").unwrap();
        assert!(costs.contains("\ntransfer ") && costs.contains("\nsource "), "{costs}");
        for line in drawing.lines().filter(|line| line.starts_with(['+', '|'])) {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        if ["epyc7543", "juno", "kunpeng920", "pixel3-phantom"].contains(&name) {
            insta::assert_snapshot!(name, shape);
        }
    }
}

#[test]
fn costs_of_a_machine_with_every_level() {
    let machine = Machine::regular("all-levels", 2, 2, 2, 2, 2, 2).unwrap();
    insta::assert_snapshot!("all-levels", draw(&machine, 80));
}

proptest! {
    /// `draw` draws an irregular machine too, in as many grids as it needs.
    #[test]
    fn random_machines_are_drawn(seed: u64, max_cpus in 1..300usize, width in 0..200usize) {
        let machine = Machine::random(seed, max_cpus);
        let drawing = draw(&machine, width);
        for line in drawing.lines().filter(|line| line.starts_with(['+', '|'])) {
            prop_assert!(line.len() <= width.max(40), "{}", line);
        }
        prop_assert!(drawing.contains("transfer"));
    }
}

#[test]
fn the_largest_machine_is_drawn_at_once() {
    let machine = Machine::regular("large", 8, 4, 4, 8, 4, 2).unwrap();
    let drawing = draw(&machine, 80);
    assert!(drawing.contains("7 more"), "{drawing}");
}
