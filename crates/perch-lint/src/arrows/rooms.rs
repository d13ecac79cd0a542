// SPDX-License-Identifier: GPL-2.0-or-later
//! Rooms inside of a crate have an order, and some folders must not see others at all.

use super::arrow::Arrow;
use crate::house::{HOUSE_FILE, House, Rooms, line_of};
use crate::tree::within;
use crate::{Complaint, Tree};

/// Check the rooms of crates and the walls.
pub fn check(tree: &Tree, house: &House, arrows: &[Arrow]) -> Vec<Complaint> {
    let mut complaints = walls(tree, house, arrows);
    for rooms in &house.rooms {
        complaints.extend(of_crate(tree, rooms, arrows));
    }
    complaints
}

fn walls(tree: &Tree, house: &House, arrows: &[Arrow]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for wall in &house.walls {
        for path in wall.never.iter().chain([&wall.from]) {
            if !tree.is_file(path) && !tree.is_folder(path) {
                complaints.push(gone(tree, path));
            }
        }
        for arrow in arrows
            .iter()
            .filter(|arrow| within(&arrow.from, &wall.from))
        {
            if wall.never.iter().any(|never| within(&arrow.to, never)) {
                let what = format!("uses '{}' of {}: {}", arrow.name, arrow.to, wall.why);
                complaints.push(Complaint::new(&arrow.from, arrow.line, what));
            }
        }
    }
    complaints
}

fn gone(tree: &Tree, path: &str) -> Complaint {
    let what = format!("there is no '{path}': name what took its place, or remove it");
    Complaint::new(HOUSE_FILE, line_of(tree, path), what)
}

fn of_crate(tree: &Tree, rooms: &Rooms, arrows: &[Arrow]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let src = format!("crates/{}/src", rooms.krate);
    for room in rooms.order.iter().flatten() {
        let path = format!("{src}/{room}");
        if !tree.is_folder(&path) && !tree.is_file(&format!("{path}.rs")) {
            complaints.push(gone(tree, room));
        }
    }
    for (path, _) in tree.files().filter(|(path, _)| within(path, &src)) {
        if path.ends_with(".rs") && !is_door(path, &src) && room_of(rooms, &src, path).is_none() {
            let what = format!("lies in no room: give it one in {HOUSE_FILE}");
            complaints.push(Complaint::new(path, 1, what));
        }
    }
    for arrow in arrows.iter().filter(|arrow| within(&arrow.from, &src)) {
        let ends = (
            room_of(rooms, &src, &arrow.from),
            room_of(rooms, &src, &arrow.to),
        );
        let (Some(from), Some(to)) = ends else {
            continue;
        };
        if to < from {
            let what = format!(
                "uses '{}' of {}: an arrow back up, from {} to {} (rooms in {HOUSE_FILE})",
                arrow.name,
                arrow.to,
                rooms.order[from].join(", "),
                rooms.order[to].join(", "),
            );
            complaints.push(Complaint::new(&arrow.from, arrow.line, what));
        }
    }
    complaints
}

/// Returns whether a file is the crate's own, which shows the contents to other crates and lies in
/// no room.
fn is_door(path: &str, src: &str) -> bool {
    path.strip_prefix(src)
        .is_some_and(|rest| rest == "/lib.rs" || rest == "/main.rs")
}

/// The room that names the file most closely.
fn room_of(rooms: &Rooms, src: &str, path: &str) -> Option<usize> {
    let inside = path.strip_prefix(src)?.strip_prefix('/')?;
    let module = inside.strip_suffix(".rs").unwrap_or(inside);
    let all = rooms
        .order
        .iter()
        .enumerate()
        .flat_map(|(i, room)| room.iter().map(move |r| (i, r)));
    let (index, _) = all
        .filter(|(_, room)| within(module, room))
        .max_by_key(|(_, room)| room.len())?;
    Some(index)
}
