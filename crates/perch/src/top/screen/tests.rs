// SPDX-License-Identifier: GPL-2.0-or-later

use perch_plan::interface::Event;
use perch_scheduler::stats::{About, Cache, Decisions, GroupWaits, Waits};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::top::groups::Group;

/// The report of a scheduler that has been loaded for so many seconds.
fn report(seconds: u64) -> Report {
    let mut report = Report {
        uptime_ns: seconds * 1_000_000_000,
        busy_ns: seconds * 3_000_000_000,
        restarts: 1,
        about: About {
            machine: "A CPU".to_string(),
            kernel: "7.2.12".to_string(),
            modes: "cluster=perch,cache=upstream".to_string(),
            cpus: 8,
            ..About::default()
        },
        ..Report::default()
    };
    for (name, each) in [("target idle", 100), ("cluster scan", 300), ("hint", 0)] {
        let wakeups = each * seconds;
        let name = name.to_string();
        report.reasons.insert(name, Decisions { wakeups });
    }
    for (event, count) in
        [(Event::Direct, 400 * seconds), (Event::Queued, 50 * seconds), (Event::Revived, 7)]
    {
        report.events.insert(event.name().to_string(), count);
    }
    for (number, share) in [(0, 2), (1, 1), (10, 0)] {
        let cache = Cache {
            node: number / 10,
            cpus: 4,
            busy_ns: seconds * share * 1_000_000_000,
            runnable: share,
        };
        report.llcs.insert(number.to_string(), cache);
    }
    report
}

fn with_waits(mut report: Report) -> Report {
    let seconds = report.uptime_ns / 1_000_000_000;
    for (name, buckets) in [
        ("idle", [0, 0, 390 * seconds, 10 * seconds, 0]),
        ("queued", [0, 0, 0, 0, 50 * seconds]),
        ("limited", [0; 5]),
    ] {
        let waits = Waits { count: buckets.iter().sum(), sum_ns: 0, buckets: buckets.to_vec() };
        report.waits.insert(name.to_string(), waits);
    }
    report
}

/// What a screen of this size shows.
fn screen(state: &mut State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let lines = buffer.content().chunks(usize::from(width.max(1)));
    let lines = lines.map(|cells| {
        let text: String = cells.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", text.trim_end())
    });
    lines.collect()
}

