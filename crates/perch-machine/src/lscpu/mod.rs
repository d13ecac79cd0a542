// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of the machine in what `lscpu` prints. Its tables have a line for each CPU (`-p`, `-e`,
//! `-e -J`) and tell all that a machine needs but distances, capacities and sizes of caches; its summary
//! (without options, `-B`, `-J`) tells sizes, and what shares them only where the counts leave no choice.

mod summary;
mod table;

use crate::cpulist;
use crate::draft::{Draft, Group};
use crate::error::{MachineError, Place};
use crate::model::{MAX_CPUS, Machine};
use crate::survey;
use serde_json::Value;
use std::collections::BTreeMap;

use table::{Row, Table};

const EXPECTED: &str = "expected what `lscpu -p` or `lscpu -e -J` prints";

/// A CPU takes some 300 bytes. JSON in memory takes many times its text.
const MAX_JSON: usize = 16 << 20;

/// Reads the machine in `text`, which errors call `origin`.
///
/// # Errors
/// Returns [`MachineError::Invalid`] when the text is not lscpu's, contradicts itself, or leaves open
/// which CPUs share what.
pub fn from_str(text: &str, origin: &str) -> Result<Machine, MachineError> {
    let problem = |line, reason: &str| Err(at_line(line).problem(origin, reason, EXPECTED));
    if text.trim_start().starts_with('{') {
        if text.len() > MAX_JSON {
            return problem(None, "it is larger than any machine's");
        }
        let json: Value = serde_json::from_str(text).map_err(|error| {
            let reason = format!("this is not JSON: {error}");
            at_line(Some(error.line())).problem(origin, reason, EXPECTED)
        })?;
        return match (json.get("cpus"), json.get("lscpu")) {
            (Some(Value::Array(cpus)), _) => of_table(&Table::of_json(cpus), origin),
            (_, Some(Value::Array(fields))) => summary::read(&summary::of_json(fields), origin),
            _ => problem(None, "neither `cpus` nor `lscpu` is a list in it"),
        };
    }
    for table in [Table::of_commas, Table::of_columns] {
        if let Some(table) = table(text, origin)? {
            return of_table(&table, origin);
        }
    }
    let fields = summary::of_text(text);
    if fields.is_empty() {
        problem(None, "neither hwloc's XML nor lscpu's text")
    } else {
        summary::read(&fields, origin)
    }
}

/// The place of a line, which has no key.
fn at_line(line: Option<usize>) -> Place {
    Place { line, ..Place::default() }
}

/// Returns the draft of a machine that lscpu describes.
fn draft(model: &str, cpus: usize, origin: &str) -> Draft {
    let mut draft = Draft::new(origin, "imported");
    draft.description = format!("{model}, {cpus} CPUs, imported from lscpu");
    draft.sources = vec![format!("lscpu: {origin}")];
    draft
}

/// Says what lscpu leaves out, settles the levels that it does not tell, and checks the whole.
fn finish(mut draft: Draft, numbers: &[u32]) -> Result<Machine, MachineError> {
    if draft.nodes.len() > 1 {
        let note = "lscpu tells no distances: those between nodes are 20, as Linux has them without a SLIT";
        draft.sources.push(note.to_string());
    }
    let note = "lscpu tells no capacities: all CPUs are taken for alike";
    draft.sources.push(note.to_string());
    for level in [&mut draft.packages, &mut draft.nodes] {
        if level.is_empty() {
            level.push(Group { cpus: numbers.to_vec(), place: Place::default() });
        }
    }
    survey::complete_llcs(&mut draft, numbers, &Place::default());
    let before = draft.packages.len();
    survey::join_packages(&mut draft, false);
    if draft.packages.len() < before {
        let reason = "a last-level cache serves several sockets, which kernels see in several ways";
        let expected = "expected a copy of sysfs, for `perch machine detect --root`";
        return Err(Place::default().problem(&draft.origin, reason, expected));
    }
    let clusters = std::mem::take(&mut draft.clusters);
    draft.clusters = survey::real_clusters(clusters, &draft.cores, draft.seen_llcs());
    survey::check(draft, numbers)
}

