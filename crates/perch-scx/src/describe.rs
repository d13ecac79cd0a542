// SPDX-License-Identifier: GPL-2.0-or-later
//! The description of what a scheduler's loader does before it attaches the scheduler, as a TOML
//! file. Values may be words for what the machine has.

use std::collections::{BTreeMap, HashMap};

use perch_policy::Topology;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Description {
    /// Variables by name.
    pub set: BTreeMap<String, Value>,
    /// Entries of maps, by name.
    pub max_entries: BTreeMap<String, u32>,
    pub ops: Ops,
    /// Hash maps of numbers to fill.
    pub fill: Vec<Fill>,
    /// Programs to run.
    pub call: Vec<Call>,
}

/// What the loader changes of the struct sched_ext_ops.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ops {
    /// Which one, if the scheduler has several; its first otherwise.
    pub name: Option<String>,
    /// Names of SCX_OPS_*, or `NAME if WORD`.
    pub flags: Option<Vec<String>>,
    pub timeout_ms: Option<u32>,
}

/// Entries of a hash map, 32 bits each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fill {
    pub map: String,
    /// `cpu` or `node`; one entry otherwise.
    pub each: Option<String>,
    pub key: String,
    pub value: String,
}

/// A program to run, whose argument is a structure of 32-bit numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub program: String,
    pub each: Option<String>,
    /// The program runs if the word is true.
    #[serde(rename = "if")]
    pub when: Option<String>,
    pub arguments: Vec<Value>,
}

/// What a variable is set to.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Truth(bool),
    Number(i64),
    Word(String),
    /// An array of 64-bit numbers, of each CPU the word.
    Words64 {
        u64: String,
    },
    /// An array of 32-bit numbers.
    Words32 {
        u32: String,
    },
}

/// The words for numbers of the whole machine.
const WORDS: &str = "nr_cpus, nr_nodes, nr_llcs, smt, numa, same_capacity, each with ! for its \
                     opposite";
/// The words for numbers of a CPU.
const CPU_WORDS: &str = "cpu, node, llc, capacity, sibling, cpu_by_capacity";

impl Value {
    pub fn number(&self, shape: &Shape, place: usize) -> Result<i64, String> {
        match self {
            Value::Truth(truth) => Ok((*truth).into()),
            Value::Number(number) => Ok(*number),
            Value::Word(word) => shape.word(word, place),
            Value::Words64 { .. } | Value::Words32 { .. } => {
                Err("expected a number, not an array".to_string())
            }
        }
    }

    /// The bytes for a variable of `size` bytes.
    pub fn bytes(&self, shape: &Shape, size: usize) -> Result<Vec<u8>, String> {
        let (word, width) = match self {
            Value::Words64 { u64 } => (u64, 8),
            Value::Words32 { u32 } => (u32, 4),
            _ => {
                let number = self.number(shape, 0)?;
                if !matches!(size, 1 | 2 | 4 | 8) {
                    return Err(format!("expected an array, for it has {size} bytes"));
                }
                let unused = 64 - 8 * size as u32;
                let fits = number << unused >> unused == number
                    || (number as u64) << unused >> unused == number as u64;
                if !fits {
                    return Err(format!("{number} does not fit into its {size} bytes"));
                }
                return Ok(number.to_le_bytes()[..size].to_vec());
            }
        };
        if shape.nr_cpus() * width > size {
            let cpus = shape.nr_cpus();
            return Err(format!("it has {size} bytes, too few for {cpus} CPUs"));
        }
        let mut bytes = Vec::new();
        for cpu in 0..shape.nr_cpus() {
            bytes.extend_from_slice(&shape.word(word, cpu)?.to_le_bytes()[..width]);
        }
        Ok(bytes)
    }
}

