// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulated kernel, for as long as it is in a function of the class.

use std::cell::Cell;
use std::ptr;

use perch_sched::ExtKernel;

/// The kernel that has called the class. The program knows nothing of it when it calls a function of
/// ours, so its address waits here meanwhile.
///
/// The contract: there is an address here only while [`Kernel::lend`] has the kernel exclusively,
/// and not while [`Kernel::ask`] uses it. So nobody has it twice, and nobody has it later.
#[derive(Default)]
pub(crate) struct Kernel(Cell<*mut ExtKernel<'static>>);

/// Ends the loan, also when the work panics.
struct Loan<'k>(&'k Kernel);

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.0.0.set(ptr::null_mut());
    }
}

impl Kernel {
    /// Runs `work` while `kernel` is at hand for [`Kernel::ask`], also for what the program calls.
    pub fn lend<T>(&self, kernel: &mut ExtKernel<'_>, work: impl FnOnce() -> T) -> T {
        let kernel: *mut ExtKernel<'_> = kernel;
        self.0.set(kernel.cast());
        let _loan = Loan(self);
        work()
    }

    /// Asks the kernel. `question` must neither ask it again nor call the program.
    ///
    /// # Panics
    /// The kernel is in no function of the class, or is being asked.
    pub fn ask<T>(&self, question: impl FnOnce(&mut ExtKernel<'_>) -> T) -> T {
        let kernel = self.0.replace(ptr::null_mut());
        assert!(!kernel.is_null(), "the kernel is asked from outside of it");
        // SAFETY: by the contract the address is that of a kernel which nobody else uses now, and
        // `question` cannot keep it, since it takes one of any lifetime.
        let answer = question(unsafe { &mut *kernel });
        self.0.set(kernel);
        answer
    }
}
