// SPDX-License-Identifier: GPL-2.0-or-later
//! hwloc's XML as a flat list of objects that know their parents.

use crate::error::{MachineError, Place};
use crate::lines::Lines;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

pub(super) struct Object {
    /// The object's type: "Package", "L3Cache", "PU" and so on.
    pub kind: String,
    /// The parent's index in [`Document::objects`]; parents stand before their children.
    pub parent: Option<usize>,
    pub attributes: BTreeMap<String, String>,
    pub line: usize,
}

/// A `<distances2>` matrix.
pub(super) struct Distances {
    pub kind: String,
    /// True where the matrix is of latencies, as a SLIT is.
    pub latency: bool,
    pub indexes: Vec<u64>,
    pub values: Vec<u64>,
    pub line: usize,
}

/// A `<cpukind>` with the contents of its `<info>` elements.
pub(super) struct CpuKind {
    pub cpuset: String,
    /// How capable hwloc takes it to be, beside the other kinds.
    pub efficiency: Option<i64>,
    pub infos: BTreeMap<String, String>,
    pub line: usize,
}

/// The contents of a topology file that a machine needs.
#[derive(Default)]
pub(super) struct Document {
    pub objects: Vec<Object>,
    pub distances: Vec<Distances>,
    pub cpu_kinds: Vec<CpuKind>,
    /// The `<info>` elements of the Machine object.
    pub infos: BTreeMap<String, String>,
}

/// The limit lies far above the depth of any topology; a file with deeper elements is no topology.
const MAX_DEPTH: usize = 128;

/// A parser that reads events and remembers the open elements.
struct Parser<'a> {
    lines: Lines,
    origin: &'a str,
    document: Document,
    /// The names of the open elements, outermost first.
    open: Vec<String>,
    /// The open objects, outermost first.
    objects: Vec<usize>,
}

