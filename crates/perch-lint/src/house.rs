// SPDX-License-Identifier: GPL-2.0-or-later
//! The order of the house and its exceptions, as `house.txt` has them.
//!
//! ```text
//! # A line that begins with # is a comment; a reason stands behind a colon.
//! [floors]                 crates from the top down, those of one floor on a line
//! perch
//! perch-report perch-lab
//! [rooms perch-sim]        paths below the crate's src, from the top down
//! world
//! program observe
//! [walls]                  FROM never FOLDER...: reason
//! policy never crates: the policy knows no host
//! [circles]                FOLDER FILES: reason
//! crates/perch-lab/src 16: being taken apart
//! [elsewhere]              NAME: where that file lives instead
//! kernel/sched/*: Linux's
//! ```

use crate::Tree;

/// The path of the order, from the root of the tree.
pub const HOUSE_FILE: &str = "crates/perch-lint/house.txt";

/// The contents of `house.txt`.
#[derive(Debug, Default)]
pub struct House {
    /// Crates from the top floor down. A crate depends on crates of lower floors only.
    pub floors: Vec<Vec<String>>,
    /// The rooms of crates that have an order inside.
    pub rooms: Vec<Rooms>,
    /// Folders that must not see others.
    pub walls: Vec<Wall>,
    /// Circles of files that stand for now.
    pub circles: Vec<Circle>,
    /// Names that are spelt like files of this tree and name files elsewhere.
    pub elsewhere: Vec<Elsewhere>,
}

/// The rooms of one crate.
#[derive(Debug)]
pub struct Rooms {
    /// The crate's folder below `crates/`.
    pub krate: String,
    /// Rooms from the top down, each a list of paths below the crate's `src` without `.rs`. Files
    /// of one room see each other; a room sees those below it.
    pub order: Vec<Vec<String>>,
}

/// A wall: no file below `from` may include or use a file below `never`.
#[derive(Debug)]
pub struct Wall {
    /// Folder or file.
    pub from: String,
    /// Folders or files.
    pub never: Vec<String>,
    /// The reason, which the complaint repeats.
    pub why: String,
}

/// A circle that stands for now: it lies in one folder and may not grow.
#[derive(Debug)]
pub struct Circle {
    /// The folder that all files of the circle lie in.
    pub within: String,
    /// The most files that it may have.
    pub files: usize,
    /// The reason, and what will end it.
    pub why: String,
}

/// A name that is spelt like a file of this tree.
#[derive(Debug)]
pub struct Elsewhere {
    /// The name as it is written; a `*` stands for anything.
    pub name: String,
    /// The project that has that file.
    pub why: String,
}

impl House {
    /// The house of this tree; an empty one where there is no `house.txt`.
    ///
    /// # Errors
    ///
    /// A line has a form that its section does not know; the error names the line.
    pub fn of(tree: &Tree) -> Result<Self, String> {
        let mut house = Self::default();
        let mut section = String::new();
        for (index, line) in tree.text(HOUSE_FILE).unwrap_or("").lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some((name, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                section = name.to_owned();
                if let Some(krate) = name.strip_prefix("rooms ") {
                    house.rooms.push(Rooms {
                        krate: krate.to_owned(),
                        order: Vec::new(),
                    });
                }
            } else if let Err(expected) = house.add(&section, line) {
                return Err(format!("{HOUSE_FILE}:{}: expected {expected}", index + 1));
            }
        }
        Ok(house)
    }

    /// Add a line of a section; the error is the form that was expected.
    fn add(&mut self, section: &str, line: &str) -> Result<(), &'static str> {
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let reason = line
            .split_once(": ")
            .map(|(head, why)| (words(head), why.trim().to_owned()));
        match (section, reason) {
            ("floors", None) => self.floors.push(words(line)),
            ("floors", _) => return Err("names of crates"),
            ("walls", reason) => {
                let form = "'FROM never FOLDER...: reason'";
                let (mut head, why) = reason.ok_or(form)?;
                if head.len() < 3 || head[1] != "never" {
                    return Err(form);
                }
                let never = head.split_off(2);
                self.walls.push(Wall {
                    from: head.swap_remove(0),
                    never,
                    why,
                });
            }
            ("circles", reason) => {
                let form = "'FOLDER FILES: reason', FILES a number";
                let (head, why) = reason.ok_or(form)?;
                let [within, files] = &head[..] else {
                    return Err(form);
                };
                let files = files.parse().map_err(|_| form)?;
                self.circles.push(Circle {
                    within: within.clone(),
                    files,
                    why,
                });
            }
            ("elsewhere", reason) => {
                let form = "'NAME...: where that file lives'";
                let (head, why) = reason.ok_or(form)?;
                for name in head {
                    self.elsewhere.push(Elsewhere {
                        name,
                        why: why.clone(),
                    });
                }
            }
            (other, None) if other.starts_with("rooms ") => {
                self.rooms
                    .last_mut()
                    .ok_or("[rooms CRATE]")?
                    .order
                    .push(words(line));
            }
            _ => return Err("[floors], [rooms CRATE], [walls], [circles] or [elsewhere] above"),
        }
        Ok(())
    }
}

/// The line of `house.txt` on which `wanted` first stands as a word, for complaints about the file
/// itself.
pub fn line_of(tree: &Tree, wanted: &str) -> usize {
    let text = tree.text(HOUSE_FILE).unwrap_or("");
    let has = |line: &str| {
        let mut words = line
            .split_whitespace()
            .map(|word| word.trim_matches([':', '[', ']']));
        !line.starts_with('#') && words.any(|word| word == wanted)
    };
    text.lines().position(has).map_or(1, |line| line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(text: &str) -> Result<House, String> {
        House::of(&Tree::new([(HOUSE_FILE, text)]))
    }

    #[test]
    fn reads_every_section() {
        let text = "# c\n[floors]\na\nb c\n[rooms a]\nx\ny z\n[walls]\np never q r: s t\n\
                    [circles]\nf 3: g\n[elsewhere]\nh i: j\n";
        let house = house(text).expect("it is well formed");
        assert_eq!(
            house.floors,
            [vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()]]
        );
        assert_eq!(house.rooms[0].order[1], ["y", "z"]);
        assert_eq!(
            (house.walls[0].never.len(), house.walls[0].why.as_str()),
            (2, "s t")
        );
        assert_eq!((house.circles[0].files, house.elsewhere.len()), (3, 2));
    }

    #[test]
    fn a_line_out_of_form_is_an_error_with_its_number() {
        for text in [
            "[circles]\nf x: g\n",
            "[walls]\na b c: d\n",
            "[elsewhere]\nh\n",
            "[a]\nb\n",
        ] {
            let error = house(text).expect_err(text);
            assert!(
                error.starts_with("crates/perch-lint/house.txt:2: expected"),
                "{error}"
            );
        }
    }
}
