// SPDX-License-Identifier: GPL-2.0-or-later
//! The section of the page for cache lines that moved between a guest's CPUs: all files of counts
//! side by side, slot by slot.

mod cpus;

use std::fmt::Write;

use perch_machine::Distance;

use super::chart;
use super::chart::{Part, Row, Words};
use super::escape::escape;
use super::overview::anchor;
use super::parts::{captioned, table};
use crate::figure::figure;
use crate::grid::Grid;
use crate::moved::tables::{
    Functions, between, by_function, by_line, distances, kinds, most_different, most_moving, moves,
    over, per,
};
use crate::moved::{Arms, LineCounts, Moves, SlotCounts, distance_name};

/// Returns a name for each file, by what differs between the files: the scheduler, the kernel, the
/// machine, its CPUs, or whether time was modelled. Files that differ in nothing of these have numbers.
fn names(files: &[&LineCounts]) -> Vec<String> {
    if let [_] = files {
        return vec![String::new()];
    }
    type Of = fn(&LineCounts) -> String;
    let of: [Of; 5] = [
        |file| file.scheduler.clone(),
        |file| format!("Linux {}", file.kernel),
        |file| file.machine.clone(),
        |file| format!("{} CPUs", file.cpus),
        |file| {
            if file.slots.iter().any(SlotCounts::is_timed) {
                "timed".to_string()
            } else {
                "not timed".to_string()
            }
        },
    ];
    let differ = |of: &&Of| files.iter().any(|file| of(file) != of(files[0]));
    let of: Vec<&Of> = of.iter().filter(differ).collect();
    let name = |file: &&LineCounts| {
        let parts: Vec<String> = of.iter().map(|of| of(file)).collect();
        parts.join(", ")
    };
    let names: Vec<String> = files.iter().map(name).collect();
    let is_alone = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    if names.iter().all(is_alone) {
        names
    } else {
        (1..)
            .zip(&names)
            .map(|(number, name)| format!("{number} {name}").trim().to_string())
            .collect()
    }
}

/// A stretch between two marks: the marks' slot, and how many stretches of that slot ended before.
type Stretch = (u8, usize);

/// Returns the stretches of all files, with the files that have them.
fn stretches<'a>(
    files: &[&'a LineCounts],
    names: &[String],
) -> Vec<(Stretch, Vec<(String, &'a SlotCounts)>)> {
    let mut all: Vec<(Stretch, Vec<(String, &SlotCounts)>)> = Vec::new();
    for (file, name) in files.iter().zip(names) {
        for (at, slot) in file.slots.iter().enumerate() {
            let before = file.slots[..at].iter();
            let before = before.filter(|other| other.slot == slot.slot).count();
            let stretch = (slot.slot, before);
            let arm = (name.clone(), slot);
            match all.iter_mut().find(|(known, _)| *known == stretch) {
                Some((_, arms)) => arms.push(arm),
                None => all.push((stretch, vec![arm])),
            }
        }
    }
    all
}

fn stretch_title((slot, before): Stretch) -> String {
    match before {
        0 => format!("Slot {slot}"),
        before => format!("Slot {slot}, stretch {}", before + 1),
    }
}

fn title(files: &[&LineCounts]) -> String {
    let mut machines: Vec<&str> = Vec::new();
    for file in files {
        if !machines.contains(&file.machine.as_str()) {
            machines.push(&file.machine);
        }
    }
    format!("Cache lines that moved on {}", machines.join(", "))
}

/// Adds the section to the overview: the lines that moved between CPUs, and links to the slots.
pub fn entry(contents: &mut String, section: usize, files: &[&LineCounts]) {
    let _ = write!(
        contents,
        "<li><a href=\"#s{section}\">{}</a><br>Lines from CPU to CPU.",
        escape(&title(files))
    );
    for (stretch, arms) in stretches(files, &names(files)) {
        let title = stretch_title(stretch);
        let to = anchor(section, &title);
        let figures = arms.iter().map(|(name, slot)| {
            let between = slot.count(|moved| moved.kind.is_between_cpus());
            let figure = figure(slot.per(between));
            let said = format!("{name} {figure} {}", per(slot.operations));
            said.trim().to_string()
        });
        let figures: Vec<String> = figures.collect();
        let _ = write!(
            contents,
            "<br><a href=\"#{to}\">{title}</a>: {}",
            escape(&figures.join("; "))
        );
    }
    contents.push_str("</li>\n");
}

/// Adds the section.
pub fn section(body: &mut String, section: usize, files: &[&LineCounts]) {
    let title = title(files);
    let _ = writeln!(body, "<h2 id=\"s{section}\">{}</h2>", escape(&title));
    let names = names(files);
    for (file, name) in files.iter().zip(&names) {
        let name = before(name);
        let from = format!(
            "{name}{} CPUs of {}, Linux {}, scheduler {}; counted by perch {}: {}",
            file.cpus, file.machine, file.kernel, file.scheduler, file.perch, file.command
        );
        let _ = writeln!(body, "<p class=\"from\">{}</p>", escape(&from));
        if file.slots.is_empty() {
            let said = format!(
                "{name}nothing was counted, because no stretch between two marks has ended."
            );
            let _ = writeln!(body, "<p>{}</p>", escape(&said));
        }
    }
    for (stretch, arms) in stretches(files, &names) {
        let heading = stretch_title(stretch);
        let id = anchor(section, &heading);
        let _ = writeln!(body, "<h3 id=\"{id}\">{}</h3>", escape(&heading));
        for (name, slot) in &arms {
            let said = format!(
                "{}{} operations, {} loads and stores.",
                before(name),
                slot.operations,
                slot.accesses
            );
            let _ = writeln!(body, "<p class=\"from\">{}</p>", escape(&said));
        }
        let title = format!("{title}, {heading}");
        cpus::instructions(body, &title, &arms);
        cpus::time(body, &title, &arms);
        cpus::used(body, &arms);
        by_kind(body, &title, &arms);
        functions(body, &title, &arms);
        lines(body, &arms);
    }
}

/// Returns a file's name as it stands before a sentence about the file.
fn before(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!("{name}: "),
    }
}

