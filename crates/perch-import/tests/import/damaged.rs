// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of files that are cut off, changed, or something else: the import returns an error that
//! says so, and never panics.

use byteorder::LittleEndian;
use perch_import::{Options, import};
use proptest::prelude::*;

use crate::perfdata::{compressed, file, piped, put};
use crate::random::recording;

fn refused(name: &str, bytes: &[u8], words: &str) {
    let path = put(name, bytes);
    let error = import(&path, &Options::default()).expect_err(words).to_string();
    assert!(error.contains(words), "{words}: {error}");
}

fn good() -> Vec<u8> {
    good_of(0)
}

/// A file as perf writes it, compressed, or into a pipe; the last may end after any record.
fn good_of(kind: usize) -> Vec<u8> {
    let file = [file::<LittleEndian>, compressed::<LittleEndian>, piped::<LittleEndian>][kind];
    file(&recording(5, 4, 20, 300).events, 0)
}

#[test]
fn what_cannot_be_read_says_why() {
    let good = good();
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    refused("empty.data", b"", "expected a file of perf sched record");
    refused("text.data", b"perch-workload 1\n", "expected a file of perf sched record");
    let empty = [&good[..8], &[16, 0, 0, 0, 0, 0, 0, 0]].concat();
    refused("pipe.data", &empty, "no events of the kernel's tracepoints");
    refused("unfinished.data", &with(48, &[0; 8]), "perf did not finish");
    refused("short.data", &good[..60], "cut off");
    refused("events.data", &with(16, &[79]), "table of events");
    refused("nothing.data", &with(72, &[0]), "no events of the kernel's tracepoints");
    // The changed byte gives the first event's samples call chains.
    refused("chains.data", &with(120 + 24, &[0x20]), "without -g");
    // The changed byte has the first event begin with a command's exec: perf record without -a.
    refused("alone.data", &with(120 + 41, &[0x10]), "perf record -a");
    // The changed bytes are the first record's kind and size.
    refused("compressed.data", &with(280, &[81]), "compressed records");
    refused("aux.data", &with(280, &[71]), "AUX");
    refused("size.data", &with(286, &[7, 0]), "at byte 280");
    refused("number.data", &with(288, &[1]), "event number 1");
    // Perfetto's: no trace, a packet that is too long, one that is cut off, one that is compressed.
    refused("no.pftrace", b"\n\x01\x0b", "at byte 0: a packet that is not what Perfetto writes");
    refused("long.pftrace", b"\n\xff\xff\xff\xff\x0f", "at byte 0: a packet of 4294967295 bytes");
    refused("cut.pftrace", b"\n\x02\x08\x00\n\x05\x08", "at byte 4: the file ends in a record");
    refused("more.pftrace", b"\n\x02\x08\x00\x12\x00", "at byte 4: a trace that is not");
    refused("deflate.pftrace", b"\n\x03\x92\x03\x00", "compressed: expand them first");
    refused("empty.pftrace", b"\n\x02\x08\x00", "it has no sched_switch events");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn changed_bytes_never_panic(of in 0usize..3, at in any::<prop::sample::Index>(), value in any::<u8>(), more in any::<prop::sample::Index>()) {
        let mut bytes = good_of(of);
        let (at, more) = (at.index(bytes.len()), more.index(bytes.len()));
        bytes[at] = value;
        bytes[more] = bytes[more].wrapping_add(1);
        let path = put("changed.data", &bytes);
        // The import returns a script that ends, or an error with words.
        match import(&path, &Options::default()) {
            Ok((script, _)) => prop_assert_eq!(script.check(), Ok(())),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn files_that_were_cut_off_are_refused(of in 0usize..2, end in any::<prop::sample::Index>()) {
        let bytes = good_of(of);
        let path = put("cut.data", &bytes[..end.index(bytes.len())]);
        prop_assert!(import(&path, &Options::default()).is_err());
    }
}
