// SPDX-License-Identifier: GPL-2.0-or-later
//! Guests: real kernels on machines that nobody owns.
//!
//! One half provides the parts of a guest, as an ordinary user and without touching the host's own
//! packages: a [`kernel`], a [`qemu`] that can make the topology, the [`tools`] to run inside and
//! the [`initramfs`] that carries them; the [`store`] keeps every part that has to be fetched. The
//! other half turns a machine into a guest, boots it and runs commands in it.

pub mod agent;
mod apt;
pub mod arch;
pub mod coherence;
mod console;
mod cpio;
mod elf;
pub mod error;
mod fdt;
pub mod guest;
mod image;
pub mod initramfs;
pub mod kernel;
mod process;
pub mod progress;
pub mod qemu;
pub mod store;
pub mod tools;
pub mod topology;
mod tree;

pub use arch::Arch;
pub use error::{Error, Result};
pub use progress::{Progress, Silent};
pub use store::Store;
pub use topology::{Cpus, Topology};
