// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the rules of `--partial`: their meaning, and the rules that are refused.

use super::*;

fn refusal(text: &str) -> String {
    text.parse::<Partial>().unwrap_err().to_string()
}

#[test]
fn a_rule_is_read_as_it_is_shown() {
    for text in ["cgroup=/web", "comm=nginx*,cgroup=/,user=33", "user=www-data"] {
        assert_eq!(text.parse::<Partial>().unwrap().to_string(), text);
    }
    // A scope of a container, which is longer than the band has room for.
    let long = format!("cgroup=/docker-{}.scope", "0123456789abcdef".repeat(16));
    assert_eq!(long.parse::<Partial>().unwrap().to_string(), long);
}

#[test]
fn refusals_name_the_key_and_what_was_expected() {
    assert_eq!(
        refusal("cgroup=web"),
        "partial \"cgroup=web\": cgroup: \"web\": expected a cgroup's path below /sys/fs/cgroup, such \
         as /rt or /rt/audio"
    );
    for (text, words) in [
        ("", "\"\": expected KEY=VALUE, such as cgroup=/web"),
        ("cgroup", "\"cgroup\": expected KEY=VALUE"),
        ("nice=3", "unknown key \"nice\": expected comm, cgroup or user"),
        ("user=1,user=2", "user is there twice"),
        ("comm=", "comm: \"\": expected a command's name"),
        ("comm=0123456789abcdef", "at most 15 characters"),
        ("user=", "user: \"\": expected a user's name"),
        ("user=-1", "user: \"-1\": expected a user's name"),
        ("user=4294967295", "user: \"4294967295\": expected a user's name"),
    ] {
        let said = refusal(text);
        assert!(said.contains(words), "{said}");
    }
}
