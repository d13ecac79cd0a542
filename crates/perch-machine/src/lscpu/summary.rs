// SPDX-License-Identifier: GPL-2.0-or-later
//! lscpu's summary: counts and sizes, as text (also with `-B`, in bytes) or JSON (`-J`). It names the CPUs
//! of each node, and of nothing else; so it is a machine only where the counts leave no choice.

use super::{EXPECTED, at_line, draft, finish};
use crate::cpulist;
use crate::draft::Group;
use crate::error::{MachineError, Place};
use crate::format::Bytes;
use crate::model::Machine;
use crate::survey;
use serde_json::Value;

/// A line `NAME: DATA`.
pub(super) struct Field {
    name: String,
    data: String,
    line: Option<usize>,
}

/// Reads the lines of the text that have a colon.
pub(super) fn of_text(text: &str) -> Vec<Field> {
    let field = |(index, line): (usize, &str)| {
        let (name, data) = line.split_once(':')?;
        Some(Field {
            name: name.trim().to_string(),
            data: data.trim().to_string(),
            line: Some(index + 1),
        })
    };
    text.lines().enumerate().filter_map(field).collect()
}

/// Reads the list `lscpu` of `-J`, whose fields lie inside one another in newer versions.
pub(super) fn of_json(fields: &[Value]) -> Vec<Field> {
    let mut found = Vec::new();
    for field in fields {
        let text = |key: &str| field.get(key).and_then(Value::as_str).unwrap_or("");
        found.push(Field {
            name: text("field").trim_end_matches(':').trim().to_string(),
            data: text("data").trim().to_string(),
            line: None,
        });
        if let Some(Value::Array(children)) = field.get("children") {
            found.extend(of_json(children));
        }
    }
    found
}

/// Reads the machine that the fields leave no choice of.
pub(super) fn read(all: &[Field], origin: &str) -> Result<Machine, MachineError> {
    let fields = Fields { all, origin };
    let Some(online) = fields.get("On-line CPU(s) list") else {
        return Err(fields.refuse("On-line CPU(s) list", "lscpu's summary lacks it"));
    };
    let numbers = fields.group(online)?.cpus;
    if numbers.is_empty() {
        return Err(fields.refuse(&online.name, "no CPU is online"));
    }
    let threads = "Thread(s) per core";
    if all.iter().filter(|field| field.name == threads).count() > 1 {
        let reason =
            "there are several kinds of cores, and the summary does not tell which CPU is of which";
        return Err(fields.refuse(threads, reason));
    }
    if fields.number(threads)?.unwrap_or(1) > 1 {
        let reason = "the summary does not tell which CPUs are threads of one core";
        return Err(fields.refuse(threads, reason));
    }
    let model = fields.get("Model name").map(|field| field.data.as_str());
    let mut draft = draft(model.unwrap_or("A machine"), numbers.len(), origin);
    if let Some(field) = fields.get("Off-line CPU(s) list") {
        let offline = fields.group(field)?.cpus;
        survey::left_out(&mut draft, &offline, "were offline", &numbers);
    }
    draft.nodes = fields.nodes(&numbers)?;

    let (name, sockets) = fields.sockets()?;
    let Some(packages) = parts(sockets, &numbers, &draft.nodes) else {
        return Err(fields.refuse(name, "the summary does not tell which CPUs are in which socket"));
    };
    draft.packages = packages;
    let (l2, l3) = (fields.cache("L2")?, fields.cache("L3")?);
    // The innermost, which is shared, has the cores of a cluster.
    for (level, groups) in
        [(&l2, &mut draft.clusters), (l3.as_ref().map_or(&l2, |_| &l3), &mut draft.llcs)]
    {
        let Some(cache) = level else {
            continue;
        };
        let Some(found) = cache.count.and_then(|count| parts(count, &numbers, &draft.nodes)) else {
            return Err(
                fields.refuse(&cache.name, "the summary does not tell which CPUs share which")
            );
        };
        *groups = found;
    }
    let hardware = &mut draft.hardware;
    if let Some(l1d) = fields.cache("L1d")?.and_then(|cache| cache.bytes()) {
        hardware.l1d_bytes = l1d;
    }
    let bytes = |cache: &Option<Cache>| cache.as_ref().and_then(Cache::bytes);
    match l3 {
        Some(_) => {
            hardware.l2_bytes = bytes(&l2).unwrap_or(hardware.l2_bytes);
            hardware.llc_bytes = bytes(&l3).unwrap_or(hardware.llc_bytes);
        }
        None if l2.is_some() => {
            hardware.l2_bytes = 0;
            hardware.llc_bytes = bytes(&l2).unwrap_or(hardware.llc_bytes);
        }
        None => {}
    }
    let mhz = fields.get("CPU max MHz").and_then(|field| field.data.parse().ok());
    if let Some(mhz @ 1.0..=100_000.0) = mhz {
        hardware.frequency_mhz = mhz as u32;
    }
    finish(draft, &numbers)
}

