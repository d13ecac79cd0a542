// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch stats`: shows the statistics of a loaded scheduler. `perch run` shows its own with the
//! same functions.

use std::cmp::Reverse;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use perch_plan::interface::{Event, WaitReason};
use perch_policy::Reason;
use perch_report::{Align, Grid, share};
use perch_scheduler::stats::{
    Client, GroupWaits, Listener, Report, SOCKET, Waits, openmetrics, prometheus,
};

use crate::arguments::{BadValue, duration_ns};
use crate::output::{Failure, emit, emit_data, say};

/// The arguments of `perch stats`.
#[derive(Args)]
pub struct Arguments {
    /// Show what happened in each interval, until Ctrl-C, instead of the sums since it was loaded
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,
    /// Say what each reason, event and wait means, and end
    #[arg(long, exclusive = true)]
    explain: bool,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Form::Table, value_name = "FORMAT")]
    format: Form,
    /// Answer http://ADDRESS/metrics, for Prometheus and its like, until Ctrl-C; for example
    /// 127.0.0.1:9843. Without a scheduler the metrics say that none is up
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with_all = ["interval", "format"])]
    listen: Option<SocketAddr>,
    /// Where the scheduler gives its statistics
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    socket: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For a person
    Table,
    /// One object; with --interval one per line, counting from when it was loaded
    Json,
    /// For Prometheus and its like
    Openmetrics,
    /// Prometheus's older text, as node_exporter reads it from files
    Prometheus,
}

/// A duration from 100 ms to an hour.
pub fn interval(text: &str) -> Result<Duration, BadValue> {
    match duration_ns(text) {
        Ok(ns) if ns >= 100_000_000 => Ok(Duration::from_nanos(ns)),
        _ => Err("expected a time from 100ms to 3600s, for example 1s".into()),
    }
}

/// An address to listen at.
fn address(text: &str) -> Result<SocketAddr, BadValue> {
    let wrong = "expected an IP address and a port, for example 127.0.0.1:9843 or [::]:9843";
    text.parse().map_err(|_| wrong.into())
}

/// Carries out `perch stats`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.explain {
        return emit(&explained());
    }
    let is_exposition = matches!(arguments.format, Form::Openmetrics | Form::Prometheus);
    if arguments.interval.is_some() && is_exposition {
        return Err(Failure::input(
            "--interval and --format openmetrics or prometheus: an exposition is one moment's; \
             let the collector ask as often as it likes",
        ));
    }
    if let Some(address) = arguments.listen {
        return listen(address, arguments.socket);
    }
    let mut client = Client::connect(&arguments.socket)?;
    let mut last = client.report()?;
    let Some(interval) = arguments.interval else {
        return match arguments.format {
            Form::Table => emit(&summary(&last)),
            Form::Json => emit(&json(&last)),
            Form::Openmetrics => emit_data(&openmetrics(Some(&last))),
            Form::Prometheus => emit_data(&prometheus(Some(&last))),
        };
    };
    loop {
        std::thread::sleep(interval);
        let report = client.report()?;
        match arguments.format {
            Form::Json => emit(&json(&report))?,
            _ => emit(&line(&report.since(&last)))?,
        }
        last = report;
    }
}

/// The meaning of all that is counted by name.
fn explained() -> String {
    let mut grid = Grid::new(&["counted", "name", "what it is"], &[]);
    let reasons = Reason::ALL.iter().map(|one| ("reason", one.name(), one.meaning()));
    let events = Event::ALL.iter().map(|one| ("event", one.name(), one.help()));
    let waits = WaitReason::ALL.iter().map(|one| ("wait", one.name(), one.help()));
    for row in reasons.chain(events).chain(waits) {
        grid.row([row.0, row.1, row.2].map(str::to_string).to_vec());
    }
    grid.text()
}

fn listen(address: SocketAddr, socket: PathBuf) -> Result<(), Failure> {
    let wrong = |error| Failure::run(format!("cannot listen at {address}: {error}"));
    let listener = Listener::bind(address, socket).map_err(wrong)?;
    let address = listener.address().map_err(wrong)?;
    say(format!("http://{address}/metrics; Ctrl-C ends"));
    listener.serve();
    Ok(())
}

fn json(report: &Report) -> String {
    // The report has only numbers and strings under names, which JSON can always express.
    let text = serde_json::to_string(report).unwrap_or_default();
    format!("{text}\n")
}

/// A number of times, in words.
pub fn times(count: u64) -> String {
    match count {
        1 => "once".to_string(),
        _ => format!("{count} times"),
    }
}

