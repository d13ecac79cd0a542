// SPDX-License-Identifier: GPL-2.0-or-later
//! A drawing of the machine as nested boxes with one bar per CPU: where tasks ran. Each bar
//! has its figure below it, so that nothing depends on colour. The drawing has few long paths,
//! since there may be hundreds of CPUs and many machines on a page.

use std::collections::BTreeMap;
use std::fmt::Write;

use perch_machine::{Cpu, Machine, cpulist};

use super::chart::{self, Words};
use super::escape;

/// Pixels, before the page scales them: the size of a CPU's place, the size of its bar, and the
/// margin around the parts of a box.
const CELL: [i32; 2] = [19, 36];
const BAR: [i32; 2] = [13, 22];
const AROUND: i32 = 3;
/// The height of a line of text above a box's parts, or above a machine.
const LINE: i32 = 14;

/// The part of the machine that a box stands for. Threads of a core touch: they have no room
/// between them.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Node,
    Llc,
    Cluster,
    Core,
}

/// A drawing, placed from a corner on.
#[derive(Default)]
struct Laid {
    width: i32,
    height: i32,
    /// The corner and the size of each box.
    boxes: Vec<[i32; 4]>,
    texts: Vec<(i32, i32, String)>,
    /// The corner of each bar, and its CPU.
    bars: Vec<(i32, i32, usize)>,
}

impl Laid {
    fn take(&mut self, other: Laid, x: i32, y: i32) {
        let moved = |[left, top, w, h]: [i32; 4]| [left + x, top + y, w, h];
        self.boxes.extend(other.boxes.into_iter().map(moved));
        let texts = other.texts.into_iter();
        self.texts.extend(texts.map(|(left, top, text)| (left + x, top + y, text)));
        let bars = other.bars.into_iter();
        self.bars.extend(bars.map(|(left, top, cpu)| (left + x, top + y, cpu)));
        self.width = self.width.max(x + other.width);
        self.height = self.height.max(y + other.height);
    }

    /// Places parts one after the other, in as many rows as `room` requires.
    fn flow(parts: Vec<Laid>, room: i32, between: i32) -> Laid {
        let mut all = Laid::default();
        let (mut x, mut y, mut tallest) = (0, 0, 0);
        for part in parts {
            if x > 0 && x + part.width > room {
                (x, y, tallest) = (0, y + tallest + between, 0);
            }
            let (width, height) = (part.width, part.height);
            all.take(part, x, y);
            x += width + between;
            tallest = tallest.max(height);
        }
        all
    }
}

/// Returns the levels worth drawing: those that have several groups within a group of another
/// level.
fn levels(machine: &Machine) -> Vec<Level> {
    let mut home = BTreeMap::new();
    let within = machine.cpus.iter();
    let nested = within
        .fold(true, |nested, cpu| nested & (*home.entry(cpu.llc).or_insert(cpu.node) == cpu.node));
    let mut levels =
        if nested { vec![Level::Node, Level::Llc] } else { vec![Level::Llc, Level::Node] };
    levels.retain(|level| match level {
        Level::Node => machine.nodes() > 1,
        // Where each node has one LLC, the node's box stands for the LLC.
        _ => machine.llcs() > 1 && (machine.llcs() != machine.nodes() || !nested),
    });
    if machine.clusters() > 0 {
        levels.push(Level::Cluster);
    }
    if machine.has_smt() {
        levels.push(Level::Core);
    }
    levels
}

fn key(cpu: &Cpu, level: Level) -> u32 {
    match level {
        Level::Node => cpu.node,
        Level::Llc => cpu.llc,
        Level::Cluster => cpu.cluster.map_or(0, |cluster| cluster + 1),
        Level::Core => cpu.core,
    }
}

/// Returns the groups of a level among `cpus`, in the order of their lowest CPU.
fn split(machine: &Machine, cpus: &[usize], level: Level) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &cpu in cpus {
        groups.entry(key(&machine.cpus[cpu], level)).or_default().push(cpu);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.sort_by_key(|group| group[0]);
    groups
}

fn numbers(cpus: &[usize]) -> String {
    let cpus: Vec<u32> = cpus.iter().map(|cpu| *cpu as u32).collect();
    cpulist::format(&cpus)
}

fn lay(machine: &Machine, cpus: &[usize], levels: &[Level], room: i32) -> Laid {
    let Some((level, inner)) = levels.split_first() else {
        let cell = |cpu: &usize| Laid {
            width: CELL[0],
            height: CELL[1],
            bars: vec![((CELL[0] - BAR[0]) / 2, 0, *cpu)],
            ..Laid::default()
        };
        return Laid::flow(cpus.iter().map(cell).collect(), room, 0);
    };
    let groups = split(machine, cpus, *level);
    let parts = groups.iter().map(|group| {
        let content = lay(machine, group, inner, room - 2 * AROUND);
        // A small box has no room for words.
        let words = match level {
            Level::Node => Some(format!("node {}, CPUs ", machine.cpus[group[0]].node)),
            Level::Llc => Some("LLC, CPUs ".to_string()),
            Level::Cluster | Level::Core => None,
        };
        let words = words.map(|words| words + &numbers(group));
        let top = AROUND + words.as_ref().map_or(0, |_| LINE);
        let mut part = Laid::default();
        part.take(content, AROUND, top);
        if let Some(words) = words {
            part.width = part.width.max(words.len() as i32 * 6);
            part.texts.push((AROUND, LINE - 2, words));
        }
        part.width += AROUND;
        part.height += AROUND;
        part.boxes.push([0, 0, part.width, part.height]);
        part
    });
    Laid::flow(parts.collect(), room, if *level == Level::Core { 2 } else { 4 })
}