impl Description {
    pub fn parse(text: &str) -> Result<Description, String> {
        let description: Description =
            toml::from_str(text).map_err(|error| error.to_string().trim().to_string())?;
        // What is misspelt is said now, not when the scheduler is loaded.
        let shape = Shape::default();
        for (name, value) in &description.set {
            value.bytes(&shape, 8).map_err(|reason| format!("set.{name}: {reason}"))?;
        }
        let each = (description.fill.iter().map(|fill| &fill.each))
            .chain(description.call.iter().map(|call| &call.each));
        for each in each {
            shape.places(each.as_deref())?;
        }
        for fill in &description.fill {
            shape.word(&fill.key, 0)?;
            shape.word(&fill.value, 0)?;
        }
        for call in &description.call {
            call.when.as_deref().map_or(Ok(0), |word| shape.truth(word))?;
            for argument in &call.arguments {
                argument.number(&shape, 0)?;
            }
        }
        if let Some(flags) = &description.ops.flags {
            shape.flags(flags)?;
        }
        Ok(description)
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        (self.set.keys().chain(self.max_entries.keys()))
            .chain(self.fill.iter().map(|fill| &fill.map))
            .chain(self.call.iter().map(|call| &call.program))
    }

    /// What the description names and the program, whose symbols these are, lacks.
    pub fn lacks(&self, symbols: &HashMap<String, u64>) -> Vec<String> {
        let names = self.names().filter(|name| !symbols.contains_key(*name));
        names.cloned().collect()
    }

    pub fn forget(&mut self, name: &str) {
        self.set.remove(name);
        self.max_entries.remove(name);
        self.fill.retain(|fill| fill.map != name);
        self.call.retain(|call| call.program != name);
    }
}

/// What the words are about.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    nodes: Vec<usize>,
    llcs: Vec<i64>,
    capacities: Vec<u32>,
    siblings: Vec<i64>,
    by_capacity: Vec<usize>,
    nr_nodes: usize,
    nr_llcs: usize,
    smt: bool,
}

/// A machine of one CPU.
impl Default for Shape {
    fn default() -> Shape {
        Shape {
            nodes: vec![0],
            llcs: vec![0],
            capacities: vec![1024],
            siblings: vec![-1],
            by_capacity: vec![0],
            nr_nodes: 1,
            nr_llcs: 1,
            smt: false,
        }
    }
}

/// The flags of `enum scx_ops_flags`.
const FLAGS: [(&str, u64); 9] = [
    ("KEEP_BUILTIN_IDLE", 1),
    ("ENQ_LAST", 1 << 1),
    ("ENQ_EXITING", 1 << 2),
    ("SWITCH_PARTIAL", 1 << 3),
    ("ENQ_MIGRATION_DISABLED", 1 << 4),
    ("ALLOW_QUEUED_WAKEUP", 1 << 5),
    ("BUILTIN_IDLE_PER_NODE", 1 << 6),
    ("ALWAYS_ENQ_IMMED", 1 << 7),
    ("HAS_CGROUP_WEIGHT", 1 << 16),
];

impl Shape {
    pub fn new(topology: &Topology) -> Shape {
        let n = topology.nr_cpus();
        let sibling = |cpu: usize| {
            let mut others = topology.core_span(cpu).iter().filter(|&other| other != cpu);
            others.next().map_or(-1, |other| other as i64)
        };
        let mut by_capacity: Vec<usize> = (0..n).collect();
        by_capacity.sort_by_key(|&cpu| std::cmp::Reverse(topology.capacity(cpu)));
        Shape {
            nodes: (0..n).map(|cpu| topology.node(cpu)).collect(),
            llcs: (0..n).map(|cpu| topology.llc(cpu).map_or(-1, |llc| llc as i64)).collect(),
            capacities: (0..n).map(|cpu| topology.capacity(cpu)).collect(),
            siblings: (0..n).map(sibling).collect(),
            by_capacity,
            nr_nodes: topology.nr_nodes(),
            nr_llcs: topology.nr_llcs(),
            smt: topology.has_smt(),
        }
    }

    fn nr_cpus(&self) -> usize {
        self.nodes.len()
    }

