// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of the scheduler's events, by `perf sched record`, trace-cmd or Perfetto, made into workloads
//! that the simulator runs closed-loop: the tasks, the time that each ran, and the wakers and
//! wakees.
//!
//! [`import`] reads a file; [`Weaver`] makes scripts out of events, wherever the events come from.
//! docs/import.md tells what the import makes of each event, and where the result is wrong.

mod error;
mod event;
mod format;
mod origin;
mod perf;
mod perfetto;
mod progress;
mod summary;
mod tracecmd;
mod tracedat;
mod weave;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use perch_workload::recorded::Script;

pub use error::ImportError;
pub use event::{Context, Event, Kind, Name, State};
pub use origin::Origin;
pub use perf::RecordError;
use progress::Told;

pub use progress::Tell;
pub use summary::{Summary, TaskSummary};
pub use weave::{Options, Weaver};

/// Reads a recording.
///
/// # Errors
/// Returns an error for a file of none of the kinds, and for one that is damaged or
/// lacks the events; the message says what to do.
pub fn import(path: &Path, options: &Options) -> Result<(Script, Summary), ImportError> {
    import_telling(path, options, &|_, _| {})
}

/// Reads a recording like [`import`], and reports its progress.
///
/// # Errors
/// Returns the errors of [`import`].
pub fn import_telling(
    path: &Path,
    options: &Options,
    tell: Tell,
) -> Result<(Script, Summary), ImportError> {
    let mut magic = Vec::new();
    perch_file::open(path)?.take(512).read_to_end(&mut magic)?;
    let mut weaver = Weaver::new(options);
    let origin = match &magic[..] {
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..]
        | [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => {
            perf::read(path, &mut weaver, tell)?
        }
        [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g', ..] => {
            tracedat::read(path, &mut weaver, tell)?
        }
        text if is_a_trace(text) => {
            let file = perch_file::open(path)?;
            let bytes = file.metadata()?.len();
            let mut input = BufReader::new(Told::new(file, bytes, tell));
            tracecmd::lines(&mut input, &mut weaver)?
        }
        // A trace's first field.
        [0x0a, ..] => perfetto::read(path, &mut weaver, tell)?,
        _ => {
            return Err(ImportError::Input(
                "expected a file of perf sched record (perf.data), of trace-cmd record (trace.dat) or of Perfetto, or the text of trace-cmd report or of the kernel's own trace".to_string(),
            ));
        }
    };
    weaver.finish(&origin)
}

/// Returns true for the beginning of a trace as text: the kernel's, or what trace-cmd report prints.
fn is_a_trace(begin: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begin);
    let begins = ["# tracer:", "cpus=", "CPU:", "version = "];
    begins.iter().any(|word| text.starts_with(word)) || text.contains(": sched_")
}

/// Reads the output of `trace-cmd report -N -R -t -l`, for a recording that was converted to text
/// elsewhere.
///
/// # Errors
/// Returns the errors of [`import`].
pub fn import_text(
    input: &mut dyn BufRead,
    options: &Options,
) -> Result<(Script, Summary), ImportError> {
    let mut weaver = Weaver::new(options);
    let origin = tracecmd::lines(input, &mut weaver)?;
    weaver.finish(&origin)
}
