// SPDX-License-Identifier: GPL-2.0-or-later
//! The observer of a run, if there is one.

use crate::observe::{Observed, Observer};

/// An observer, and the first error with which it refused something.
#[derive(Default)]
pub(crate) struct Watch<'a> {
    observer: Option<Box<dyn Observer + 'a>>,
    error: Option<std::io::Error>,
}

impl<'a> Watch<'a> {
    /// Returns whether there is an observer.
    #[inline]
    pub fn is_any(&self) -> bool {
        self.observer.is_some()
    }

    /// Tells the observer that `what` happened at `now_ns`.
    #[cold]
    pub fn tell(&mut self, now_ns: u64, what: &Observed<'_>) {
        let told = (self.observer.as_mut()).map_or(Ok(()), |observer| observer.see(now_ns, what));
        if let Err(error) = told {
            self.error.get_or_insert(error);
        }
    }

    pub fn set(&mut self, observer: Box<dyn Observer + 'a>) {
        self.observer = Some(observer);
    }

    pub fn take(&mut self) -> Option<Box<dyn Observer + 'a>> {
        self.observer.take()
    }

    pub fn take_error(&mut self) -> Option<std::io::Error> {
        self.error.take()
    }
}