/// Reasons that decided at all, the most frequent first.
fn decided(report: &Report) -> Vec<(&str, u64)> {
    let reasons = report.reasons.iter();
    let mut rows: Vec<_> = reasons
        .map(|(name, reason)| (name.as_str(), reason.wakeups))
        .filter(|(_, wakeups)| *wakeups > 0)
        .collect();
    rows.sort_by_key(|(name, wakeups)| (Reverse(*wakeups), *name));
    rows
}

/// Everything since the scheduler was loaded, as tables.
pub fn summary(report: &Report) -> String {
    let about = &report.about;
    let wakeups = report.wakeups();
    let seconds = report.uptime_ns as f64 / 1e9;
    let cpu_ns = report.uptime_ns.saturating_mul(about.cpus);
    let mut out = format!(
        "{} CPUs of {}, Linux {}, {}: {wakeups} wake-ups in {seconds:.1} s, CPUs {} busy\n\n",
        about.cpus,
        about.machine,
        about.kernel,
        about.modes,
        share(report.busy_ns, cpu_ns, 1)
    );

    if !about.band.is_empty() {
        out.push_str(&format!("real-time band: {}\n\n", about.band));
    }

    if !about.partial.is_empty() {
        let (tasks, refused) = (report.partial_tasks, report.partial_refused);
        out.push_str(&format!("only tasks of: {}; {tasks} now", about.partial));
        if refused > 0 {
            out.push_str(&format!(", and {refused} that the kernel keeps out"));
        }
        out.push_str("\n\n");
    }

    let mut reasons = Grid::new(&["reason"], &["wake-ups", "share"]);
    for (name, count) in decided(report) {
        reasons.row(vec![name.to_string(), count.to_string(), share(count, wakeups, 1)]);
    }
    out.push_str(&reasons.text());
    out.push('\n');

    let mut events = Grid::new(&["event"], &["count", "per wake-up"]);
    for &event in Event::ALL {
        let count = report.event(event);
        if count > 0 {
            let each = match wakeups {
                0 => "-".to_string(),
                _ => format!("{:.3}", count as f64 / wakeups as f64),
            };
            events.row(vec![event.name().replace('_', " "), count.to_string(), each]);
        }
    }
    out.push_str(&events.text());
    if !report.waits.is_empty() {
        out.push('\n');
        out.push_str(&waits(report));
    }
    if !report.group_waits.is_empty() {
        out.push('\n');
        out.push_str(&group_waits(report));
    }
    if report.restarts > 0 {
        out.push_str(&format!(
            "\nloaded again {} because the machine or the configuration changed\n",
            times(report.restarts)
        ));
    }
    out
}

/// A table of waits by what the first column names.
fn waits_by(name: &str) -> Grid {
    Grid::new(&[name], &["count", "mean", "median", "p99", "max"])
}

fn row_of(name: &str, waits: &Waits) -> Vec<String> {
    let mut row =
        vec![name.to_string(), waits.count.to_string(), format!("{:.0}", waits.mean_ns() / 1e3)];
    row.extend([0.5, 0.99, 1.0].map(|part| at_most(waits, part)));
    row
}

/// How long tasks waited for a CPU, as a table; reasons for which none did are left out.
fn waits(report: &Report) -> String {
    let mut grid = waits_by("waited, µs");
    for &reason in WaitReason::ALL {
        let Some(waits) = report.waits.get(reason.name()).filter(|it| it.count > 0) else {
            continue;
        };
        grid.row(row_of(reason.name(), waits));
    }
    grid.text()
}

/// The most cgroups of a table.
const MOST_GROUPS: usize = 20;

/// How long the tasks of each cgroup waited, those first that waited longest in sum.
fn group_waits(report: &Report) -> String {
    let mut groups: Vec<_> = report.group_waits.iter().collect();
    let total = |group: &GroupWaits| group.waits.sum_ns + group.limited_ns;
    groups.sort_by_key(|(path, group)| (Reverse(total(group)), path.as_str()));
    let mut grid = waits_by("waited in cgroup, µs");
    grid.column("", "by cpu.max, ms", Align::Right);
    for (path, group) in groups.iter().take(MOST_GROUPS) {
        let mut row = row_of(path, &group.waits);
        row.push(format!("{:.0}", group.limited_ns as f64 / 1e6));
        grid.row(row);
    }
    let mut out = grid.text();
    if let Some(more) = groups.len().checked_sub(MOST_GROUPS).filter(|&it| it > 0) {
        out.push_str(&format!("and {more} more cgroups (--format json)\n"));
    }
    out
}

