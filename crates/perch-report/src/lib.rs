// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of results: for a terminal, in Markdown, CSV and JSON, for a mail and for mmtests.
//! docs/formats.md describes them.
//!
//! This crate computes no results: a table shows the figures of a [`perch_experiment::Report`] or a
//! [`perch_experiment::Comparison`].

mod circumstances;
mod comparison;
mod contention;
mod diff;
mod experiment;
mod figure;
mod format;
mod gate;
mod grid;
#[cfg(feature = "pages")]
mod html;
mod latency;
mod line;
mod paste;
mod perfetto;
mod records;
mod results;
mod settled;
mod shares;
mod trust;

pub use comparison::comparison;
pub use diff::diff;
pub use experiment::experiments;
pub use figure::{figure, percent, share};
pub use format::{Format, ResultFormat, UnknownFormat};
pub use gate::gate_words;
pub use grid::{Align, Grid};
#[cfg(feature = "pages")]
pub use html::html;
pub use paste::{Origin, Paste, paste_comparison, paste_experiments, wrap};
pub use perfetto::PerfettoTrace;
pub use records::{json, write_csv};
pub use results::{Defect, Results, ResultsError};
pub use trust::{trust_lines, trust_lines_of_many};
