// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of wake-ups, as `perch record` writes them, read a block at a time.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use perch_policy::{Era, Policy};
use perch_record::format::{Footer, FormatError, Header, Reader};
use perch_record::{Subject, check_era};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::of_argument;
use crate::machine::Machine;
use crate::replay::{Changes, other};
use crate::rows::Rows;
use crate::wake_ups::{What, rows};

/// A recording: where it was made, and its wake-ups (docs/recordings.md).
#[pyclass(module = "perch", frozen)]
pub struct Recording {
    path: PathBuf,
    era: Option<Era>,
    header: Header,
    machine: perch_machine::Machine,
    model: Policy,
}

#[pymethods]
impl Recording {
    /// Reads the header of a recording. The kernel is modelled by the rules of `era`, or of the era
    /// that the recorder found.
    #[new]
    #[pyo3(signature = (path, *, era=None))]
    fn new(path: PathBuf, era: Option<&str>) -> PyResult<Recording> {
        let era = era.map(read_era).transpose()?;
        let opened = Opened::new(&path, era)?;
        Ok(Recording {
            path,
            era,
            header: opened.reader.header().clone(),
            machine: opened.subject.machine,
            model: opened.subject.model,
        })
    }

    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The version of perch that wrote it.
    #[getter]
    fn perch(&self) -> &str {
        &self.header.perch
    }

    #[getter]
    fn machine(&self) -> Machine {
        Machine(self.machine.clone())
    }

    /// The kernel's release.
    #[getter]
    fn kernel(&self) -> &str {
        &self.header.kernel
    }

    /// The era by whose rules the kernel is modelled.
    #[getter]
    fn era(&self) -> String {
        self.model.era().to_string()
    }

    /// The modes with which the kernel is modelled.
    #[getter]
    fn modes(&self) -> String {
        self.model.modes().to_string()
    }

    /// Ticks per second.
    #[getter]
    fn hz(&self) -> u32 {
        self.header.hz
    }

    /// The command that ran during the recording; empty where none was started for it.
    #[getter]
    fn command(&self) -> Vec<String> {
        self.header.command.clone()
    }

    /// Reads the file to its end, in the memory of a block, and returns its counts: wake_ups and
    /// decisions in the file; dropped, what the recorder lost; cost_ns, the recorder's own time;
    /// undecided, wake-ups that needed no decision, by reason; and cut_off, the byte at which a file
    /// ends that has no end, for which the other counts are missing.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let read = || -> PyResult<(Option<Footer>, Option<u64>)> {
            let Opened { path, mut reader, .. } = Opened::interruptible(&self.path, self.era)?;
            while reader.next_block().map_err(wrong(&path))?.is_some() {}
            Ok((reader.footer().cloned(), reader.cut_off()))
        };
        let (footer, cut_off) = py.detach(read)?;
        let counts = PyDict::new(py);
        counts.set_item("cut_off", cut_off)?;
        if let Some(footer) = footer {
            counts.set_item("wake_ups", footer.wake_ups)?;
            counts.set_item("dropped", footer.dropped)?;
            counts.set_item("cost_ns", footer.cost_ns)?;
            let undecided = PyDict::new(py);
            for (reason, count) in footer.undecided.by_name() {
                undecided.set_item(reason, count)?;
            }
            counts.set_item("undecided", undecided)?;
            let decisions = match footer.decisions {
                Some(found) => {
                    let counts = PyDict::new(py);
                    counts.set_item("recorded", found.recorded)?;
                    counts.set_item("dropped", found.dropped)?;
                    counts.set_item("too_long", found.too_long)?;
                    counts.set_item("cost_ns", found.cost_ns)?;
                    counts.into_bound_py_any(py)?
                }
                None => py.None().into_bound(py),
            };
            counts.set_item("decisions", decisions)?;
        }
        Ok(counts)
    }

    /// Returns the wake-ups with the kernel's choices and the model's, one row each, in the columns
    /// of `perch replay --list`. `modes` adds the choices of a policy with these modes changed.
    #[pyo3(signature = (modes=None))]
    fn wake_ups(&self, modes: Option<Changes>) -> PyResult<Rows> {
        let other = other(self.model, modes)?;
        Ok(rows(self.path.clone(), self.era, What::WakeUps(other)))
    }

    /// Returns the decisions about queues, one row each. `why` says why the model's answer differs,
    /// and `decision` is what `perch replay --list-decisions` prints of it.
    fn decisions(&self) -> Rows {
        rows(self.path.clone(), self.era, What::Decisions)
    }

    fn __repr__(&self) -> String {
        format!(
            "<perch.Recording {}: Linux {} on {} CPUs>",
            self.path.display(),
            self.header.kernel,
            self.machine.cpus.len()
        )
    }
}

/// Reads an era by whose rules a recording can be replayed.
pub fn read_era(text: &str) -> PyResult<Era> {
    let era: Era = (text.parse()).map_err(|error| of_argument(format!("era: {error}")))?;
    check_era(era).map_err(|why| of_argument(format!("era {era}: {why}")))?;
    Ok(era)
}

/// Returns the error of a file that cannot be read any further.
pub fn wrong(path: &str) -> impl Fn(FormatError) -> PyErr {
    move |error| match error {
        // Ctrl-C, which the reader passed on.
        FormatError::Io(io) if io.get_ref().is_some_and(|inner| inner.is::<PyErr>()) => io.into(),
        error => of_argument(format!("{path}: {error}")),
    }
}

/// A file that looks for Ctrl-C whenever it is read.
struct Interruptible(File);

impl Read for Interruptible {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| py.check_signals()).map_err(io::Error::other)?;
        self.0.read(buffer)
    }
}

/// A recording whose header was read and found to be of use.
pub struct Opened {
    /// The path, as errors name it.
    pub path: String,
    /// The blocks.
    pub reader: Reader<Box<dyn Read + Send>>,
    /// The recorded machine and kernel.
    pub subject: Subject,
}

impl Opened {
    pub fn new(path: &Path, era: Option<Era>) -> PyResult<Opened> {
        let file = perch_file::open(path).map_err(|error| of_argument(error.to_string()))?;
        Opened::of(Box::new(file), path, era)
    }

    /// As [`Opened::new`]; Ctrl-C ends the reading. For callers that hand the error to Python.
    pub fn interruptible(path: &Path, era: Option<Era>) -> PyResult<Opened> {
        let file = perch_file::open(path).map_err(|error| of_argument(error.to_string()))?;
        Opened::of(Box::new(Interruptible(file)), path, era)
    }

    /// Reads the header by the rules of `perch replay`.
    fn of(input: Box<dyn Read + Send>, path: &Path, era: Option<Era>) -> PyResult<Opened> {
        let path = path.display().to_string();
        let input: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(1 << 16, input));
        let reader = Reader::new(input).map_err(wrong(&path))?;
        let subject = Subject::new(reader.header(), era)
            .map_err(|error| of_argument(format!("{path}: {error}")))?;
        Ok(Opened { path, reader, subject })
    }

    /// Warns of what the recording lacks. The caller has read it to its end.
    pub fn warn(&self, py: Python<'_>) -> PyResult<()> {
        for lack in self.reader.missing(&self.path) {
            let lack = std::ffi::CString::new(lack).expect("a path has no NUL");
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &lack, 1)?;
        }
        Ok(())
    }
}
