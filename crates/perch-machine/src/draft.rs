// SPDX-License-Identifier: GPL-2.0-or-later
//! A description of a machine before it is checked: groups of CPUs for each level, each group with
//! the place in the source where it stands. [`Draft::check`] is the only door to a [`Machine`].

use crate::error::{MachineError, Place};
use crate::hardware::Hardware;
use crate::model::{Cpu, MAX_CPUS, MAX_DISTANCES, MAX_NODES, Machine};

/// CPUs that share something, and the place in the source that says so.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub cpus: Vec<u32>,
    pub place: Place,
}

/// All that a source may say about a machine. An empty level was left out of the source, and the
/// rules of docs/machines.md fill it in.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The name of the source in errors.
    pub origin: String,
    pub name: String,
    pub description: String,
    pub sources: Vec<String>,
    pub cores: Vec<Group>,
    pub clusters: Vec<Group>,
    pub llcs: Vec<Group>,
    /// The LLCs that firmware declares to the scheduler; none where they are those of the hardware.
    pub declared: Vec<Group>,
    pub nodes: Vec<Group>,
    pub packages: Vec<Group>,
    pub capacities: Vec<(Group, u64)>,
    pub rankings: Vec<(Group, u64)>,
    /// The bytes of LLCs that may have others than `hardware.llc_bytes`, by one CPU or all of each.
    pub llc_bytes: Vec<(Group, u64)>,
    pub distance: Option<(Vec<Vec<u32>>, Place)>,
    pub hardware: Hardware,
}

/// What a number that a CPU may have is called, and its range, which begins with 1.
pub struct Value {
    pub word: &'static str,
    pub plural: &'static str,
    most: u32,
    pub expected: &'static str,
}

pub const CAPACITY: Value = Value {
    word: "capacity",
    plural: "capacities",
    most: 1024,
    expected: "expected 1 to 1024, where 1024 is the most capable CPU",
};

pub const RANKING: Value = Value {
    word: "ranking",
    plural: "rankings",
    most: 255,
    expected: "expected 1 to 255, where the kernel prefers the higher",
};

/// One level, after the check that every CPU is in at most one group of it.
struct Level<'a> {
    /// The level's name in messages: "core", "LLC".
    word: &'static str,
    groups: &'a [Group],
    of: Vec<Option<u32>>,
}

impl Draft {
    pub fn new(origin: &str, name: &str) -> Draft {
        Draft {
            origin: origin.to_string(),
            name: name.to_string(),
            description: String::new(),
            sources: Vec::new(),
            cores: Vec::new(),
            clusters: Vec::new(),
            llcs: Vec::new(),
            declared: Vec::new(),
            nodes: Vec::new(),
            packages: Vec::new(),
            capacities: Vec::new(),
            rankings: Vec::new(),
            llc_bytes: Vec::new(),
            distance: None,
            hardware: Hardware::default(),
        }
    }

    /// Returns the LLCs as the scheduler gets to know them.
    pub fn seen_llcs(&self) -> &[Group] {
        if self.declared.is_empty() { &self.llcs } else { &self.declared }
    }

    /// Numbers the CPUs anew, from 0 up in the order of `numbers` (ascending), which has all of them.
    pub fn renumber(&mut self, numbers: &[u32]) {
        let levels = [
            &mut self.cores,
            &mut self.clusters,
            &mut self.llcs,
            &mut self.declared,
            &mut self.nodes,
            &mut self.packages,
        ];
        let groups = levels.into_iter().flatten();
        let values = self.capacities.iter_mut().chain(&mut self.rankings);
        let values = values.chain(&mut self.llc_bytes);
        let groups = groups.chain(values.map(|(group, _)| group));
        for cpu in groups.flat_map(|group| &mut group.cpus) {
            if let Ok(place) = numbers.binary_search(cpu) {
                *cpu = place as u32;
            }
        }
    }