    /// A word about the whole machine.
    pub fn truth(&self, word: &str) -> Result<i64, String> {
        let same = || self.capacities.iter().all(|c| *c == self.capacities[0]);
        Ok(match word {
            "nr_cpus" => self.nr_cpus() as i64,
            "nr_nodes" => self.nr_nodes as i64,
            "nr_llcs" => self.nr_llcs as i64,
            "smt" => self.smt.into(),
            "numa" => (self.nr_nodes > 1).into(),
            "same_capacity" => same().into(),
            _ => match word.strip_prefix('!') {
                Some(word) => (self.truth(word)? == 0).into(),
                None => return Err(format!("there is no word `{word}`: expected {WORDS}")),
            },
        })
    }

    /// A word about a CPU, or about the whole machine.
    pub fn word(&self, word: &str, cpu: usize) -> Result<i64, String> {
        Ok(match word {
            "cpu" => cpu as i64,
            "node" => self.nodes[cpu] as i64,
            "llc" => self.llcs[cpu],
            "capacity" => self.capacities[cpu].into(),
            "sibling" => self.siblings[cpu],
            "cpu_by_capacity" => self.by_capacity[cpu] as i64,
            _ => {
                return self
                    .truth(word)
                    .map_err(|error| format!("{error}, or of a CPU: {CPU_WORDS}"));
            }
        })
    }

    /// What `each` goes through: all CPUs, or one place without it.
    pub fn places(&self, each: Option<&str>) -> Result<std::ops::Range<usize>, String> {
        match each {
            None => Ok(0..1),
            Some("cpu") => Ok(0..self.nr_cpus()),
            Some(other) => Err(format!("each = \"{other}\": expected \"cpu\"")),
        }
    }

    /// The value of flags by their names, each perhaps with a condition.
    pub fn flags(&self, names: &[String]) -> Result<u64, String> {
        let mut value = 0;
        for text in names {
            let (name, word) = text.split_once(" if ").unwrap_or((text, ""));
            let Some((_, flag)) = FLAGS.iter().find(|(known, _)| *known == name) else {
                let known: Vec<_> = FLAGS.iter().map(|(name, _)| *name).collect();
                let known = known.join(", ");
                return Err(format!("ops.flags: there is no SCX_OPS_{name}: expected {known}"));
            };
            if word.is_empty() || self.truth(word)? != 0 {
                value |= flag;
            }
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_says_what_a_loader_sets() {
        let text = "[set]\na = true\nb = -1\nc = { u64 = \"capacity\" }\nd = \"!numa\"\n\
                    [ops]\nflags = [\"ENQ_LAST\", \"BUILTIN_IDLE_PER_NODE if numa\"]\n\
                    [[call]]\nprogram = \"p\"\neach = \"cpu\"\nif = \"smt\"\n\
                    arguments = [0, \"cpu\", \"sibling\"]\n";
        let mut description = Description::parse(text).unwrap();
        let shape = Shape::default();
        let bytes = |name: &str, size| description.set[name].bytes(&shape, size);
        assert_eq!(bytes("a", 1).unwrap(), [1]);
        assert_eq!(bytes("b", 4).unwrap(), [255; 4]);
        assert_eq!(bytes("c", 80).unwrap(), 1024_u64.to_le_bytes());
        assert_eq!(bytes("d", 2).unwrap(), [1, 0]);
        assert!(bytes("a", 3).is_err() && bytes("c", 4).is_err());
        let flags = description.ops.flags.clone().unwrap();
        assert_eq!(shape.flags(&flags).unwrap(), 2);
        let symbols = [("a", 1), ("b", 4), ("p", 9)].map(|(name, n)| (name.to_string(), n));
        let lacks = description.lacks(&symbols.into_iter().collect());
        assert_eq!(lacks, ["c", "d"]);
        description.forget("p");
        assert!(description.call.is_empty());
    }

    #[test]
    fn what_is_misspelt_is_said_at_once() {
        for (text, part) in [
            ("[set]\na = \"smd\"\n", "set.a: there is no word `smd`"),
            ("[ops]\nflags = [\"LAST\"]\n", "SCX_OPS_LAST"),
            ("[sets]\n", "unknown field `sets`"),
            ("[[call]]\nprogram = \"p\"\neach = \"core\"\narguments = []\n", "each = \"core\""),
        ] {
            let error = Description::parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
