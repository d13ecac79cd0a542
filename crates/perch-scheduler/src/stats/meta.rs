// SPDX-License-Identifier: GPL-2.0-or-later
//! A description of the fields of a [`super::Report`], for tools that know nothing of perch: the answer
//! to the request `stats_meta`.

use serde_json::{Map, Value, json};

use perch_plan::interface::Event;

fn number(help: &str) -> Value {
    json!({ "datum": "u64", "desc": help })
}

fn signed(help: &str) -> Value {
    json!({ "datum": "i64", "desc": help })
}

fn word(help: &str) -> Value {
    json!({ "datum": "string", "desc": help })
}

/// The two structures. `_om_*` are hints for scx_stats' converter to OpenMetrics.
pub(super) fn meta() -> Value {
    let mut fields = Map::new();
    let mut field = |name: &str, value: Value| fields.insert(name.to_string(), value);
    field("at_ns", number("When it was read, nanoseconds since 1970"));
    field("uptime_ns", number("Nanoseconds since it was loaded"));
    field("busy_ns", number("Nanoseconds that tasks ran, over all CPUs"));
    field("restarts", number("Reloads because the machine or the configuration changed"));
    field("cpus", number("CPUs that are scheduled"));
    field("machine", word("The machine's name"));
    field("kernel", word("The kernel's version"));
    field("modes", word("The mechanisms' modes"));
    field("band", word("The real-time band's rules and its share"));
    let help = "The rules of the tasks that are perch's; empty if all are";
    field("partial", word(help));
    let help = "Tasks that are perch's, where not all are";
    field("partial_tasks", number(help));
    let help = "Tasks that fit a rule and that the kernel did not let in";
    field("partial_refused", number(help));
    field(
        "overloaded_cpus",
        number("CPUs on which a task of the band waits that may run elsewhere"),
    );
    field("overload_sum", signed("The sum of the counters of these"));
    field("overload_lowest", signed("The lowest of these counters"));
    for event in Event::ALL {
        field(event.name(), number(event.help()));
    }
    let reasons = json!({
        "desc": "Decisions by their reason",
        "dict": { "key": "string", "datum": { "struct": "Decisions" } },
    });
    field("reasons", reasons);
    let waits = json!({
        "desc": "Waits for a CPU by their reason; empty unless they are counted",
        "dict": { "key": "string", "datum": { "struct": "Waits" } },
    });
    field("waits", waits);
    let groups = json!({
        "desc": "Waits for a CPU by the path of the tasks' cgroup; empty unless they are counted",
        "dict": { "key": "string", "datum": { "struct": "GroupWaits" } },
    });
    field("group_waits", groups);
    let llcs = json!({
        "desc": "Last-level caches by number",
        "dict": { "key": "string", "datum": { "struct": "Cache" } },
    });
    field("llcs", llcs);
    let waits = [
        ("count", number("Waits that ended")),
        ("sum_ns", number("Their sum, nanoseconds")),
        (
            "buckets",
            json!({
                "array": "u64",
                "desc": "Waits of at most 2^b us that are in no bucket before; the last: longer",
            }),
        ),
    ];
    let limited = [
        ("limited", number("Waits in which cpu.max held the task back; not among the others")),
        ("limited_ns", number("Their sum, nanoseconds")),
    ];
    let fields_of = |all: &[(&str, Value)]| -> Map<String, Value> {
        all.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
    };
    json!({
        "Report": {
            "name": "Report",
            "desc": "perch: decisions and events since it was loaded",
            "top": "true",
            "user": { "_om_prefix": "perch_" },
            "fields": fields,
        },
        "Decisions": {
            "name": "Decisions",
            "desc": "Decisions of one reason",
            "user": { "_om_prefix": "perch_", "_om_label": "reason" },
            "fields": { "wakeups": number("Decisions of the policy for this reason") },
        },
        "Cache": {
            "name": "Cache",
            "desc": "The CPUs that share a last-level cache",
            "user": { "_om_prefix": "perch_llc_", "_om_label": "llc" },
            "fields": {
                "node": number("Their NUMA node"),
                "cpus": number("How many they are"),
                "busy_ns": number("Nanoseconds that tasks ran there"),
                "runnable": number("Tasks that ran or waited there at the last look"),
            },
        },
        "Waits": {
            "name": "Waits",
            "desc": "Waits for a CPU of one reason",
            "user": { "_om_prefix": "perch_waits_", "_om_label": "reason" },
            "fields": fields_of(&waits),
        },
        "GroupWaits": {
            "name": "GroupWaits",
            "desc": "Waits for a CPU of one cgroup's tasks",
            "user": { "_om_prefix": "perch_group_waits_", "_om_label": "cgroup" },
            "fields": fields_of(&[&waits[..], &limited[..]].concat()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_report_is_described() {
        let report = serde_json::to_value(super::super::tests::sample()).unwrap();
        let meta = meta();
        let described = meta["Report"]["fields"].as_object().unwrap();
        let missing = |from: &Map<String, Value>, to: &Map<String, Value>| -> Vec<String> {
            from.keys().filter(|key| !to.contains_key(*key)).cloned().collect()
        };
        let report = report.as_object().unwrap();
        assert!(missing(report, described).is_empty());
        assert!(missing(described, report).is_empty());
    }
}