/// The bound, in µs, within which this part of the waits was.
pub fn at_most(waits: &Waits, part: f64) -> String {
    match waits.quantile_us(part) {
        Some(us) if us.is_finite() => format!("≤{us}"),
        Some(_) => format!(">{}", waits.bound_us(waits.buckets.len().saturating_sub(2))),
        None => "-".to_string(),
    }
}

/// One line on the events in the time that `change` spans.
pub fn line(change: &Report) -> String {
    let wakeups = change.wakeups();
    let seconds = (change.uptime_ns as f64 / 1e9).max(1e-9);
    let rate = |count: u64| format!("{:.0}", count as f64 / seconds);
    let mut parts = vec![
        format!("{} wake-ups/s", rate(wakeups)),
        format!(
            "{} busy",
            share(change.busy_ns, change.uptime_ns.saturating_mul(change.about.cpus), 1)
        ),
    ];
    for (name, count) in decided(change).into_iter().take(4) {
        parts.push(format!("{name} {}", share(count, wakeups, 1)));
    }
    let stolen = [Event::StolenCluster, Event::StolenLlc, Event::StolenNode, Event::StolenRemote];
    let stolen = stolen.map(|event| change.event(event)).iter().sum();
    let counts = [
        ("queued", change.event(Event::Queued)),
        ("stolen", stolen),
        ("preempted", change.event(Event::Preempted)),
    ];
    for (name, count) in counts {
        parts.push(format!("{name} {}/s", rate(count)));
    }
    parts.join(", ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use perch_scheduler::stats::Decisions;

    fn report(reasons: &[(&str, u64)]) -> Report {
        let mut report =
            Report { uptime_ns: 2_000_000_000, busy_ns: 1_000_000_000, ..Report::default() };
        report.about.cpus = 2;
        for (name, wakeups) in reasons {
            let decisions = Decisions { wakeups: *wakeups };
            report.reasons.insert(name.to_string(), decisions);
        }
        report
    }

    #[test]
    fn a_line_has_rates_and_the_first_reasons() {
        let text = line(&report(&[("target idle", 1), ("cluster scan", 3), ("hint", 0)]));
        assert_eq!(
            text,
            "2 wake-ups/s, 25.0 % busy, cluster scan 75.0 %, target idle 25.0 %, queued 0/s, \
             stolen 0/s, preempted 0/s\n"
        );
    }

    #[test]
    fn nothing_yet_is_no_division_by_zero() {
        let empty = Report::default();
        assert!(summary(&empty).contains("0 wake-ups in 0.0 s, CPUs - busy"));
        assert!(line(&empty).starts_with("0 wake-ups/s"));
    }

    #[test]
    fn waits_are_a_table_of_bounds() {
        let mut report = report(&[("target idle", 1)]);
        let some = |buckets: &[u64], sum_ns| Waits {
            count: buckets.iter().sum(),
            sum_ns,
            buckets: buckets.to_vec(),
        };
        let counted = [
            ("idle", some(&[9, 0, 1, 0], 12_000)),
            ("moved", some(&[0, 0, 0, 1], 9_000_000)),
            ("band", some(&[0, 0, 0, 0], 0)),
        ];
        report.waits = counted.map(|(name, waits)| (name.to_string(), waits)).into();
        insta::assert_snapshot!(waits(&report), @r"
        waited, µs  count  mean  median  p99  max
        idle           10     1      ≤1   ≤4   ≤4
        moved           1  9000      >4   >4   >4
        ");
    }

    #[test]
    fn cgroups_that_waited_longest_come_first() {
        let mut report = report(&[]);
        for number in 0..22 {
            let group = GroupWaits {
                waits: Waits { count: 10, sum_ns: 10_000 * number, buckets: vec![0, 9, 1, 0] },
                limited: 0,
                limited_ns: if number == 3 { 7_000_000 } else { 0 },
            };
            report.group_waits.insert(format!("/{number}"), group);
        }
        let text = group_waits(&report);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + MOST_GROUPS + 1);
        insta::assert_snapshot!(lines[..3].join("\n"), @r"
        waited in cgroup, µs  count  mean  median  p99  max  by cpu.max, ms
        /3                       10     3      ≤2   ≤4   ≤4               7
        /21                      10    21      ≤2   ≤4   ≤4               0
        ");
        assert_eq!(lines[21], "and 2 more cgroups (--format json)");
        assert!(summary(&report).ends_with(&text));
    }

    #[test]
    fn intervals_have_bounds() {
        assert_eq!(interval("1s"), Ok(Duration::from_secs(1)));
        for bad in ["", "1", "10ms", "2h", "4000s"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
