// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the rules of the real-time band: their meaning, and the rules that are refused.

use super::*;

fn refusal(text: &str) -> String {
    text.parse::<Band>().unwrap_err().to_string()
}

#[test]
fn a_rule_is_read_as_it_is_shown() {
    for text in [
        "comm=ffmpeg*,priority=50",
        "cgroup=/rt/audio,priority=99,slice_ms=10",
        "nice=-20,priority=1",
        "comm=a?c,cgroup=/,nice=5,priority=7",
        "comm=jackd,user=audio,priority=3",
        "user=1000,priority=3",
    ] {
        let band: Band = text.parse().unwrap();
        assert_eq!(band.to_string(), text);
    }
    let band: Band = "nice=3,policy=rr,priority=2".parse().unwrap();
    assert_eq!(band.slice_ms, Some(Millis(100)));
    let band: Band = "nice=3,policy=fifo,priority=2".parse().unwrap();
    assert_eq!(band.slice_ms, None);
}

#[test]
fn refusals_name_the_key_and_what_was_expected() {
    let said = refusal("comm=x,priority=100");
    assert_eq!(said, "band \"comm=x,priority=100\": priority: 100: expected 1 to 99");
    for (text, words) in [
        ("comm=x", "no priority: expected priority = 1 to 99"),
        ("priority=5", "expected comm, cgroup, nice or user"),
        ("priority", "expected KEY=VALUE"),
        ("nice=high,priority=5", "nice: \"high\": expected a whole number"),
        ("nice=20,priority=5", "nice: 20: expected -20 to 19"),
        ("nice=1,priority=300", "priority: 300: expected 1 to 99"),
        ("prio=5,comm=x", "unknown key \"prio\": expected comm, cgroup, nice, user"),
        ("comm=,priority=5", "comm: \"\": expected a command's name"),
        ("comm=0123456789abcdef,priority=5", "at most 15 characters"),
        ("cgroup=rt,priority=5", "expected a cgroup's path"),
        ("user=-1,priority=5", "user: \"-1\": expected a user's name"),
        ("cgroup=/rt/,priority=5", "expected a cgroup's path"),
        ("cgroup=/a/../b,priority=5", "expected a cgroup's path"),
        ("comm=x,priority=5,policy=edf", "policy: \"edf\": expected fifo or rr"),
        ("comm=x,priority=5,policy=fifo,slice_ms=3", "expected policy = \"rr\""),
        ("comm=x,priority=5,slice_ms=0", "slice_ms: 0: expected 1 to 1000"),
        ("comm=x,priority=5,comm=y", "comm is there twice"),
    ] {
        let said = refusal(text);
        assert!(said.contains(words), "{said}");
    }
    let long = format!("cgroup=/{},priority=5", "x".repeat(64));
    assert!(refusal(&long).contains("at most 63 characters"));
    let long = format!("cgroup={},priority=5", "/xxxxxxxx".repeat(25));
    assert!(refusal(&long).contains("at most 191 characters"));
}

#[test]
fn a_path_becomes_its_folders() {
    let band: Band = "cgroup=/rt/audio,priority=9".parse().unwrap();
    let image = band.image();
    assert_eq!((image.depth, image.flags), (2, interface::BAND_CGROUP));
    assert!(image.path.starts_with(b"rt\0audio\0\0"));
    let root: Band = "cgroup=/,priority=9".parse().unwrap();
    assert_eq!(root.image().depth, 0);
}
