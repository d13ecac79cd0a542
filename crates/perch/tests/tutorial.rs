// SPDX-License-Identifier: GPL-2.0-or-later
//! The commands of the tutorial and of formats.md print the output that the page shows; the guests'
//! program runs those that boot guests.

#[path = "support/page.rs"]
mod page;

use page::{Kind, fits, steps};

#[test]
fn simulated_commands_of_the_tutorial_print_what_the_page_shows() {
    page::run(&page::TUTORIAL, Kind::Simulated);
}

#[test]
fn commands_of_the_formats_print_what_the_page_shows() {
    page::run(&page::FORMATS, Kind::Simulated);
}

#[test]
fn commands_are_found_with_their_kind_and_output() {
    let page = "Text.\n```console\n$ one \\\n>   more\na\n> b\n\n$ two\n```\n\
                ```console guest\n$ three\nc\n```\n```text\nshown\n```\n```sh\n$ never\n```\n";
    let found = steps(page).unwrap();
    let found: Vec<_> =
        found.iter().map(|s| (s.kind, s.line, s.command.as_str(), s.shown.as_str())).collect();
    assert_eq!(
        found,
        [
            (Kind::Simulated, 3, "one \\\n  more", "a\n> b\n\n"),
            (Kind::Simulated, 8, "two", ""),
            (Kind::Guest, 11, "three", "c\n"),
        ]
    );
}

#[test]
fn a_command_that_no_test_would_run_is_refused() {
    for page in [
        "```\nperch machine list\n```\n",
        "```text\nx\n  $ perch run\n```\n",
        "Text.\n\n    sudo perch run\n",
        "```console of-another-name\n$ perch run\n```\n",
    ] {
        let refused = steps(page).unwrap_err();
        assert!(refused.contains("no test runs `"), "{refused}");
    }
    let refused = steps("```console\nfirst\n$ perch\n```\n").unwrap_err();
    assert!(refused.contains("line 2: no command printed"), "{refused}");
    let refused = steps("```console\n$ perch\n").unwrap_err();
    assert!(refused.contains("never ends"), "{refused}");
}

#[test]
fn a_gap_stands_for_anything_and_nothing_else_does() {
    let held = |shown, output| fits(Kind::Simulated, shown, output);
    let output = "head\na 1\nb 2\na 1\nend\n\n";
    for shown in [
        "head\na 1\nb 2\na 1\nend\n",
        "...\na 1\nend\n",
        "head\n...\n",
        "h... \n...\nb ...2\n...\nend",
    ] {
        assert_eq!(held(shown, output), Ok(()), "{shown}");
    }
    for shown in
        ["", "head\n...\na 1\n", "head\n...\nb 3\n...\nend\n", "a 1\n...\n", "head\na  1\n...\n"]
    {
        assert!(held(shown, output).is_err(), "{shown}");
    }
    assert!(held("...\nb 3\n...\n", output).unwrap_err().contains("`b 3`"));
}

#[test]
fn a_guest_may_have_other_numbers_and_rows_and_no_other_words() {
    let held = |shown, output| fits(Kind::Guest, shown, output);
    let output = "run.perch: 10,056 wake-ups in 6.0 s\nreason  share\n\
                  busy    97.43 %\nidle     2.57 %\n----  --\nend of it\n";
    for shown in [
        "run.perch: 7 wake-ups in 12.25 s\nreason share\nslow path  1 %\n-- -\nend of\nit",
        "... wake-ups in 6 s ... of it",
    ] {
        assert_eq!(held(shown, output), Ok(()), "{shown}");
    }
    for shown in [
        "run.perch: ten wake-ups ...",
        "... reason share ---- -- end of it",
        "... reason otherwise ...",
        "... 6.0 ms ...",
        "... end of",
    ] {
        assert!(held(shown, output).is_err(), "{shown}");
    }
}
