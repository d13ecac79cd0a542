// SPDX-License-Identifier: GPL-2.0-only
//! Guests: real kernels on machines that nobody owns.
//!
//! One half provides what a guest is made of, as an ordinary user and without touching the host's
//! own packages: a [`kernel`], a [`qemu`] that can make the topology, the [`tools`] to run inside
//! and the [`initramfs`] that carries them; what has to be fetched is kept in the [`store`]. The
//! other half turns a machine into a guest, boots it and runs commands in it.

mod apt;
mod cpio;
mod elf;
pub mod error;
pub mod initramfs;
pub mod kernel;
pub mod qemu;
pub mod store;
pub mod tools;

pub use error::{Error, Result};