/// Draws the machine, once for each arm with its shares in percent by CPU.
pub fn draw(machine: &Machine, words: &Words, arms: &[(&str, &[f64])]) -> String {
    let all: Vec<usize> = (0..machine.cpus.len()).collect();
    let room = chart::WIDTH as i32 - 4;
    let (mut boxes, mut frames, mut fills) = (String::new(), String::new(), String::new());
    let (mut texts, mut figures) = (String::new(), String::new());
    let laid = lay(machine, &all, &levels(machine), room);
    let mut y = 2;
    for (arm, shares) in arms {
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let head = format!("{arm}: all CPUs together {mean:.1} % busy");
        let _ = write!(
            texts,
            "<text x=\"2\" y=\"{}\" font-size=\"13\">{}</text>",
            y + 11,
            escape(&head)
        );
        y += LINE + 4;
        for [left, top, w, h] in &laid.boxes {
            let _ = write!(boxes, "M{} {}h{w}v{h}h-{w}z", left + 2, top + y);
        }
        for (left, top, text) in &laid.texts {
            let _ =
                write!(texts, "<text x=\"{}\" y=\"{}\">{}</text>", left + 2, top + y, escape(text));
        }
        let [w, h] = BAR;
        for (left, top, cpu) in &laid.bars {
            let (left, top) = (left + 2, top + y);
            let share = shares.get(*cpu).copied().unwrap_or(0.0).clamp(0.0, 100.0);
            let _ = write!(frames, "M{left} {top}h{w}v{h}h-{w}z");
            let fill = (share / 100.0 * f64::from(h)).round() as i32;
            // The bar of a CPU that ran at all is visible.
            let fill = fill.max(i32::from(share > 0.0));
            if fill > 0 {
                let _ = write!(fills, "M{left} {}h{w}v-{fill}h-{w}z", top + h);
            }
            let (middle, below) = (left + w / 2, top + h + 9);
            let _ = write!(figures, "<text x=\"{middle}\" y=\"{below}\">{share:.0}</text>");
        }
        y += laid.height + 8;
    }
    format!(
        "<svg {attributes}width=\"{w}\" height=\"{y}\" viewBox=\"0 0 {w} {y}\" \
         xmlns=\"http://www.w3.org/2000/svg\">{titles}\n\
         <path d=\"{boxes}\" fill=\"none\" stroke=\"#DDDDDD\"/>\n\
         <path d=\"{fills}\" fill=\"#0B61A4\"/>\n\
         <path d=\"{frames}\" fill=\"none\" stroke=\"#555555\"/>\n\
         <g font-family=\"sans-serif\" font-size=\"11\" fill=\"#222222\">{texts}</g>\n\
         <g font-family=\"sans-serif\" font-size=\"9\" text-anchor=\"middle\" fill=\"#222222\">{figures}</g>\n\
         </svg>",
        w = chart::WIDTH,
        attributes = words.attributes(),
        titles = words.elements(),
    )
}

/// Returns the rows of the table below: CPUs if there are few, else their cores, clusters, LLCs or
/// nodes; each row has the mean of its CPUs' shares.
pub fn rows(machine: &Machine, most: usize, arms: &[(&str, &[f64])]) -> Vec<Vec<String>> {
    let all: Vec<usize> = (0..machine.cpus.len()).collect();
    let alone = || all.iter().map(|cpu| vec![*cpu]).collect::<Vec<_>>();
    let inside_out = levels(machine).into_iter().rev();
    let grouped = inside_out.map(|level| split(machine, &all, level));
    let groups = [alone()].into_iter().chain(grouped);
    let groups = groups.into_iter().find(|groups| groups.len() <= most);
    let groups = groups.unwrap_or_else(|| vec![all.clone()]);
    let rows = groups.iter().map(|group| {
        let name = match group[..] {
            [cpu] => format!("CPU {cpu}"),
            _ => format!("CPUs {}", numbers(group)),
        };
        let mean = |shares: &[f64]| {
            let of_group = group.iter().map(|cpu| shares.get(*cpu).copied().unwrap_or(0.0));
            of_group.sum::<f64>() / group.len() as f64
        };
        let means = arms.iter().map(|(_, shares)| format!("{:.1} %", mean(shares)));
        [name].into_iter().chain(means).collect()
    });
    rows.collect()
}
