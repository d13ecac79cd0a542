//! The perch command.
fn main() {}
