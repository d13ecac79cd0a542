// SPDX-License-Identifier: GPL-2.0-or-later
//! A report in the text format of OpenMetrics 1.0.

use std::fmt::Write;

use super::Report;
use crate::interface::Event;

/// The whole exposition, `# EOF` included.
pub fn openmetrics(report: &Report) -> String {
    let mut out = String::new();
    let about = &report.about;

    head(
        &mut out,
        "perch_scheduler",
        "info",
        None,
        "What is loaded, and on what",
    );
    let _ = writeln!(
        out,
        "perch_scheduler_info{{machine=\"{}\",kernel=\"{}\",modes=\"{}\",band=\"{}\"}} 1",
        escape(&about.machine),
        escape(&about.kernel),
        escape(&about.modes),
        escape(&about.band)
    );
    head(
        &mut out,
        "perch_cpus",
        "gauge",
        None,
        "CPUs that are scheduled",
    );
    let _ = writeln!(out, "perch_cpus {}", about.cpus);
    let help = "Time since it was loaded";
    head(
        &mut out,
        "perch_uptime_seconds",
        "gauge",
        Some("seconds"),
        help,
    );
    let _ = writeln!(out, "perch_uptime_seconds {}", seconds(report.uptime_ns));
    let help = "Time that tasks ran under it, over all CPUs";
    head(
        &mut out,
        "perch_busy_seconds",
        "counter",
        Some("seconds"),
        help,
    );
    let _ = writeln!(out, "perch_busy_seconds_total {}", seconds(report.busy_ns));
    let help = "Reloads because the machine or the configuration changed";
    head(&mut out, "perch_restarts", "counter", None, help);
    let _ = writeln!(out, "perch_restarts_total {}", report.restarts);

    let help = "CPUs on which a task of the real-time band waits that may run elsewhere";
    head(&mut out, "perch_overloaded_cpus", "gauge", None, help);
    let _ = writeln!(out, "perch_overloaded_cpus {}", report.overloaded_cpus);

    let help = "Decisions of the policy by their reason, forks and execs included";
    head(&mut out, "perch_wakeups", "counter", Some("wakeups"), help);
    for (reason, decisions) in &report.reasons {
        let (reason, count) = (escape(reason), decisions.wakeups);
        let _ = writeln!(out, "perch_wakeups_total{{reason=\"{reason}\"}} {count}");
    }
    for &event in Event::ALL {
        let name = event.name();
        head(
            &mut out,
            &format!("perch_{name}"),
            "counter",
            None,
            event.help(),
        );
        let _ = writeln!(out, "perch_{name}_total {}", report.event(event));
    }
    out.push_str("# EOF\n");
    out
}

fn head(out: &mut String, family: &str, kind: &str, unit: Option<&str>, help: &str) {
    let _ = writeln!(out, "# TYPE {family} {kind}");
    if let Some(unit) = unit {
        let _ = writeln!(out, "# UNIT {family} {unit}");
    }
    let _ = writeln!(out, "# HELP {family} {}.", escape(help));
}

/// Nanoseconds as seconds, without the rounding of a float.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
