// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of lists of CPUs in the kernel's notation.

use perch_machine::cpulist::{format, parse};

#[test]
fn lists_read_as_the_kernel_reads_them() {
    assert_eq!(parse("0,3-5").unwrap(), [0, 3, 4, 5]);
    assert_eq!(parse("0-9:2/4\n").unwrap(), [0, 1, 4, 5, 8, 9]);
    assert_eq!(parse("").unwrap(), [0u32; 0]);
}

#[test]
fn bad_lists_are_refused_in_words() {
    for (text, words) in [
        ("0,,1", "is not a number"),
        ("a-b", "`a` in `a-b` is not a number"),
        ("5-3", "runs backwards"),
        ("0-3,2", "CPU 2 is named twice"),
        ("8192", "beyond the 8192"),
        ("0-99999999999", "beyond the 8192"),
        ("0-3:1", "lacks the `/`"),
        ("0-3:0/2", "takes 0 of every 2"),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.contains(words), "{text}: {message}");
    }
}

#[test]
fn what_is_written_reads_back() {
    for cpus in [vec![], vec![7], vec![0, 1, 2, 9, 11, 12]] {
        assert_eq!(parse(&format(&cpus)).unwrap(), cpus);
    }
}