/// Returns the parts that `count` things make of a machine: all CPUs are one's, each has its own, or each
/// node has one; `None` where it may be anything else.
fn parts(count: u64, numbers: &[u32], nodes: &[Group]) -> Option<Vec<Group>> {
    let group = |cpus: Vec<u32>| Group { cpus, place: Place::default() };
    match count as usize {
        1 => Some(vec![group(numbers.to_vec())]),
        count if count == numbers.len() => {
            Some(numbers.iter().map(|&cpu| group(vec![cpu])).collect())
        }
        count if count == nodes.len() => Some(nodes.to_vec()),
        _ => None,
    }
}

/// The caches of a level.
struct Cache {
    name: String,
    /// The bytes of all of them.
    all: f64,
    /// Their number, which older versions do not tell; they tell the bytes of one.
    count: Option<u64>,
}

impl Cache {
    /// Returns the bytes of one, in whole kibibytes, as lscpu rounds what it does not print in bytes.
    fn bytes(&self) -> Option<u64> {
        let one = self.all / self.count.unwrap_or(1).max(1) as f64;
        let bytes = one as u64 >> 10 << 10;
        (1..=1 << 40).contains(&bytes).then_some(bytes)
    }
}

/// The fields by name.
struct Fields<'a> {
    all: &'a [Field],
    origin: &'a str,
}

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&Field> {
        self.all.iter().find(|field| field.name == name)
    }

    fn refuse(&self, name: &str, reason: &str) -> MachineError {
        self.place(name).problem(self.origin, reason, EXPECTED)
    }

    fn place(&self, name: &str) -> Place {
        let mut place = at_line(self.get(name).and_then(|field| field.line));
        place.key = name.to_string();
        place
    }

    /// Returns the number in a field; `-` stands for none.
    fn number(&self, name: &str) -> Result<Option<u64>, MachineError> {
        match self.get(name).map(|field| field.data.as_str()) {
            None | Some("-") => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.refuse(name, "this is not a number")),
            },
        }
    }

    fn group(&self, field: &Field) -> Result<Group, MachineError> {
        match cpulist::parse(&field.data) {
            Ok(cpus) => Ok(Group { cpus, place: self.place(&field.name) }),
            Err(reason) => Err(self.refuse(&field.name, &reason.to_string())),
        }
    }

    /// Returns the nodes that have CPUs online, ascending by their number.
    fn nodes(&self, online: &[u32]) -> Result<Vec<Group>, MachineError> {
        let mut nodes = Vec::new();
        for field in self.all {
            let node = field.name.strip_prefix("NUMA node");
            let node = node.and_then(|name| name.strip_suffix(" CPU(s)"));
            let Some(Ok(node)) = node.map(str::parse::<u32>) else {
                continue;
            };
            let mut group = self.group(field)?;
            group.cpus.retain(|cpu| online.binary_search(cpu).is_ok());
            if !group.cpus.is_empty() {
                nodes.push((node, group));
            }
        }
        nodes.sort_by_key(|(node, _)| *node);
        Ok(nodes.into_iter().map(|(_, group)| group).collect())
    }

    /// Returns the number of sockets, and the field that tells it: of all, or of each book of s390.
    fn sockets(&self) -> Result<(&'static str, u64), MachineError> {
        let per_book = "Socket(s) per book";
        if let Some(sockets) = self.number(per_book)? {
            let mut all = sockets;
            for name in ["Book(s) per drawer", "Book(s)", "Drawer(s)"] {
                all = all.saturating_mul(self.number(name)?.unwrap_or(1));
            }
            return Ok((per_book, all));
        }
        // Arm's processors without a table of their topology have clusters in place of sockets.
        for name in ["Socket(s)", "Cluster(s)"] {
            if let Some(sockets) = self.number(name)? {
                return Ok((name, sockets));
            }
        }
        Ok(("Socket(s)", 1))
    }

    /// Returns the caches of a level, such as "L3".
    fn cache(&self, level: &str) -> Result<Option<Cache>, MachineError> {
        let names = [level.to_string(), format!("{level} cache")];
        let Some(field) = names.iter().find_map(|name| self.get(name)) else {
            return Ok(None);
        };
        let (size, count) = match field.data.split_once('(') {
            Some((size, count)) => (size, count.split_whitespace().next()),
            None => (field.data.as_str(), None),
        };
        let count = count.map(str::parse).transpose();
        match (bytes(size), count) {
            (Some(all), Ok(count)) => Ok(Some(Cache { name: field.name.clone(), all, count })),
            _ => Err(self.refuse(&field.name, "this is not a size")),
        }
    }
}

/// Reads a size, which may have a fraction: `1.5 MiB`, `32K`, `65536`.
fn bytes(text: &str) -> Option<f64> {
    let (number, unit) = Bytes::split(text)?;
    let number: f64 = number.parse().ok()?;
    (0.0..1e12).contains(&number).then_some(number * unit as f64)
}