/// Returns the words for the figures of arms.
fn each(arms: &Arms) -> &'static str {
    if arms.iter().all(|(_, slot)| slot.operations == 1) {
        "in all"
    } else {
        "for each operation"
    }
}

fn grid(body: &mut String, grid: &Grid) {
    table(body, &grid.head(), grid.rows());
}

fn arms_of(arms: &Arms) -> Vec<String> {
    arms.iter().map(|(name, _)| name.clone()).collect()
}

/// Returns the parts that distances are. A distance has the same colour in every chart of a page.
fn parts(distances: &[Distance]) -> Vec<Part> {
    let part = |distance: &Distance| Part {
        name: distance_name(*distance),
        look: *distance as usize,
    };
    distances.iter().map(part).collect()
}

fn by_kind(body: &mut String, title: &str, arms: &Arms) {
    let kinds = kinds(arms);
    if kinds.is_empty() {
        return;
    }
    body.push_str("<h4>Lines moved, by kind and distance</h4>\n");
    let distances = distances(arms);
    let rows: Vec<Row> = kinds
        .iter()
        .map(|kind| {
            let bars = arms.iter().map(|(_, slot)| {
                let over = |distance: &Distance| {
                    let is = |moved: &crate::moved::Move| {
                        (moved.kind, moved.distance) == (*kind, *distance)
                    };
                    slot.per(slot.count(is))
                };
                distances.iter().map(over).collect()
            });
            (kind.name().to_string(), bars.collect())
        })
        .collect();
    let aside = if arms.iter().any(|(_, slot)| slot.is_timed()) {
        " Lines aside moved to a CPU that had woken another one, before it halted: nobody waits \
         for them while the interrupt is on its way."
    } else {
        ""
    };
    let caption = format!(
        "Lines that moved, {}, by the distance to the CPU that had the line: the nearest thing that \
         both share. A dirty load or store takes a line that another CPU has modified, a clean one a \
         line that others only hold; an upgrade writes to a line that this CPU holds clean and \
         invalidates the copies elsewhere; a cold line comes from memory, and one of the LLC from an \
         LLC, as the private caches had displaced it.{aside}",
        each(arms)
    );
    let words = Words {
        name: &format!("{title}: lines moved by kind and distance"),
        said: &caption,
    };
    let drawn = chart::stacks(&words, &arms_of(arms), &parts(&distances), &rows);
    captioned(body, &drawn, &caption);
    grid(body, &moves(arms));
}

fn functions(body: &mut String, title: &str, arms: &Arms) {
    let distances = between(arms);
    let none = Moves::new();
    let mut add = |what: &str, caption: &str, names: &[&str]| {
        let _ = writeln!(body, "<h4>{what}</h4>");
        let rows: Vec<Row> = names
            .iter()
            .map(|name| {
                let bars = arms.iter().map(|(_, slot)| {
                    let moves = slot.functions.get(*name).unwrap_or(&none);
                    let over = |distance: &Distance| slot.per(over(moves, *distance));
                    distances.iter().map(over).collect()
                });
                (name.to_string(), bars.collect())
            })
            .collect();
        let words = Words {
            name: &format!("{title}: {what}"),
            said: caption,
        };
        let drawn = chart::stacks(&words, &arms_of(arms), &parts(&distances), &rows);
        captioned(body, &drawn, caption);
        grid(body, &by_function(arms, names, Functions::Shares));
    };
    let most = most_moving(arms);
    if most.is_empty() {
        return;
    }
    let caption = format!(
        "The {} functions that moved most lines from CPU to CPU, {}, by distance; lines from memory \
         and from LLCs are left out. All code of users is (user).",
        most.len(),
        each(arms)
    );
    add("Functions that moved most lines", &caption, &most);
    let different = most_different(arms);
    if !different.is_empty() {
        let caption = format!(
            "The {} functions whose lines from CPU to CPU differ most from those of {}, {}, by \
             distance.",
            different.len(),
            arms[0].0,
            each(arms)
        );
        add("Functions that differ most", &caption, &different);
    }
}

fn lines(body: &mut String, arms: &Arms) {
    for (name, slot) in arms.iter().filter(|(_, slot)| !slot.lines.is_empty()) {
        let heading = match name.as_str() {
            "" => "Lines that moved most".to_string(),
            name => format!("Lines that moved most, {name}"),
        };
        let _ = writeln!(
            body,
            "<h4>{}</h4>\n<p class=\"from\">How often each line moved from CPU to CPU, {}, and the \
             functions that used it last.</p>",
            escape(&heading),
            each(arms)
        );
        grid(body, &by_line(slot));
    }
}
