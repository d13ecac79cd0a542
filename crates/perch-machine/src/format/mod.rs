// SPDX-License-Identifier: GPL-2.0-or-later
//! The TOML format of a machine: the keys of the file ([`raw`]), the regular form of a topology
//! ([`regular`]), the costs ([`hardware`]) and the writer ([`mod@write`]). docs/machines.md has
//! every key.

mod hardware;
mod raw;
mod regular;
mod write;

pub(crate) use raw::Bytes;
pub(crate) use regular::{Numbering, Regular};

use crate::cpulist;
use crate::draft::{CAPACITY, Draft, Group, RANKING, Value};
use crate::error::{MachineError, Place, Problem};
use crate::lines::Lines;
use crate::model::Machine;
use perch_file::Kind;
use perch_file::Spanned;
use raw::{RawFile, RawGroup, RawValue};
use schemars::Schema;
use schemars::generate::SchemaSettings;
use std::ops::Range;
use std::path::Path;

/// The file that is being read; this structure turns byte offsets into the lines that errors name.
pub(crate) struct Source<'a> {
    pub origin: &'a str,
    text: &'a str,
    lines: Lines,
}

impl<'a> Source<'a> {
    fn new(text: &'a str, origin: &'a str) -> Source<'a> {
        let lines = Lines::new(text);
        Source { origin, text, lines }
    }

    pub fn place(&self, key: impl Into<String>, span: Range<usize>) -> Place {
        Place { key: key.into(), line: Some(self.lines.of(span.start)) }
    }

    /// Returns the error for a refusal of the TOML parser, with the key on that line.
    fn refusal(&self, error: &toml::de::Error) -> MachineError {
        let line = error.span().map(|span| self.lines.of(span.start));
        let text = line.and_then(|line| self.text.lines().nth(line - 1)).unwrap_or("");
        let key = match text.trim().strip_prefix('[') {
            Some(header) => header.trim_matches(['[', ']']),
            None => text.split_once('=').map_or("", |(key, _)| key.trim()),
        };
        MachineError::Invalid(Box::new(Problem {
            origin: self.origin.to_string(),
            line,
            key: key.chars().take(60).collect(),
            reason: error.message().trim().replace('\n', "; "),
            expected: String::new(),
        }))
    }
}

impl Machine {
    /// Reads the machine that `text` describes. `origin` is the name of the text in errors, usually
    /// a path.
    ///
    /// # Errors
    /// Returns [`MachineError::Invalid`] when the text is not TOML, has an unknown or missing key,
    /// or describes a machine that contradicts itself.
    pub fn from_toml_str(text: &str, origin: &str) -> Result<Machine, MachineError> {
        let source = Source::new(text, origin);
        let file: RawFile = toml::from_str(text).map_err(|error| source.refusal(&error))?;
        draft(file, &source)?.check()
    }

    /// Reads the machine in the file at `path`.
    ///
    /// # Errors
    /// Returns [`MachineError::Read`] when the file cannot be read, else the errors of
    /// [`Machine::from_toml_str`].
    pub fn from_file(path: &Path) -> Result<Machine, MachineError> {
        let origin = path.display().to_string();
        Machine::from_toml_str(&perch_file::text(path, Kind::MACHINE)?, &origin)
    }

    /// Writes the machine as a file in the explicit form. Reading the file gives an equal machine.
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }
}

/// Returns the JSON Schema of a machine file. It is made of the types that read the file: keys that
/// the reader refuses it refuses too, and what only all keys together tell it leaves to the reader.
pub fn schema() -> Schema {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<RawFile>()
}

fn draft(file: RawFile, source: &Source) -> Result<Draft, MachineError> {
    let mut draft = Draft::new(source.origin, &file.name);
    draft.description = file.description;
    draft.sources = file.sources;
    draft.cores = groups(&file.core, "core", source)?;
    draft.clusters = groups(&file.cluster, "cluster", source)?;
    for (index, llc) in file.llc.iter().enumerate() {
        let one = group(&llc.cpus, format!("llc[{index}].cpus"), source)?;
        if let Some(Bytes(bytes)) = llc.bytes {
            draft.llc_bytes.push((one.clone(), bytes));
        }
        draft.llcs.push(one);
    }
    draft.nodes = groups(&file.node, "node", source)?;
    draft.packages = groups(&file.package, "package", source)?;
    if let Some(topology) = &file.topology {
        let place = source.place("topology", topology.span());
        let levels = [&draft.cores, &draft.clusters, &draft.llcs, &draft.nodes, &draft.packages];
        if let Some(group) = levels.into_iter().flatten().next() {
            return Err(place.problem(
                source.origin,
                format!("the topology is said twice: here, and in `{}`", group.place.key),
                "expected `[topology]`, or tables of CPU lists, not both",
            ));
        }
        Regular::read(topology.get_ref(), &place, source.origin)?.describe(&mut draft, &place);
    }
    if let Some(declared) = &file.declared {
        for (index, list) in declared.llc.iter().enumerate() {
            let key = format!("declared.llc[{index}]");
            draft.declared.push(group(list, key, source)?);
        }
    }
    draft.capacities = values(&file.capacity, &CAPACITY, source)?;
    draft.rankings = values(&file.ranking, &RANKING, source)?;
    if let Some(numa) = file.numa {
        let place = source.place("numa.distance", numa.distance.span());
        draft.distance = Some((numa.distance.into_inner(), place));
    }
    if let Some(costs) = &file.hardware {
        draft.hardware = hardware::read(costs, source)?;
    }
    Ok(draft)
}

fn groups(tables: &[RawGroup], name: &str, source: &Source) -> Result<Vec<Group>, MachineError> {
    let one = |(index, table): (usize, &RawGroup)| {
        group(&table.cpus, format!("{name}[{index}].cpus"), source)
    };
    tables.iter().enumerate().map(one).collect()
}

fn values(
    tables: &[RawValue],
    what: &Value,
    source: &Source,
) -> Result<Vec<(Group, u64)>, MachineError> {
    let one = |(index, table): (usize, &RawValue)| {
        let key = format!("{}[{index}]", what.word);
        let cpus = group(&table.cpus, format!("{key}.cpus"), source)?.cpus;
        let (value, place) = (table.value.get_ref(), source.place(key, table.value.span()));
        let value = u64::try_from(*value).map_err(|_| {
            let reason = format!("{} {value} is out of range", what.word);
            place.problem(source.origin, reason, what.expected)
        })?;
        Ok((Group { cpus, place }, value))
    };
    tables.iter().enumerate().map(one).collect()
}

fn group(list: &Spanned<String>, key: String, source: &Source) -> Result<Group, MachineError> {
    let place = source.place(key, list.span());
    match cpulist::parse(list.get_ref()) {
        Ok(cpus) => Ok(Group { cpus, place }),
        Err(reason) => Err(place.problem(
            source.origin,
            reason.to_string(),
            "expected a CPU list such as \"0,3-5\"",
        )),
    }
}