pub(super) fn parse(text: &str, origin: &str) -> Result<Document, MachineError> {
    let mut parser = Parser {
        lines: Lines::new(text),
        origin,
        document: Document::default(),
        open: Vec::new(),
        objects: Vec::new(),
    };
    let mut reader = Reader::from_str(text);
    let mut at_root = true;
    loop {
        let at = reader.buffer_position() as usize;
        let event = reader.read_event().map_err(|error| {
            let at = reader.error_position() as usize;
            parser.problem(at, "", format!("this is not XML: {error}"), "")
        })?;
        match event {
            Event::Start(element) => {
                parser.enter(&element, at, at_root)?;
                at_root = false;
            }
            Event::Empty(element) => {
                parser.enter(&element, at, at_root)?;
                parser.leave();
                at_root = false;
            }
            Event::End(_) => parser.leave(),
            Event::Text(content) => {
                let content = String::from_utf8_lossy(&content).into_owned();
                parser.content(&content, at)?;
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if let Some(name) = parser.open.last() {
        let reason = format!("the file ends inside <{name}>");
        return Err(parser.problem(text.len(), "", reason, "expected the whole file"));
    }
    if at_root {
        return Err(parser.problem(0, "", "no <topology> in it", EXPECTED));
    }
    Ok(parser.document)
}

const EXPECTED: &str = "expected the XML that `lstopo file.xml` of hwloc 2 or later writes";

/// Files of hwloc 2.0 name no matrix, and tell what it means by a bit of its kind
/// (`HWLOC_DISTANCES_KIND_MEANS_LATENCY`).
fn is_latency(attributes: &BTreeMap<String, String>) -> bool {
    let kind = attributes.get("kind").and_then(|kind| kind.parse().ok());
    match attributes.get("name") {
        Some(name) => name == "NUMALatency",
        None => kind.is_none_or(|kind: u64| kind & 4 != 0),
    }
}

impl Parser<'_> {
    fn problem(
        &self,
        at: usize,
        key: &str,
        reason: impl Into<String>,
        expected: &str,
    ) -> MachineError {
        let line = Some(self.lines.of(at));
        let key = key.to_string();
        Place { key, line }.problem(self.origin, reason, expected)
    }

    fn enter(&mut self, element: &BytesStart, at: usize, root: bool) -> Result<(), MachineError> {
        let name = String::from_utf8_lossy(element.name().as_ref()).into_owned();
        let attributes = self.attributes(element, &name, at)?;
        if root {
            let version = attributes.get("version").map_or("1", String::as_str);
            let major: u32 = version.split('.').next().unwrap_or("").parse().unwrap_or(0);
            if name != "topology" {
                let reason = format!("the file begins with <{}>", name.escape_default());
                return Err(self.problem(at, "", reason, EXPECTED));
            }
            if major < 2 {
                let reason = format!("format version {} is too old", version.escape_default());
                return Err(self.problem(at, "topology", reason, EXPECTED));
            }
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(self.problem(at, &name, "elements are nested too deeply", EXPECTED));
        }
        match name.as_str() {
            "object" => self.object(attributes, at)?,
            "distances2" => {
                let line = self.lines.of(at);
                self.document.distances.push(Distances {
                    kind: attributes.get("type").cloned().unwrap_or_default(),
                    latency: is_latency(&attributes),
                    indexes: Vec::new(),
                    values: Vec::new(),
                    line,
                });
            }
            "cpukind" => {
                let line = self.lines.of(at);
                self.document.cpu_kinds.push(CpuKind {
                    cpuset: attributes.get("cpuset").cloned().unwrap_or_default(),
                    efficiency: attributes
                        .get("forced_efficiency")
                        .and_then(|number| number.parse().ok()),
                    infos: BTreeMap::new(),
                    line,
                });
            }
            "info" => self.info(attributes),
            _ => {}
        }
        self.open.push(name);
        Ok(())
    }

    fn attributes(
        &self,
        element: &BytesStart,
        name: &str,
        at: usize,
    ) -> Result<BTreeMap<String, String>, MachineError> {
        let mut attributes = BTreeMap::new();
        // The reader's own search for an attribute given twice takes the square of their number.
        for attribute in element.attributes().with_checks(false) {
            let broken = |error: String| {
                self.problem(at, name, format!("an attribute cannot be read: {error}"), EXPECTED)
            };
            let attribute = attribute.map_err(|error| broken(error.to_string()))?;
            let value = attribute.unescape_value().map_err(|error| broken(error.to_string()))?;
            let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            if attributes.contains_key(&key) {
                return Err(broken(format!("`{key}` is there twice")));
            }
            attributes.insert(key, value.into_owned());
        }
        Ok(attributes)
    }

    fn object(
        &mut self,
        attributes: BTreeMap<String, String>,
        at: usize,
    ) -> Result<(), MachineError> {
        let Some(kind) = attributes.get("type").cloned() else {
            return Err(self.problem(at, "object", "no `type`", EXPECTED));
        };
        self.objects.push(self.document.objects.len());
        let parents = &self.objects[..self.objects.len() - 1];
        self.document.objects.push(Object {
            kind,
            parent: parents.last().copied(),
            attributes,
            line: self.lines.of(at),
        });
        Ok(())
    }

    fn info(&mut self, mut attributes: BTreeMap<String, String>) {
        let (Some(name), Some(value)) = (attributes.remove("name"), attributes.remove("value"))
        else {
            return;
        };
        match self.open.last().map(String::as_str) {
            Some("cpukind") => {
                if let Some(kind) = self.document.cpu_kinds.last_mut() {
                    kind.infos.insert(name, value);
                }
            }
            Some("object" | "topology") => {
                self.document.infos.entry(name).or_insert(value);
            }
            _ => {}
        }
    }

    fn leave(&mut self) {
        if self.open.pop().as_deref() == Some("object") {
            self.objects.pop();
        }
    }

    fn content(&mut self, text: &str, at: usize) -> Result<(), MachineError> {
        // <distances2hetero>, between NUMA nodes and other things, has these elements with other words.
        let mut open = self.open.iter().rev().map(String::as_str);
        let (Some(element @ ("indexes" | "u64values")), Some("distances2")) =
            (open.next(), open.next())
        else {
            return Ok(());
        };
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        let Ok(numbers) = numbers else {
            return Err(self.problem(at, element, "not a list of numbers", EXPECTED));
        };
        let indexes = element == "indexes";
        if let Some(last) = self.document.distances.last_mut() {
            let list = if indexes { &mut last.indexes } else { &mut last.values };
            list.extend(numbers);
        }
        Ok(())
    }
}
