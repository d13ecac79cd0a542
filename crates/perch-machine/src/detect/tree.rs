// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader for the files of a sysfs tree, of the running kernel's or a copy.

use crate::cpulist;
use crate::error::{MachineError, Place};
use crate::model::MAX_CPUS;
use perch_file::Kind;
use std::path::{Path, PathBuf};

/// A tree that contains `sys/devices/system`.
pub(super) struct Tree {
    root: PathBuf,
    /// The name of the tree in errors.
    pub origin: String,
}

/// The directory, below the root, that holds the description of CPUs and nodes.
const SYSTEM: &str = "sys/devices/system";

impl Tree {
    pub fn new(root: &Path) -> Tree {
        Tree { root: root.to_path_buf(), origin: root.display().to_string() }
    }

    /// Returns the text of a file below `sys/devices/system`, without white space and NULs around it; `None` where the file is
    /// missing, empty or unreadable, which sysfs uses alike for "this kernel or machine does not
    /// say".
    pub fn text(&self, file: &str) -> Option<String> {
        self.text_at(&format!("{SYSTEM}/{file}"))
    }

    /// Returns the text of a file like [`Tree::text`], but below the root.
    pub fn text_at(&self, file: &str) -> Option<String> {
        let bytes = perch_file::bytes(&self.root.join(file), Kind::SYSFS).ok()?;
        // Some kernels end a list of CPUs with a NUL, and tar fills what a file of sysfs lacks of its page.
        let ends = |c: char| c.is_whitespace() || c == '\0';
        let text = String::from_utf8_lossy(&bytes).trim_matches(ends).to_string();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the number in a file, or an error when the file holds something else.
    pub fn number(&self, file: &str) -> Result<Option<i64>, MachineError> {
        self.text(file)
            .map(|text| {
                text.parse().map_err(|_| {
                    self.problem(file, format!("`{}` is not a number", excerpt(&text)), "")
                })
            })
            .transpose()
    }

    /// Returns the CPUs in a file that ends in `list`, or in the mask beside it, which is all that older
    /// kernels have.
    pub fn cpus(&self, file: &str) -> Result<Option<Vec<u32>>, MachineError> {
        let listed = self.cpus_at(&format!("{SYSTEM}/{file}"))?;
        let mask = match file.strip_suffix("_list") {
            Some(mask) if mask.ends_with("shared_cpu") => format!("{mask}_map"),
            Some(mask) => mask.to_string(),
            None => file.replace("cpulist", "cpumap"),
        };
        match self.text(&mask) {
            Some(text) if listed.is_none() => {
                let reason = format!("`{}` is not a mask of CPUs", excerpt(&text));
                let expected = format!("expected words such as 000000ff below CPU {MAX_CPUS}");
                let cpus = cpulist::mask(&text);
                cpus.map_or_else(
                    || Err(self.problem(&mask, reason, expected)),
                    |cpus| Ok(Some(cpus)),
                )
            }
            _ => Ok(listed),
        }
    }

    /// Returns the CPU list in a file below the root.
    pub fn cpus_at(&self, file: &str) -> Result<Option<Vec<u32>>, MachineError> {
        self.text_at(file)
            .map(|text| {
                let expected = "expected a CPU list such as 0,3-5";
                cpulist::parse(&text)
                    .map_err(|reason| self.problem_at(file, reason.to_string(), expected))
            })
            .transpose()
    }

    /// Returns the numbers N of the entries `prefixN` of a directory, ascending.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir(self.root.join(SYSTEM).join(directory)) else {
            return Vec::new();
        };
        let mut numbers: Vec<u32> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name();
                name.to_str()?.strip_prefix(prefix)?.parse().ok()
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }

    pub fn place(&self, file: &str) -> Place {
        Place::key(format!("{SYSTEM}/{file}"))
    }

    pub fn problem(
        &self,
        file: &str,
        reason: impl Into<String>,
        expected: impl Into<String>,
    ) -> MachineError {
        self.problem_at(&format!("{SYSTEM}/{file}"), reason, expected)
    }

    /// Returns the error that blames a file below the root.
    pub fn problem_at(
        &self,
        file: &str,
        reason: impl Into<String>,
        expected: impl Into<String>,
    ) -> MachineError {
        Place::key(file).problem(&self.origin, reason, expected)
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(40).collect::<String>().escape_default().to_string()
}
