// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording that is open for reading, with everything that replay and advise both need of it.

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Policy, Topology};
use perch_record::format::{Header, Reader};
use perch_record::{Subject, check_era, no_wake_ups};

use crate::meter::{Meter, Metered, Unit};
use crate::output::{Failure, say};

/// A recording whose header was read.
pub struct Recording {
    /// The path, as the user named it.
    pub path: String,
    /// The wake-ups.
    pub reader: Reader<Box<dyn Read>>,
    /// The recording's header.
    pub header: Header,
    /// The recorded machine.
    pub machine: Machine,
    /// The same machine, as the kernel sees it.
    pub topology: Arc<Topology>,
    /// The model of the recorded kernel.
    pub model: Policy,
}

impl Recording {
    /// Opens a recording (`-` is stdin); its kernel is modelled by the rules of `era`, or of the
    /// era that the recorder found. A long reading shows its progress on a terminal, unless
    /// `quiet`.
    pub fn open(file: &Path, era: Option<Era>, quiet: bool) -> Result<Recording, Failure> {
        if let Some(era) = era {
            check_era(era).map_err(|why| Failure::input(format!("--era {era}: {why}")))?;
        }
        let path =
            if file.as_os_str() == "-" { "stdin".to_string() } else { file.display().to_string() };
        let wrong = |error: String| Failure::input(format!("{path}: {error}"));
        let meter = Meter::new(&path, Unit::Bytes, quiet);
        let input: Box<dyn Read> = if file.as_os_str() == "-" {
            Box::new(BufReader::new(Metered::new(std::io::stdin(), meter, 0)))
        } else {
            let file = perch_file::open(file).map_err(|e| Failure::input(e.to_string()))?;
            let bytes = file.metadata().map_or(0, |found| found.len());
            Box::new(BufReader::with_capacity(1 << 16, Metered::new(file, meter, bytes)))
        };
        let reader = Reader::new(input).map_err(|e| wrong(e.to_string()))?;
        let header = reader.header().clone();
        let Subject { machine, topology, model } =
            Subject::new(&header, era).map_err(|e| wrong(e.to_string()))?;
        Ok(Recording { path, reader, header, machine, topology, model })
    }

    /// The failure of a faulty file.
    pub fn wrong(&self, error: impl std::fmt::Display) -> Failure {
        Failure::input(format!("{}: {error}", self.path))
    }

    /// The failure of a recording without wake-ups, of which no table can be made.
    pub fn no_wake_ups(&self, others: u64) -> Failure {
        self.wrong(no_wake_ups(others))
    }

    /// Says on stderr which parts of the recording are missing. The caller has read everything
    /// before.
    pub fn warn(&self) {
        for missing in self.reader.missing(&self.path) {
            say(format_args!("{missing}"));
        }
    }
}
