// SPDX-License-Identifier: GPL-2.0-or-later
//! A report for collectors: as OpenMetrics 1.0, and in Prometheus's older text format.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};

use super::{Report, Waits};
use perch_plan::interface::Event;

/// OpenMetrics, `# EOF` included. Without a report no scheduler answers, which is all that it says.
pub fn openmetrics(report: Option<&Report>) -> String {
    written(report, text::encode)
}

/// Prometheus's text format 0.0.4, which node_exporter reads from files: as [`openmetrics`].
pub fn prometheus(report: Option<&Report>) -> String {
    written(report, prometheus_text::encode)
}

fn written(report: Option<&Report>, encode: fn(&mut String, &Registry) -> fmt::Result) -> String {
    let mut registry = Registry::with_prefix("perch");
    registry.register_collector(Box::new(Moment(report.cloned())));
    let mut out = String::new();
    // A string takes all that is written to it.
    let _ = encode(&mut out, &registry);
    out
}

/// What a scheduler reported, if one did.
#[derive(Debug)]
struct Moment(Option<Report>);

impl Collector for Moment {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let to = &mut encoder;
        let up = ConstGauge::new(u32::from(self.0.is_some()));
        one(to, "up", "Whether perch answers", None, &up)?;
        let Some(report) = &self.0 else {
            return Ok(());
        };
        let help = "What is loaded, and on what";
        one(to, "scheduler", help, None, &Info::new(labels(report)))?;
        let cpus = ConstGauge::new(report.about.cpus);
        one(to, "cpus", "CPUs that are scheduled", None, &cpus)?;
        let uptime = ConstGauge::new(seconds(report.uptime_ns));
        let help = "Time since it was loaded";
        one(to, "uptime", help, Some(&Unit::Seconds), &uptime)?;
        let busy = ConstCounter::new(seconds(report.busy_ns));
        let help = "Time that tasks ran under it, over all CPUs";
        one(to, "busy", help, Some(&Unit::Seconds), &busy)?;
        let help = "Reloads because the machine or the configuration changed";
        one(to, "restarts", help, None, &ConstCounter::new(report.restarts))?;
        let help = "CPUs on which a task of the real-time band waits that may run elsewhere";
        let overloaded = ConstGauge::new(report.overloaded_cpus);
        one(to, "overloaded_cpus", help, None, &overloaded)?;
        let help = "Tasks that are perch's, where not all are";
        let tasks = ConstGauge::new(report.partial_tasks);
        one(to, "partial_tasks", help, None, &tasks)?;
        let help = "Tasks that fit a rule of such tasks and that the kernel did not let in";
        let refused = ConstGauge::new(report.partial_refused);
        one(to, "partial_refused", help, None, &refused)?;

        let help = "Decisions of the policy by their reason, forks and execs included";
        let mut family = to.encode_descriptor("wakeups", help, None, MetricType::Counter)?;
        for (reason, decisions) in &report.reasons {
            let count = ConstCounter::new(decisions.wakeups);
            count.encode(family.encode_family(&[("reason", reason.as_str())])?)?;
        }
        let reasons = report.waits.iter();
        let reasons = reasons.map(|(reason, waits)| (reason.as_str(), waits));
        let help = "Time that tasks waited for a CPU, by the reason";
        histograms(to, "wait", help, "reason", reasons)?;
        let groups = report.group_waits.iter();
        let groups = groups.map(|(path, of)| (path.as_str(), &of.waits));
        let help = "Time that tasks waited for a CPU, by their cgroup, but for what cpu.max made them wait";
        histograms(to, "group_wait", help, "cgroup", groups)?;
        if !report.group_waits.is_empty() {
            let help = "Time that cpu.max made tasks wait, by their cgroup";
            let unit = Some(&Unit::Seconds);
            let mut family =
                to.encode_descriptor("group_limited", help, unit, MetricType::Counter)?;
            for (path, of) in &report.group_waits {
                let time = ConstCounter::new(seconds(of.limited_ns));
                time.encode(family.encode_family(&[("cgroup", path.as_str())])?)?;
            }
        }
        for &event in Event::ALL {
            let count = ConstCounter::new(report.event(event));
            one(to, event.name(), event.help(), None, &count)?;
        }
        Ok(())
    }
}

/// Writes a family of histograms, by one label; none if there are none.
fn histograms<'a>(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    of: impl Iterator<Item = (&'a str, &'a Waits)>,
) -> fmt::Result {
    let mut of = of.peekable();
    if of.peek().is_none() {
        return Ok(());
    }
    let unit = Some(&Unit::Seconds);
    let mut family = to.encode_descriptor(name, help, unit, MetricType::Histogram)?;
    for (value, waits) in of {
        let labels = [(label, value)];
        let mut sample = family.encode_family(&labels)?;
        let bound = |bucket| waits.bound_us(bucket) / 1e6;
        let counts = waits.buckets.iter().enumerate();
        let buckets: Vec<_> = counts.map(|(at, count)| (bound(at), *count)).collect();
        let sum = seconds(waits.sum_ns);
        sample.encode_histogram::<NoLabelSet>(sum, waits.count, &buckets, None)?;
    }
    Ok(())
}

/// Writes a family of one sample.
fn one<M: EncodeMetric + TypedMetric>(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    metric: &M,
) -> fmt::Result {
    metric.encode(to.encode_descriptor(name, help, unit, M::TYPE)?)
}

/// The machine, kernel and settings: the mode of each mechanism is a label of its own.
fn labels(report: &Report) -> Vec<(String, String)> {
    let about = &report.about;
    let fixed = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("machine", &about.machine),
        ("kernel", &about.kernel),
        ("band", &about.band),
        ("partial", &about.partial),
    ];
    let is_name = |name: &str| name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
    let modes = about.modes.split(',');
    let modes = modes.filter_map(|mode| mode.split_once('=').filter(|(name, _)| is_name(name)));
    let all = fixed.into_iter().chain(modes);
    all.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Nanoseconds as seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
