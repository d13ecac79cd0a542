// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of files that are cut off, changed, or something else: the import returns an error that
//! says so, and never panics.

use byteorder::LittleEndian;
use perch_import::{Kind, Options, import};
use proptest::prelude::*;

use crate::perfdata::{compressed, dat, file, piped, put, zlib};
use crate::random::recording;
use crate::tracedat::{Pack, zstd};

fn refused(name: &str, bytes: &[u8], words: &str) {
    let path = put(name, bytes);
    let error = import(&path, &Options::default()).expect_err(words).to_string();
    assert!(error.contains(words), "{words}: {error}");
}

fn good() -> Vec<u8> {
    good_of(0)
}

/// A file as perf writes it, compressed, or into a pipe, which may end after any record; and as trace-cmd
/// writes it: version 6, and 7 compressed.
fn good_of(kind: usize) -> Vec<u8> {
    let mut events = recording(5, 4, 20, 300).events;
    events.retain(|event| !matches!(event.kind, Kind::Exec));
    let seven: Option<(&str, Pack)> = match kind {
        0..3 => {
            let file = [file::<LittleEndian>, compressed::<LittleEndian>, piped::<LittleEndian>];
            return file[kind](&events, 0);
        }
        3 => None,
        4 => Some(("zstd", zstd)),
        _ => Some(("zlib", zlib)),
    };
    dat::<LittleEndian>(&events, seven, ("mono", &[]))
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

#[test]
fn trace_dat_that_is_not_read_says_why() {
    let events = recording(5, 4, 20, 300).events;
    let events: Vec<_> = events.into_iter().filter(|event| event.kind != Kind::Exec).collect();
    let plain: Pack = <[u8]>::to_vec;
    let of = |seven, clock: &str, more: &[(u64, &[u8])]| {
        dat::<LittleEndian>(&events, seven, (clock, more))
    };
    let tsc: &[(u64, &[u8])] = &[(14, &[0, 0, 0, 2, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])];
    for seven in [None, Some(("none", plain))] {
        for (clock, more, words) in [
            ("counter", &[][..], "its clock is \"counter\""),
            ("x86-tsc", &[], "its clock is \"x86-tsc\""),
            ("local", &[(12, &[0; 16][..])], "it is a guest's part"),
            ("local", &[(22, &[0; 16])], "a latency tracer"),
            ("local", &[(8, &[1])], "its option 8 of 1 bytes"),
            ("local", &[(5, b"Linux host 4.4.1 x86_64")], "recorded on Linux 4.4.1"),
        ] {
            refused("no.dat", &of(seven, clock, more), words);
        }
        // Two nanoseconds for each tick of the processor's clock.
        let summary = |clock: &str, more: &[(u64, &[u8])]| {
            let path = put("tsc.dat", &of(seven, clock, more));
            import(&path, &Options::default()).unwrap_or_else(|error| panic!("{error}")).1
        };
        let (ns, ticks) = (summary("local", &[]).span_ns, summary("x86-tsc", tsc).span_ns);
        assert_eq!(2 * ns, ticks);
        let guests = summary("local", &[(13, b"vm\0")]).not_modelled;
        assert_eq!(guests["recordings of guests"], 1);
    }
    refused("lzma.dat", &of(Some(("lzma", plain)), "local", &[]), "compressed by \"lzma\"");
    let mut eight = of(None, "local", &[]);
    eight[10] = b'8';
    refused("eight.dat", &eight, "version \"8\": expected 6 or 7");
    // The size that the first section has when it is no longer compressed.
    let mut large = of(Some(("zstd", zstd)), "local", &[]);
    large[55..59].fill(0xff);
    refused("large.dat", &large, "expand to more than 64 times the file");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn changed_bytes_never_panic(of in 0usize..6, at in any::<prop::sample::Index>(), value in any::<u8>(), more in any::<prop::sample::Index>()) {
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
    fn files_that_were_cut_off_are_refused(of in prop::sample::select(vec![0usize, 1, 3, 4, 5]), end in any::<prop::sample::Index>()) {
        let bytes = good_of(of);
        let path = put("cut.data", &bytes[..end.index(bytes.len())]);
        prop_assert!(import(&path, &Options::default()).is_err());
    }
}