    /// Returns the machine, if nothing in the description contradicts anything else.
    pub fn check(self) -> Result<Machine, MachineError> {
        self.check_name()?;
        let count = self.count_cpus()?;
        let cores = self.level("core", &self.cores, count)?;
        let clusters = self.level("cluster", &self.clusters, count)?;
        let llcs = self.level("LLC", &self.llcs, count)?;
        let declared = self.level("declared LLC", &self.declared, count)?;
        let nodes = self.level("node", &self.nodes, count)?;
        let packages = self.level("package", &self.packages, count)?;
        for level in [&llcs, &declared, &nodes, &packages] {
            self.all_or_none(level)?;
        }

        let package_of = packages.or(|_| 0);
        let node_of = nodes.or(|cpu| package_of[cpu]);
        self.few_nodes(&node_of)?;
        // Without LLCs in the source, each node has one, or each package where a node spans
        // packages.
        let llc_of = llcs.or(|cpu| node_of[cpu] * count as u32 + package_of[cpu]);
        let declared_of = declared.or(|cpu| llc_of[cpu]);
        let core_of: Vec<u32> = cores.with_singles(count);

        self.inside(&cores, &clusters.of, "cluster")?;
        self.inside(&cores, &some(&llc_of), "LLC")?;
        self.inside(&clusters, &some(&llc_of), "LLC")?;
        self.inside(&cores, &some(&declared_of), "declared LLC")?;
        self.inside(&clusters, &some(&declared_of), "declared LLC")?;
        self.inside(&cores, &some(&node_of), "node")?;
        self.inside(&clusters, &some(&node_of), "node")?;
        self.inside(&declared, &some(&node_of), "node")?;
        if declared.groups.is_empty() {
            self.llc_inside_node(&llcs, &node_of)?;
        }
        self.inside(&llcs, &some(&package_of), "package")?;
        self.nodes_and_packages(&nodes, &package_of)?;

        let capacity = self.capacities(count)?;
        let ranking = self.values(&RANKING, &self.rankings, count)?;
        let node_distance = self.distances(&node_of)?;
        let order = Order::new;
        let (mut core, mut cluster, mut llc) = (order(), order(), order());
        let (mut declared_llc, mut package) = (order(), order());
        let cpus = (0..count)
            .map(|cpu| Cpu {
                core: core.index(core_of[cpu]),
                cluster: clusters.of[cpu].map(|c| cluster.index(c)),
                llc: llc.index(llc_of[cpu]),
                declared_llc: declared_llc.index(declared_of[cpu]),
                node: node_of[cpu],
                package: package.index(package_of[cpu]),
                capacity: capacity[cpu],
                ranking: ranking[cpu].unwrap_or(0),
            })
            .collect();
        let mut machine = Machine {
            name: self.name,
            description: self.description,
            sources: self.sources,
            cpus,
            node_distance,
            hardware: self.hardware,
            llc_bytes: Vec::new(),
        };
        let mut bytes = vec![machine.hardware.llc_bytes; machine.llcs()];
        for (group, own) in &self.llc_bytes {
            // A group of an LLC has no CPU that the check of the LLCs did not see.
            bytes[machine.cpus[group.cpus[0] as usize].llc as usize] = *own;
        }
        machine.set_llc_bytes(bytes);
        Ok(machine)
    }

    /// Refuses more nodes than Linux has numbers for: their distances alone are the number's square.
    fn few_nodes(&self, node_of: &[u32]) -> Result<(), MachineError> {
        let nodes = node_of.iter().max().map_or(0, |&last| last as usize + 1);
        if nodes <= MAX_NODES {
            return Ok(());
        }
        let mut levels = [&self.nodes, &self.packages].into_iter();
        let group = levels.find_map(|groups| groups.get(MAX_NODES));
        let place = group.map(|group| group.place.clone()).unwrap_or_default();
        Err(place.problem(
            &self.origin,
            format!("{nodes} nodes"),
            format!("a machine may have {MAX_NODES}, as many as Linux has numbers for"),
        ))
    }