fn press(state: &mut State, code: KeyCode) -> bool {
    state.press(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Groups in the order in which they are looked for.
fn busy() -> Vec<Group> {
    let group = |path: &str, cpus, waited, weight, limit| Group {
        path: path.to_string(),
        cpus,
        waited,
        weight,
        limit,
    };
    vec![
        group("system.slice", 2.5, Some(0.125), Some(100), None),
        group("system.slice/database.service", 2.25, Some(0.031), None, Some(3.5)),
        group("user.slice", 0.004, None, Some(10_000), None),
    ]
}

fn watched() -> State {
    let mut state = State::new(with_waits(report(60)));
    state.take(with_waits(report(62)), busy());
    state
}

#[test]
fn a_wide_screen_has_all_side_by_side() {
    insta::assert_snapshot!(screen(&mut watched(), 110, 19), @r"
    perch has been up for 00:01:02, loaded again once: 8 CPUs of A CPU, Linux 7.2.12
    cluster=perch cache=upstream
    400 wake-ups/s, CPUs 37.5 % busy

    by rate                                  /s        total  waits, µs         /s    median       p99       max
    direct                    event       400.0        24800  idle           400.0        ≤4        ≤8        ≤8
    cluster scan              reason      300.0        18600  queued          50.0        >8        >8        >8
    target idle               reason      100.0         6200
    queued                    event        50.0         3100  LLC             node      CPUs      busy  runnable
    revived                   event         0.0            7  0                  0         4      2.00         2
                                                              1                  0         4      1.00         1
                                                              10                 1         4      0.00         0

                                                              group                 CPUs   waits  weight   limit
                                                              system.slice          2.50  12.5 %     100       -
                                                              …e/database.service   2.25   3.1 %       -    3.50
                                                              user.slice            0.00       -   10000       -

    q quit  arrows scroll
    ");
}

#[test]
fn groups_have_their_waits_where_they_are_counted() {
    let with_groups = |seconds: u64| {
        let mut report = report(seconds);
        for (path, buckets) in [
            ("/system.slice", vec![seconds, 0, 0, 0]),
            ("/system.slice/database.service", vec![0, 0, seconds, 0]),
        ] {
            let group = GroupWaits {
                waits: Waits { count: buckets.iter().sum(), sum_ns: 0, buckets },
                ..GroupWaits::default()
            };
            report.group_waits.insert(path.to_string(), group);
        }
        report
    };
    let mut state = State::new(with_groups(60));
    state.take(with_groups(62), busy());
    let text = screen(&mut state, 110, 19);
    let right = text.lines().map(|line| line.chars().skip(58).collect::<String>());
    let from = right.skip_while(|line| !line.trim_start().starts_with("group "));
    let lines: Vec<_> = from.take(4).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    group                 CPUs   waits p99, µs   limit
    system.slice          2.50  12.5 %      ≤4       -
    …e/database.service   2.25   3.1 %      ≤4    3.50
    user.slice            0.00       -       -       -
    ");
}

#[test]
fn a_narrow_screen_has_the_counts_last() {
    insta::assert_snapshot!(screen(&mut watched(), 60, 22), @r"
    perch has been up for 00:01:02, loaded again once: 8 CPUs of
    cluster=perch cache=upstream
    400 wake-ups/s, CPUs 37.5 % busy

    waits, µs         /s    median       p99       max
    idle           400.0        ≤4        ≤8        ≤8
    queued          50.0        >8        >8        >8

    group                 CPUs   waits  weight   limit
    system.slice          2.50  12.5 %     100       -
    …e/database.service   2.25   3.1 %       -    3.50

    by rate                                     /s        total
    direct                       event       400.0        24800
    cluster scan                 reason      300.0        18600
    target idle                  reason      100.0         6200
    queued                       event        50.0         3100
    revived                      event         0.0            7



    q quit  arrows scroll
    ");
}

#[test]
fn a_small_screen_leaves_tables_out() {
    insta::assert_snapshot!(screen(&mut watched(), 40, 9), @r"
    perch has been up for 00:01:02, loaded a
    cluster=perch cache=upstream
    400 wake-ups/s, CPUs 37.5 % busy

    by rate                  /s        total
    direct                400.0        24800
    cluster scan          300.0        18600
    target idle           100.0         6200
    q quit  arrows scroll
    ");
}

#[test]
fn a_wide_screen_has_the_first_of_many_caches() {
    let mut many = report(60);
    for number in 0..40 {
        many.llcs.insert(number.to_string(), Cache::default());
    }
    let text = screen(&mut State::new(many), 110, 14);
    let shown = text.lines().filter(|line| line.ends_with("  0.00         0"));
    assert_eq!(shown.count(), 8, "{text}");
}

#[test]
fn no_size_is_too_small() {
    for width in 0..12 {
        for height in 0..12 {
            screen(&mut watched(), width, height);
        }
    }
}

#[test]
fn arrows_scroll_and_q_ends() {
    let mut state = State::new(report(60));
    let first = |state: &mut State| {
        let text = screen(state, 60, 8);
        text.lines().nth(5).unwrap_or_default().to_string()
    };
    assert!(first(&mut state).starts_with("direct"), "{state:?}");
    assert!(!press(&mut state, KeyCode::Down));
    assert!(first(&mut state).starts_with("cluster scan"), "{state:?}");
    press(&mut state, KeyCode::End);
    assert!(!screen(&mut state, 60, 8).contains("direct"));
    // Scrolling stops at the end, so one key leads back up.
    press(&mut state, KeyCode::Up);
    assert!(first(&mut state).starts_with("target idle"), "{state:?}");
    assert!(press(&mut state, KeyCode::Char('q')));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(state.press(control_c) && !press(&mut state, KeyCode::Char('c')));
}

#[test]
fn a_scheduler_that_goes_is_said_to_be_gone() {
    let mut state = watched();
    state.lose("the scheduler has ended");
    state.lose("no scheduler gives statistics");
    let text = screen(&mut state, 110, 14);
    assert!(text.contains("no scheduler gives statistics; the figures are the last ones"));
    assert!(text.contains("gone once since perch top watches"), "{text}");
    // The next one counts from its own beginning.
    state.take(report(2), Vec::new());
    let text = screen(&mut state, 110, 14);
    assert!(text.contains("400 wake-ups/s"), "{text}");
    assert!(!text.contains("the last ones"), "{text}");
}

#[test]
fn names_do_not_steer_the_terminal() {
    let hostile = "\u{202e}\u{1b}";
    let mut report = with_waits(report(60));
    report.about = About {
        machine: hostile.to_string(),
        kernel: hostile.to_string(),
        modes: hostile.to_string(),
        band: hostile.to_string(),
        partial: hostile.to_string(),
        cpus: 8,
    };
    let decisions = Decisions { wakeups: 1 };
    report.reasons.insert(hostile.to_string(), decisions);
    let cache = report.llcs["0"];
    report.llcs.insert("\u{202e}".to_string(), cache);
    let mut state = State::new(report.clone());
    let mut groups = busy();
    groups[0].path = format!("a/{hostile}");
    state.take(report, groups);
    state.lose(hostile);
    let text = screen(&mut state, 300, 40);
    assert_eq!(text, escaped(&text));
    assert_eq!(text.matches("\\u202e").count(), 9, "{text}");
}
