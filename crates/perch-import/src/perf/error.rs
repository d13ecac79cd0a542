// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of a record of perf.data.

/// The reason why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file ends before the record does.
    #[error("the file ends in a record")]
    CutOff,
    /// The record is shorter than its own head.
    #[error("a record of less than 8 bytes")]
    Short,
    /// A tracepoint's bytes do not name the tracepoint.
    #[error("an event of less than 2 bytes")]
    ShortEvent,
    /// The record is of an event that the file does not describe.
    #[error("a record of event number {0}, which the file does not describe")]
    NoEvent(u64),
    /// A tracepoint lacks a field that it has in every kernel.
    #[error("{event} without its field {field}")]
    NoField {
        /// The tracepoint's name.
        event: String,
        /// The field's name.
        field: &'static str,
    },
    /// The time or the CPU of an event is not known.
    #[error("a sample without time and CPU: record with perf sched record")]
    NoTime,
    /// The bytes of a message are not a protocol buffer's.
    #[error("a {0} that is not what Perfetto writes")]
    Message(&'static str),
    /// A packet is longer than any of Perfetto's.
    #[error("a packet of {bytes} bytes: expected {most} at most")]
    Long {
        /// Its length.
        bytes: u64,
        /// The greatest length.
        most: u64,
    },
    /// The compressed records are no zstd.
    #[error("compressed records that are damaged: {0}")]
    Packed(String),
    /// A trace.dat has parts that overlap, or that expand to more than any recording does.
    #[error("parts that overlap, or expand to more than {0} times the file")]
    Expands(u64),
    /// What a trace.dat says of itself has another form.
    #[error("a part that is not what trace-cmd writes")]
    Head,
    /// A page of a ring buffer has another form.
    #[error("a page that is not what the kernel writes")]
    Page,
    /// The record is shorter than its event's attributes require.
    #[error("{0}")]
    Unread(#[source] std::io::Error),
}
