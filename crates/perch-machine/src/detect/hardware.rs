// SPDX-License-Identifier: GPL-2.0-or-later
//! The caches, the frequency and the idle states that sysfs tells.

use std::collections::BTreeMap;

use super::tree::Tree;
use crate::draft::Draft;
use crate::error::MachineError;
use crate::format::Bytes;
use crate::hardware::{Hardware, IdleState};

/// A cache in the form in which one CPU sees it.
pub(super) struct Cache {
    level: i64,
    pub bytes: Option<u64>,
    line_bytes: Option<u32>,
    /// The online CPUs that share the cache.
    pub cpus: Vec<u32>,
    /// The file that lists these CPUs.
    pub file: String,
}

/// The data and unified caches of each CPU.
pub(super) struct Caches {
    of: BTreeMap<u32, Vec<Cache>>,
    /// True on s390, which shows a core's own caches alone. Its kernel takes a socket for an LLC.
    own: bool,
}

impl Caches {
    /// Returns the outermost cache of `cpu` beyond its first level.
    pub fn last_level(&self, cpu: u32) -> Option<&Cache> {
        let shared = self.of(cpu).iter().filter(|_| !self.own);
        let beyond_l1 = shared.filter(|cache| cache.level >= 2);
        beyond_l1.max_by_key(|cache| cache.level)
    }

    fn level(&self, cpu: u32, level: i64) -> Option<&Cache> {
        self.of(cpu).iter().find(|cache| cache.level == level)
    }

    fn of(&self, cpu: u32) -> &[Cache] {
        self.of.get(&cpu).map_or(&[], Vec::as_slice)
    }
}

pub(super) fn caches(tree: &Tree, online: &[u32]) -> Result<Caches, MachineError> {
    let mut of = BTreeMap::new();
    for &cpu in online {
        let mut caches = Vec::new();
        for index in tree.numbered(&format!("cpu/cpu{cpu}/cache"), "index") {
            let file = |name: &str| format!("cpu/cpu{cpu}/cache/index{index}/{name}");
            let kind = tree.text(&file("type"));
            if !matches!(kind.as_deref(), Some("Data" | "Unified")) {
                continue;
            }
            let (Some(level), Some(mut cpus)) =
                (tree.number(&file("level"))?, tree.cpus(&file("shared_cpu_list"))?)
            else {
                continue;
            };
            // ia64 knew the threads that share an L1, and not that they share what is beyond.
            if cpus.is_empty() {
                let threads = format!("cpu/cpu{cpu}/topology/thread_siblings_list");
                cpus = tree.cpus(&threads)?.unwrap_or_else(|| vec![cpu]);
            }
            cpus.retain(|cpu| online.binary_search(cpu).is_ok());
            if !cpus.contains(&cpu) {
                let reason = format!("CPU {cpu} is not among the sharers of its own cache");
                return Err(tree.problem(&file("shared_cpu_list"), reason, ""));
            }
            let line_bytes = tree.number(&file("coherency_line_size"))?;
            caches.push(Cache {
                level,
                bytes: size(tree, &file("size"))?,
                line_bytes: line_bytes.and_then(|bytes| u32::try_from(bytes).ok()),
                cpus,
                file: file("shared_cpu_list"),
            });
        }
        of.insert(cpu, caches);
    }
    let book = format!("cpu/cpu{}/topology/book_id", online[0]);
    let own = tree.text(&book).is_some();
    Ok(Caches { of, own })
}

fn size(tree: &Tree, file: &str) -> Result<Option<u64>, MachineError> {
    let Some(text) = tree.text(file) else {
        return Ok(None);
    };
    match Bytes::parse(&text) {
        // The kernel prints 0K for a cache whose size firmware left out.
        Some(Bytes(bytes)) => Ok((bytes > 0).then_some(bytes)),
        None => Err(tree.problem(file, "this is not a size", "expected one such as 512K")),
    }
}

/// Reads the costs from the files of `cpu`, which is the most capable CPU.
pub(super) fn read(
    tree: &Tree,
    cpu: u32,
    caches: &Caches,
    draft: &Draft,
) -> Result<Hardware, MachineError> {
    let mut hardware = Hardware::default();
    if let Some(mhz) = frequency_mhz(tree, cpu)? {
        hardware.frequency_mhz = mhz;
    }
    if let Some(l1d) = caches.level(cpu, 1) {
        hardware.l1d_bytes = l1d.bytes.unwrap_or(hardware.l1d_bytes);
        let line = l1d.line_bytes.filter(|line| line.is_power_of_two());
        hardware.line_bytes = line.filter(|line| (16..=4096).contains(line)).unwrap_or(64);
    }
    let llc = caches.last_level(cpu);
    if let Some(llc) = llc {
        hardware.llc_bytes = llc.bytes.unwrap_or(hardware.llc_bytes);
    }
    match caches.level(cpu, 2) {
        Some(_) if llc.is_some_and(|llc| llc.level == 2) => hardware.l2_bytes = 0,
        Some(l2) => {
            hardware.l2_bytes = l2.bytes.unwrap_or(hardware.l2_bytes);
            let mut clusters = draft.clusters.iter();
            hardware.l2_per_cluster = clusters.any(|cluster| cluster.cpus == l2.cpus);
        }
        None => {}
    }
    let states = idle_states(tree, cpu)?;
    if !states.is_empty() {
        hardware.idle_states = states;
    }
    Ok(hardware)
}

fn frequency_mhz(tree: &Tree, cpu: u32) -> Result<Option<u32>, MachineError> {
    let khz = max_khz(tree, cpu)?;
    let mhz = khz.and_then(|(_, khz)| u32::try_from(khz / 1000).ok());
    Ok(mhz.filter(|mhz| (1..=100_000).contains(mhz)))
}

/// Returns the highest frequency of `cpu` and the file that holds it. A copied tree may lack the link
/// from the CPU to its frequency policy.
pub(super) fn max_khz(tree: &Tree, cpu: u32) -> Result<Option<(String, i64)>, MachineError> {
    let own = format!("cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq");
    let policy = format!("cpu/cpufreq/policy{cpu}/cpuinfo_max_freq");
    for file in [own, policy] {
        if let Some(khz) = tree.number(&file)? {
            return Ok(Some((file, khz)));
        }
    }
    Ok(None)
}

/// Reads the enabled states, shallowest first. POLL is left out: it is a loop of the kernel, not a
/// state of the hardware.
fn idle_states(tree: &Tree, cpu: u32) -> Result<Vec<IdleState>, MachineError> {
    let mut states = Vec::new();
    for number in tree.numbered(&format!("cpu/cpu{cpu}/cpuidle"), "state") {
        let file = |name: &str| format!("cpu/cpu{cpu}/cpuidle/state{number}/{name}");
        let name = tree.text(&file("name")).unwrap_or_else(|| format!("state{number}"));
        if name == "POLL" || tree.text(&file("disable")).as_deref() == Some("1") {
            continue;
        }
        let nanoseconds = |microseconds: Option<i64>| {
            let limited = microseconds.unwrap_or(0).clamp(0, 1_000_000);
            limited as u32 * 1000
        };
        states.push(IdleState {
            name,
            exit_ns: nanoseconds(tree.number(&file("latency"))?),
            residency_ns: nanoseconds(tree.number(&file("residency"))?),
        });
    }
    states.sort_by_key(|state| state.exit_ns);
    Ok(states)
}
