// SPDX-License-Identifier: GPL-2.0-or-later
//! A running guest as its processes see it: QEMU, the console, and the two ways to ask for something.

use std::sync::Mutex;
use std::time::Duration;

use super::hypervisor::Hypervisor;
use super::link::Link;
use super::log::trouble;
use super::monitor::Monitor;
use crate::agent::frame::Request;
use crate::console::Console;
use crate::error::{Error, Result};

/// Lines of the console that an error shows.
const LAST_LINES: usize = 20;

/// The state that a guest and its processes have in common.
pub(super) struct Shared {
    pub hypervisor: Hypervisor,
    pub console: Console,
    pub link: Link,
    pub monitor: Mutex<Monitor>,
}

impl Shared {
    /// Sends a request to the agent.
    ///
    /// # Errors
    /// [`Error::Input`] when the request is too long, [`Error::Guest`] when the guest is gone.
    pub fn ask(&self, request: &Request) -> Result<()> {
        self.link.send(request).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidInput => Error::Input(error.to_string()),
            _ => self.gone(),
        })
    }

    /// The error that says that the guest is gone.
    pub fn gone(&self) -> Error {
        let what = match self.hypervisor.wait(Duration::from_secs(2)) {
            Some(status) => format!("the guest is gone: QEMU ended with {status}"),
            None => "the agent in the guest is gone".to_string(),
        };
        self.error(what)
    }

    /// The error that tells `what` happened, with the words of QEMU and of the guest's kernel.
    pub fn error(&self, mut what: String) -> Error {
        let said = self.hypervisor.said();
        if !said.is_empty() {
            what = format!("{what}; QEMU said:\n{said}");
        }
        let console = self.console.tail(LAST_LINES);
        // A panic's reason stands before its long trace.
        let text = self.console.text();
        if let Some(first) = trouble(&text).first().filter(|line| !console.contains(**line)) {
            what = format!("{what}; its kernel said: {first}");
        }
        Error::Guest { what, console }
    }
}
