// SPDX-License-Identifier: GPL-2.0-or-later
//! What the crate takes from the tree: the experiments that the program carries, and the digest of the
//! model.

mod library;
mod model;

fn main() {
    library::list();
    model::digest();
}

/// Ends the build with a message instead of a panic's backtrace.
fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1)
}
