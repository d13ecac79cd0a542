// SPDX-License-Identifier: GPL-2.0-only
//! The drawing of every library machine is kept as a snapshot, for people to look at in review.

use perch_machine::draw::draw;
use perch_machine::{Machine, library};
use proptest::prelude::*;

#[test]
fn library_machines() {
    for name in library::names() {
        let drawing = draw(&library::load(name).unwrap(), 80);
        insta::assert_snapshot!(name, drawing);
    }
}

#[test]
fn every_line_of_a_library_machine_fits_80_columns() {
    for name in library::names() {
        let drawing = draw(&library::load(name).unwrap(), 80);
        for line in drawing.lines().filter(|line| line.starts_with(['+', '|'])) {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
    }
}

proptest! {
    /// An irregular machine is drawn too, in as many grids as it needs.
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
