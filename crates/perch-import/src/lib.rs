// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of the scheduler's events, by `perf sched record` or trace-cmd, made into workloads
//! that the simulator runs closed-loop: what ran, how long, and who woke whom.
//!
//! [`import`] reads a file; [`Weaver`] makes scripts out of events, wherever they come from.
//! docs/import.md tells what is made of what, and where that is wrong.

mod event;
mod perf;
mod progress;
mod summary;
mod tracecmd;
mod weave;

use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;

use perch_sim::workload::recorded::Script;

pub use event::{Context, Event, Kind, Name, State};
pub use perf::RecordError;
pub use progress::Tell;
pub use summary::{Summary, TaskSummary};
pub use weave::{Options, Weaver};

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// What is in it makes no sense, or cannot be imported: where, and what to do.
    #[error("{0}")]
    Input(String),
    /// A record makes no sense.
    #[error("at byte {at}: {source}: the file is damaged or was cut off")]
    Record {
        /// Where in the file the record begins.
        at: u64,
        /// What is wrong with it.
        source: RecordError,
    },
    /// A program that is needed is missing or failed: which, and what to do.
    #[error("{0}")]
    Reader(String),
}

/// What the file says of its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Which program wrote it.
    pub tool: &'static str,
    /// The kernel's release, if that is in the file.
    pub release: Option<String>,
    /// The CPUs, if they are.
    pub cpus: Option<u32>,
    /// Events that the recorder says were lost.
    pub lost: u64,
}

/// Reads a recording.
///
/// # Errors
/// A file that is neither perf.data nor trace.dat, one that is damaged or lacks the events, or a
/// reader that is not installed; the message says what to do.
pub fn import(path: &Path, options: &Options) -> Result<(Script, Summary), ImportError> {
    import_telling(path, options, &|_, _| {})
}

/// [`import`], which tells how far it is.
///
/// # Errors
/// As [`import`].
pub fn import_telling(
    path: &Path,
    options: &Options,
    tell: Tell,
) -> Result<(Script, Summary), ImportError> {
    let mut magic = Vec::new();
    File::open(path)?.take(16).read_to_end(&mut magic)?;
    let mut weaver = Weaver::new(options);
    let origin = match &magic[..] {
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..]
        | [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => {
            perf::read(path, &mut weaver, tell)?
        }
        [
            0x17,
            0x08,
            0x44,
            b't',
            b'r',
            b'a',
            b'c',
            b'i',
            b'n',
            b'g',
            ..,
        ] => tracecmd::read(path, &mut weaver, tell)?,
        _ => {
            return Err(ImportError::Input(
                "expected a file of perf sched record (perf.data) or of trace-cmd record (trace.dat)".to_string(),
            ));
        }
    };
    weaver.finish(&origin)
}

/// Reads what `trace-cmd report -N -R -t -l` printed: a recording that is looked at elsewhere.
///
/// # Errors
/// As [`import`].
pub fn import_text(
    input: &mut dyn BufRead,
    options: &Options,
) -> Result<(Script, Summary), ImportError> {
    let mut weaver = Weaver::new(options);
    let origin = tracecmd::lines(input, &mut weaver)?;
    weaver.finish(&origin)
}
