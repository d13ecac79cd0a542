// SPDX-License-Identifier: GPL-2.0-or-later
//! The tasks' programs: the interpreter, and what programs share: channels, pipes, mutexes, futexes,
//! condition variables, counters and timers.
//!
//! Each kind of thing that programs share has a file, which keeps its things for itself and is given
//! the running task's thread and the [`System`] that the task runs on. The interpreter owns one of
//! each kind and sends each operation to its place.
//!
//! Nothing here knows a queue or a class. On a [`System`] a task works, is charged, wakes, forks and
//! arms timers, and the interpreter stops where the task would leave the CPU: the caller has the
//! task sleep, yield, move or end, wherever the task is.

mod channel;
mod condition;
mod counter;
mod cpu_lock;
mod data;
mod futex;
mod interpret;
mod mutex;
mod outside;
mod pipe;
mod shared_line;
mod spin;
mod streak;
mod system;
mod tally;
mod thread;
mod timer;

pub use interpret::{Interpreter, Stop};
pub use outside::OutsideStop;
pub use system::System;
pub use tally::Stopwatch;