/// Reads the machine in a table, whose columns number each CPU's core, package, node and so on.
fn of_table(table: &Table, origin: &str) -> Result<Machine, MachineError> {
    for column in ["CPU", "CORE", "SOCKET"] {
        if !table.columns.contains(&column) {
            let reason = "lscpu was not asked for this column";
            return Err(Place::key(column).problem(origin, reason, EXPECTED));
        }
    }
    let (cpus, offline) = Cpus::read(table, origin)?;
    let numbers: Vec<u32> = cpus.rows.keys().copied().collect();
    let model = cpus.rows.values().find_map(|row| row.text("MODELNAME"));
    let mut draft = draft(model.unwrap_or("A machine"), numbers.len(), origin);
    survey::left_out(&mut draft, &offline, "were offline", &numbers);
    draft.packages = cpus.groups(|row| row.package(origin))?;
    draft.nodes = cpus.groups(|row| row.numbers(&["NODE"], origin))?;
    draft.cores = cpus.cores()?;
    // Split caches beyond the first level are a core's own: s390 shows no others.
    let llc = |row: &Row| {
        for (level, cache) in [(5, "L5"), (4, "L4"), (3, "L3"), (2, "L2")] {
            if let Some(id) = row.number(cache, origin)? {
                return Ok(Some(vec![level, id]));
            }
        }
        Ok(None)
    };
    draft.llcs = cpus.groups(llc)?;
    let cluster = ["CLUSTER", "L2"].into_iter().find(|name| table.columns.contains(name));
    if let Some(cluster) = cluster {
        draft.clusters = cpus.groups(|row| row.numbers(&[cluster], origin))?;
    }
    let mhz = cpus.rows.values();
    let mhz = mhz.filter_map(|row| row.text("MAXMHZ")?.parse::<f64>().ok());
    let mhz = mhz.fold(0.0, f64::max);
    if (1.0..=100_000.0).contains(&mhz) {
        draft.hardware.frequency_mhz = mhz as u32;
    }
    let note = "lscpu's tables tell no sizes of caches: those are defaults";
    draft.sources.push(note.to_string());
    finish(draft, &numbers)
}

/// The rows of the CPUs that are online.
struct Cpus<'a> {
    rows: BTreeMap<u32, &'a Row>,
    origin: &'a str,
}

impl<'a> Cpus<'a> {
    /// Returns the CPUs online, and the numbers of the others.
    fn read(table: &'a Table, origin: &'a str) -> Result<(Cpus<'a>, Vec<u32>), MachineError> {
        let mut rows: BTreeMap<u32, &Row> = BTreeMap::new();
        let mut offline = Vec::new();
        for row in &table.rows {
            let cpu = row.number("CPU", origin)?;
            let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok());
            let Some(cpu) = cpu.filter(|cpu| (*cpu as usize) < MAX_CPUS) else {
                let reason = format!("a row without a CPU below {MAX_CPUS}");
                return Err(row.problem("CPU", reason, origin));
            };
            if matches!(row.text("ONLINE"), Some("N" | "n" | "no" | "false")) {
                offline.push(cpu);
            } else if rows.insert(cpu, row).is_some() {
                let reason = format!("there are two rows of CPU {cpu}");
                return Err(row.problem("CPU", reason, origin));
            }
        }
        if rows.is_empty() {
            return Err(Place::key("CPU").problem(origin, "no CPU is online in it", EXPECTED));
        }
        offline.sort_unstable();
        Ok((Cpus { rows, origin }, offline))
    }

    /// Groups the CPUs by the key that `of` finds for each.
    fn groups(&self, of: impl Fn(&Row) -> table::Key) -> Result<Vec<Group>, MachineError> {
        let mut groups: BTreeMap<Vec<u64>, Group> = BTreeMap::new();
        for (&cpu, row) in &self.rows {
            if let Some(key) = of(row)? {
                let place = at_line(row.line);
                let cpus = Vec::new();
                let group = groups.entry(key).or_insert(Group { cpus, place });
                group.cpus.push(cpu);
            }
        }
        Ok(groups.into_values().collect())
    }

    /// Returns the cores. lscpu numbers those of each kind anew, so that threads of one core may be cores
    /// of several kinds.
    fn cores(&self) -> Result<Vec<Group>, MachineError> {
        let cores = self.groups(|row| {
            let core = row.numbers(&["CORE"], self.origin)?;
            let package = row.package(self.origin)?.unwrap_or_default();
            Ok(core.map(|core| [package, core].concat()))
        })?;
        for core in &cores {
            let mut l1 = core.cpus.iter().map(|cpu| self.rows[cpu].text("L1D"));
            let first = l1.next();
            if l1.any(|own| Some(own) != first) {
                let cpus = cpulist::format(&core.cpus);
                let reason = format!("CPUs {cpus} are one core and have several L1s");
                let expected = "lscpu numbers the cores of each kind anew: expected a copy of sysfs, for \
                                `perch machine detect --root`";
                return Err(core.place.problem(self.origin, reason, expected));
            }
        }
        Ok(cores)
    }
}