    fn check_name(&self) -> Result<(), MachineError> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(good) {
            return Err(Place::key("name").problem(
                &self.origin,
                format!("`{}` cannot name a machine", self.name.escape_default()),
                "expected letters, digits and `-`",
            ));
        }
        Ok(())
    }

    /// Returns the number of CPUs, if the numbering has no hole.
    fn count_cpus(&self) -> Result<usize, MachineError> {
        let mut seen = Vec::new();
        let levels = [&self.cores, &self.clusters, &self.llcs, &self.nodes, &self.packages];
        for group in levels.into_iter().flatten() {
            for &cpu in &group.cpus {
                let cpu = cpu as usize;
                if cpu >= MAX_CPUS {
                    return Err(group.place.problem(
                        &self.origin,
                        format!("CPU {cpu} is beyond the {MAX_CPUS} CPUs that a machine may have"),
                        "",
                    ));
                }
                if seen.len() <= cpu {
                    seen.resize(cpu + 1, false);
                }
                seen[cpu] = true;
            }
        }
        if seen.is_empty() {
            return Err(Place::default().problem(
                &self.origin,
                "the machine has no CPUs",
                "expected `[topology]`, or at least one of `[[core]]`, `[[cluster]]`, `[[llc]]`, \
                 `[[node]]` and `[[package]]`",
            ));
        }
        if let Some(hole) = seen.iter().position(|seen| !seen) {
            return Err(Place::default().problem(
                &self.origin,
                format!(
                    "a hole in the numbering: no table names CPU {hole}, yet there is CPU {}",
                    seen.len() - 1
                ),
                "expected every number from 0 up; an offline CPU has no place in a machine",
            ));
        }
        Ok(seen.len())
    }

    fn level<'a>(
        &self,
        word: &'static str,
        groups: &'a [Group],
        count: usize,
    ) -> Result<Level<'a>, MachineError> {
        let mut of: Vec<Option<u32>> = vec![None; count];
        for (index, group) in groups.iter().enumerate() {
            if group.cpus.is_empty() {
                return Err(group.place.problem(
                    &self.origin,
                    format!("this {word} has no CPUs"),
                    "expected a CPU list such as \"0,3-5\"",
                ));
            }
            for &cpu in &group.cpus {
                let Some(slot) = of.get_mut(cpu as usize) else {
                    return Err(group.place.problem(
                        &self.origin,
                        format!("there is no CPU {cpu}: the last CPU is {}", count - 1),
                        "",
                    ));
                };
                if let Some(first) = *slot {
                    let first = &groups[first as usize].place;
                    let at = match first.line {
                        Some(line) => format!("`{}`, line {line}", first.key),
                        None => format!("`{}`", first.key),
                    };
                    return Err(group.place.problem(
                        &self.origin,
                        format!("CPU {cpu} is in two {word}s: in this one and in {at}"),
                        format!("expected each CPU in one {word}"),
                    ));
                }
                *slot = Some(index as u32);
            }
        }
        Ok(Level { word, groups, of })
    }

    /// Refuses a level that the source gives for some CPUs and not for others.
    fn all_or_none(&self, level: &Level) -> Result<(), MachineError> {
        let Some(first) = level.groups.first() else {
            return Ok(());
        };
        match level.of.iter().position(Option::is_none) {
            None => Ok(()),
            Some(cpu) => Err(first.place.problem(
                &self.origin,
                format!("CPU {cpu} is in no {}", level.word),
                format!("expected every CPU in one {0}, or no {0} table at all", level.word),
            )),
        }
    }

    /// Checks that every group of `inner` lies in one group of the level that `outer_of` assigns.
    fn inside(
        &self,
        inner: &Level,
        outer_of: &[Option<u32>],
        outer: &str,
    ) -> Result<(), MachineError> {
        for group in inner.groups {
            let first = group.cpus[0];
            let home = outer_of[first as usize];
            if let Some(&other) = group.cpus.iter().find(|&&c| outer_of[c as usize] != home) {
                return Err(group.place.problem(
                    &self.origin,
                    format!(
                        "this {} spans two {outer}s: CPU {first} and CPU {other} are in different \
                         ones",
                        inner.word
                    ),
                    format!("expected a {} to lie inside one {outer}", inner.word),
                ));
            }
        }
        Ok(())
    }

    /// An LLC over several nodes exists: sub-NUMA clustering cuts a package into nodes whose CPUs
    /// still report one L3. The kernel then keeps its MC level inside a node, so the file of such a
    /// machine must say so in `[declared]`, lest the difference be an accident.
    fn llc_inside_node(&self, llcs: &Level, node_of: &[u32]) -> Result<(), MachineError> {
        self.inside(llcs, &some(node_of), "node").map_err(|error| {
            if let MachineError::Invalid(mut problem) = error {
                problem.expected = "expected an LLC inside one node; where nodes cut an LLC \
                     (sub-NUMA clustering), say in `[declared] llc` what the scheduler sees"
                    .to_string();
                return MachineError::Invalid(problem);
            }
            error
        })
    }

    /// A package may hold several nodes, and with memory interleaving a node several packages; a
    /// node with parts of two packages, of which one has other nodes too, is neither.
    fn nodes_and_packages(&self, nodes: &Level, package_of: &[u32]) -> Result<(), MachineError> {
        if nodes.groups.is_empty() || self.inside(nodes, &some(package_of), "package").is_ok() {
            return Ok(());
        }
        let node_of: Vec<Option<u32>> = nodes.of.clone();
        let packages = Level { word: "package", groups: &self.packages, of: Vec::new() };
        self.inside(&packages, &node_of, "node").map_err(|error| {
            if let MachineError::Invalid(mut problem) = error {
                problem.reason =
                    format!("{}, and one of those nodes spans two packages", problem.reason);
                problem.expected =
                    "expected nodes inside packages, or (memory interleaving) packages inside nodes"
                        .to_string();
                return MachineError::Invalid(problem);
            }
            error
        })
    }

    /// Returns the value of each CPU that has one.
    fn values(
        &self,
        what: &Value,
        given: &[(Group, u64)],
        count: usize,
    ) -> Result<Vec<Option<u32>>, MachineError> {
        let mut values: Vec<Option<u32>> = vec![None; count];
        for (group, value) in given {
            let problem = |reason: String, expected: &str| {
                group.place.problem(&self.origin, reason, expected)
            };
            let value = match u32::try_from(*value) {
                Ok(value) if (1..=what.most).contains(&value) => value,
                _ => {
                    let reason = format!("{} {value} is out of range", what.word);
                    return Err(problem(reason, what.expected));
                }
            };
            for &cpu in &group.cpus {
                match values.get_mut(cpu as usize) {
                    None => {
                        return Err(problem(
                            format!("a {} for CPU {cpu}, which does not exist", what.word),
                            &format!("expected a CPU from 0 to {}", count - 1),
                        ));
                    }
                    Some(Some(_)) => {
                        return Err(problem(
                            format!("CPU {cpu} has two {}", what.plural),
                            &format!("expected each CPU in one `[[{}]]`", what.word),
                        ));
                    }
                    Some(slot) => *slot = Some(value),
                }
            }
        }
        Ok(values)
    }

    fn capacities(&self, count: usize) -> Result<Vec<u32>, MachineError> {
        let capacity = self.values(&CAPACITY, &self.capacities, count)?;
        let capacity: Vec<u32> = capacity.into_iter().map(|c| c.unwrap_or(1024)).collect();
        if !capacity.contains(&1024) {
            let place = self.capacities.first().map(|(group, _)| &group.place);
            return Err(place.cloned().unwrap_or_default().problem(
                &self.origin,
                format!(
                    "no CPU has capacity 1024: the highest is {}",
                    capacity.iter().max().copied().unwrap_or(0)
                ),
                "expected capacities scaled so that the most capable CPU has 1024",
            ));
        }
        Ok(capacity)
    }

    /// Returns the distances of the source, or those that Linux assumes without a SLIT: 10 locally,
    /// 20 elsewhere.
    fn distances(&self, node_of: &[u32]) -> Result<Vec<Vec<u32>>, MachineError> {
        let count = node_of.iter().max().map_or(0, |&last| last as usize + 1);
        let Some((table, place)) = &self.distance else {
            let between = |a: usize, b: usize| if a == b { 10 } else { 20 };
            return Ok((0..count).map(|a| (0..count).map(|b| between(a, b)).collect()).collect());
        };
        let problem =
            |reason: String, expected: String| Err(place.problem(&self.origin, reason, expected));
        let size = format!("expected {count} rows of {count} numbers, one for each node");
        if table.len() != count {
            return problem(format!("{} rows for {count} nodes", table.len()), size);
        }
        for (a, row) in table.iter().enumerate() {
            if row.len() != count {
                return problem(
                    format!("row {a} has {} numbers for {count} nodes", row.len()),
                    size,
                );
            }
            for (b, &value) in row.iter().enumerate() {
                if a == b && value != 10 {
                    return problem(
                        format!("node {a} is {value} from itself"),
                        "expected 10 on the diagonal, as in every SLIT".into(),
                    );
                }
                if !(10..=254).contains(&value) {
                    return problem(
                        format!("node {a} is {value} from node {b}"),
                        "expected 10 (local) to 254; 255 means unreachable".into(),
                    );
                }
            }
        }
        let mut different: Vec<u32> = table.iter().flatten().copied().collect();
        different.sort_unstable();
        different.dedup();
        let beyond = different.iter().filter(|&&distance| distance > 10).count();
        if beyond > MAX_DISTANCES {
            return problem(
                format!("{beyond} different distances between nodes"),
                format!("expected at most {MAX_DISTANCES}, each of which is a scheduling domain"),
            );
        }
        Ok(table.clone())
    }
}

impl Level<'_> {
    fn or(&self, default: impl Fn(usize) -> u32) -> Vec<u32> {
        let fill = |(cpu, group): (usize, &Option<u32>)| group.unwrap_or_else(|| default(cpu));
        self.of.iter().enumerate().map(fill).collect()
    }

    /// Returns the level with each CPU that no group names as a group of its own.
    fn with_singles(&self, count: usize) -> Vec<u32> {
        let single = |cpu: usize| (self.groups.len() + cpu) as u32;
        (0..count).map(|cpu| self.of[cpu].unwrap_or(single(cpu))).collect()
    }
}

fn some(of: &[u32]) -> Vec<Option<u32>> {
    of.iter().copied().map(Some).collect()
}

/// Dense indexes in the order of each group's lowest CPU, so that equal machines compare equal
/// however their description was ordered. Nodes keep their own order: the distances refer to it.
struct Order(std::collections::HashMap<u32, u32>);

impl Order {
    fn new() -> Order {
        Order(std::collections::HashMap::new())
    }

    fn index(&mut self, group: u32) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(group).or_insert(next)
    }
}
