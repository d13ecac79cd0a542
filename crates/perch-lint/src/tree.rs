// SPDX-License-Identifier: GPL-2.0-or-later
//! Every file of the repository: the paths of all, the text of those that the rules read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Files by their path from the root. A file whose text no rule reads (a picture, a recording) is
/// there with an empty text.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    folders: BTreeSet<String>,
}

impl Tree {
    /// A tree out of paths and texts.
    pub fn new<P: Into<String>, T: Into<String>>(files: impl IntoIterator<Item = (P, T)>) -> Self {
        let files: BTreeMap<String, String> = files
            .into_iter()
            .map(|(path, text)| (path.into(), text.into()))
            .collect();
        let mut folders = BTreeSet::new();
        for path in files.keys() {
            let mut rest = path.as_str();
            while let Some((folder, _)) = rest.rsplit_once('/') {
                if !folders.insert(folder.to_owned()) {
                    break;
                }
                rest = folder;
            }
        }
        Self { files, folders }
    }

    /// Read the repository at `root`: the files that git tracks, and new ones that it does not
    /// ignore; where there is no git (a release's archive), every file outside of `target`.
    ///
    /// # Errors
    ///
    /// A file or folder cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let paths = match tracked(root) {
            Some(paths) => paths,
            None => {
                let mut paths = Vec::new();
                walk(root, "", &mut paths)?;
                paths
            }
        };
        let mut files = Vec::new();
        for path in paths {
            let full = root.join(&path);
            // git also lists what has been deleted and not yet committed.
            if !full.is_file() {
                continue;
            }
            let text = if is_text(&path) {
                String::from_utf8_lossy(&fs::read(&full)?).into_owned()
            } else {
                String::new()
            };
            files.push((path, text));
        }
        Ok(Self::new(files))
    }

    /// Every path with its text, in the order of the paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of the file at `path`.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns whether `path` is a file.
    pub fn is_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Returns whether `path`, with a `/` at its end or without, is a folder that holds a file.
    pub fn is_folder(&self, path: &str) -> bool {
        self.folders.contains(path.trim_end_matches('/'))
    }

    /// Every folder that holds a file, however deep, without a `/` at its end.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.folders.iter().map(String::as_str)
    }
}

/// The folder that `path` lies in; empty for the root.
pub fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// `path` as seen from `folder`, its `.` and `..` resolved; `None` if it leaves the tree.
pub fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns whether `path` is `folder` or lies in it. The empty folder is the root.
pub fn within(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    folder.is_empty()
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((_, extension)) = name.rsplit_once('.') else {
        return true;
    };
    [
        "rs", "c", "h", "def", "md", "toml", "sh", "mjs", "css", "txt",
    ]
    .contains(&extension)
}

/// The files that git lists; `None` where there is no git.
fn tracked(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(
        text.split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        if entry.file_type()?.is_dir() {
            if path != "target" && path != ".git" {
                walk(root, &path, paths)?;
            }
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
