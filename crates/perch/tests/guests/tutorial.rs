// SPDX-License-Identifier: GPL-2.0-or-later
//! The tutorial's commands that boot guests of their own.

use crate::guest::Place;
use crate::page::{self, Kind};

#[test]
fn commands_do_what_the_page_says() {
    let _one_guest_at_a_time = Place::take();
    page::run(&page::TUTORIAL, Kind::Guest);
}
