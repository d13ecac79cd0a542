// SPDX-License-Identifier: GPL-2.0-or-later
//! A folder of results, one file per key. Any number of processes may write to it at
//! once, on any number of machines that share the folder: each file appears whole, and whoever
//! computes it writes the same bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use perch_file::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tempfile::Builder;

use crate::MODEL;
use crate::error::ExperimentError;
use crate::simulation::{Found, Key, Prepared, Simulation, digest};

/// The file that says what the folder is.
const HEADER: &str = "perch-store.json";
/// The folder of the results, which has a folder for each first two digits of a key: file systems
/// slow down with the number of files in one folder.
const RESULTS: &str = "results";
/// The folder where files wait until they are whole.
const UNFINISHED: &str = "unfinished";
/// What the names of the files in that folder begin with.
const PREFIX: &str = ".perch-";

#[derive(Serialize, Deserialize)]
struct Header {
    /// The version of the store's format.
    perch_store: u32,
    /// The model whose results these are.
    model: String,
}

/// A folder of results.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
}

/// A result as the store keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stored {
    /// The key.
    pub key: Key,
    /// The model that made the result.
    pub model: String,
    /// The simulation.
    pub simulation: Simulation,
    /// The digest of the simulation's and the result's JSON.
    pub digest: String,
    /// The result.
    pub result: Found,
}

impl Stored {
    /// Returns what the store keeps of a result of this model.
    pub fn new(key: Key, simulation: Simulation, result: Found) -> Stored {
        Stored {
            key,
            model: MODEL.to_string(),
            digest: seal(&simulation, &result),
            simulation,
            result,
        }
    }

    /// Returns the file's text.
    pub fn to_json(&self) -> String {
        json(self) + "\n"
    }
}

impl Prepared {
    /// Returns the result that the store in a folder has; without one, or without a store, simulates,
    /// and keeps the result there.
    ///
    /// # Errors
    /// When the simulation fails, or the store cannot be used.
    pub fn stored(self, folder: Option<&Path>) -> Result<Stored, ExperimentError> {
        let store = folder.map(Store::open).transpose()?;
        let had = store.as_ref().map(|store| store.get(&self.key)).transpose()?;
        if let Some(stored) = had.flatten() {
            return Ok(stored);
        }
        let found = self.run()?;
        let stored = Stored::new(self.key, self.asked, found);
        if let Some(store) = &store {
            store.put(&stored)?;
        }
        Ok(stored)
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts, numbers and lists of them")
}

/// A file of a store that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub path: String,
    /// The fault.
    pub reason: String,
}

/// The numbers of files that pruning removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Results.
    pub results: usize,
    /// Files that were never finished.
    pub unfinished: usize,
}

impl Store {
    /// Opens the store at `root`, and makes it where nothing is.
    ///
    /// # Errors
    /// Refuses a folder that is not a store, and results of another model.
    pub fn open(root: &Path) -> Result<Store, ExperimentError> {
        let store = Store::at(root);
        if !root.join(HEADER).exists() {
            store.begin()?;
        }
        store.check()?;
        Ok(store)
    }

    /// Opens a store that must be there.
    ///
    /// # Errors
    /// Refuses what [`Store::open`] refuses, and a folder that is not a store yet.
    pub fn existing(root: &Path) -> Result<Store, ExperimentError> {
        let store = Store::at(root);
        store.check()?;
        Ok(store)
    }

    fn at(root: &Path) -> Store {
        Store { root: root.to_path_buf() }
    }

    /// Makes the folders and the header. Several processes may do so at once.
    fn begin(&self) -> Result<(), ExperimentError> {
        let is_empty = match fs::read_dir(&self.root) {
            Ok(mut entries) => entries.all(|entry| {
                entry.is_ok_and(|entry| {
                    [RESULTS, UNFINISHED, HEADER].iter().any(|n| entry.file_name() == *n)
                })
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(ExperimentError::io(&self.root)(error)),
        };
        if !is_empty {
            return Err(
                self.refused("the folder has other files; expected a store or a new folder")
            );
        }
        for folder in [RESULTS, UNFINISHED] {
            let folder = self.root.join(folder);
            fs::create_dir_all(&folder).map_err(ExperimentError::io(&folder))?;
        }
        let header = Header { perch_store: 1, model: MODEL.to_string() };
        self.write(&self.root.join(HEADER), &(json(&header) + "\n"))
    }

    /// Refuses what is not a store of this model.
    fn check(&self) -> Result<(), ExperimentError> {
        let model = self.model()?;
        if model != MODEL {
            return Err(self.refused(format!(
                "its results are of model {model}, and this perch is model {MODEL}: use another \
                 folder, or remove them by `perch store prune`"
            )));
        }
        Ok(())
    }

    fn model(&self) -> Result<String, ExperimentError> {
        let path = self.root.join(HEADER);
        if !path.exists() {
            return Err(self.refused(format!(
                "there is no {HEADER} in it; expected the folder that `perch sweep run --store` made"
            )));
        }
        let header: Header = serde_json::from_str(&perch_file::text(&path, Kind::STORED)?)
            .map_err(|error| self.refused(format!("{HEADER}: {error}")))?;
        match header.perch_store {
            1 => Ok(header.model),
            other => Err(self.refused(format!("its format is {other}; this perch reads format 1"))),
        }
    }

    fn refused(&self, reason: impl Into<String>) -> ExperimentError {
        ExperimentError::Store { path: self.root.display().to_string(), reason: reason.into() }
    }

    fn path(&self, key: &Key) -> PathBuf {
        let name = key.as_str();
        let folder = self.root.join(RESULTS).join(&name[..2]);
        folder.join(format!("{name}.json"))
    }

    /// Returns the keys of all results, sorted.
    ///
    /// # Errors
    /// When the system does not let it read the folders.
    pub fn keys(&self) -> Result<BTreeSet<Key>, ExperimentError> {
        let mut keys = BTreeSet::new();
        self.each_file(|_, key| {
            keys.extend(key);
            Ok(())
        })?;
        Ok(keys)
    }

    /// Returns those of `simulations` whose results are not there.
    ///
    /// # Errors
    /// When a result is not as the store wrote it.
    pub fn lacks<'a>(
        &self,
        simulations: &'a [Prepared],
    ) -> Result<Vec<&'a Prepared>, ExperimentError> {
        let mut missing = Vec::new();
        for one in simulations {
            if self.get(&one.key)?.is_none() {
                missing.push(one);
            }
        }
        Ok(missing)
    }

    /// Removes those results of `simulations` that are not as the store wrote them, so that they are
    /// simulated again. Returns their number.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn repair(&self, simulations: &[Prepared]) -> Result<usize, ExperimentError> {
        let mut removed = 0;
        for one in simulations {
            match self.get(&one.key) {
                Ok(_) => {}
                // What cannot be read may be whole.
                Err(ExperimentError::Invalid(_)) => {
                    let path = self.path(&one.key);
                    fs::remove_file(&path).map_err(ExperimentError::io(&path))?;
                    removed += 1;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// Calls `visit` with each file among the results, and with its key where its name is one.
    fn each_file(
        &self,
        mut visit: impl FnMut(PathBuf, Option<Key>) -> Result<(), ExperimentError>,
    ) -> Result<(), ExperimentError> {
        for folder in entries(&self.root.join(RESULTS))? {
            if !folder.is_dir() {
                visit(folder, None)?;
                continue;
            }
            for path in entries(&folder)? {
                let name = path.file_name().and_then(|name| name.to_str());
                let key = name.and_then(|name| Key::read(name.strip_suffix(".json")?));
                let key = key.filter(|key| self.path(key) == path);
                visit(path, key)?;
            }
        }
        Ok(())
    }

    /// Returns the result of a key, where it is there.
    ///
    /// # Errors
    /// When the file is not as the store wrote it.
    pub fn get(&self, key: &Key) -> Result<Option<Stored>, ExperimentError> {
        let path = self.path(key);
        self.check_folders(&path)?;
        if fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        let text = perch_file::text(&path, Kind::STORED)?;
        let altered = |reason: String| {
            let reason = format!("{reason}; perch sweep run --repair simulates it again");
            ExperimentError::key(&path.display().to_string(), "", reason)
        };
        let stored: Stored =
            serde_json::from_str(&text).map_err(|error| altered(error.to_string()))?;
        match () {
            () if stored.key != *key => Err(altered(format!("it is the result of {}", stored.key))),
            () if stored.model != MODEL => Err(altered(format!("it is of model {}", stored.model))),
            () if stored.digest != seal(&stored.simulation, &stored.result) => {
                Err(altered("the result is not the one that was written".to_string()))
            }
            () => Ok(Some(stored)),
        }
    }

    /// Checks that the folders above a result are the store's own.
    fn check_folders(&self, path: &Path) -> Result<(), ExperimentError> {
        let above = path.ancestors().skip(1);
        above.take_while(|&folder| folder != self.root).try_for_each(own)
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn put(&self, stored: &Stored) -> Result<(), ExperimentError> {
        let path = self.path(&stored.key);
        self.check_folders(&path)?;
        let folder = path.parent().expect("a folder for the first two digits");
        fs::create_dir_all(folder).map_err(ExperimentError::io(folder))?;
        self.write(&path, &stored.to_json())
    }

    /// Writes a file that appears whole or not at all.
    fn write(&self, path: &Path, text: &str) -> Result<(), ExperimentError> {
        let unfinished = self.root.join(UNFINISHED);
        let written = || {
            let mut file = Builder::new().prefix(PREFIX).tempfile_in(&unfinished)?;
            file.write_all(text.as_bytes())?;
            readable(file.as_file())?;
            file.persist(path).map_err(|error| error.error)?;
            Ok(())
        };
        written().map_err(ExperimentError::io(path))
    }

    /// Reads every result and returns the files that are not as they should be.
    ///
    /// # Errors
    /// When the system does not let it read the folders.
    pub fn verify(&self) -> Result<Vec<Fault>, ExperimentError> {
        let mut faults = Vec::new();
        self.each_file(|path, key| {
            let reason = match &key {
                None => Some("no result has such a name".to_string()),
                Some(key) => self.fault(key),
            };
            faults.extend(reason.map(|reason| Fault { path: path.display().to_string(), reason }));
            Ok(())
        })?;
        for path in entries(&self.root.join(UNFINISHED))? {
            let reason = if is_unfinished(&path) {
                "never finished; perch store prune removes it"
            } else {
                "not written by perch, which leaves it; remove it, or move it elsewhere"
            };
            faults.push(Fault { path: path.display().to_string(), reason: reason.to_string() });
        }
        Ok(faults)
    }

    fn fault(&self, key: &Key) -> Option<String> {
        let stored = match self.get(key) {
            Ok(Some(stored)) => stored,
            Ok(None) => return Some("it is gone".to_string()),
            Err(error) => return Some(error.to_string()),
        };
        // Its key is of the scheduler's file, which need not be there, and is not for a look at a store to run.
        if stored.simulation.is_foreign() {
            return None;
        }
        match stored.simulation.key("simulation") {
            Ok(found) if found == *key => None,
            Ok(found) => Some(format!("its simulation has the key {found}")),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Removes what a store of this model does not need: results for which `is_wanted` is false,
    /// all results of another model, and files that were never finished. No process may write to
    /// the store meanwhile.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn prune(root: &Path, is_wanted: impl Fn(&Key) -> bool) -> Result<Pruned, ExperimentError> {
        let store = Store::at(root);
        let is_ours = store.model()? == MODEL;
        let mut pruned = Pruned::default();
        store.each_file(|path, key| {
            if let Some(key) = key
                && !(is_ours && is_wanted(&key))
            {
                fs::remove_file(&path).map_err(ExperimentError::io(&path))?;
                pruned.results += 1;
            }
            Ok(())
        })?;
        for path in entries(&root.join(UNFINISHED))? {
            if is_unfinished(&path) {
                fs::remove_file(&path).map_err(ExperimentError::io(&path))?;
                pruned.unfinished += 1;
            }
        }
        if !is_ours {
            let header = root.join(HEADER);
            fs::remove_file(&header).map_err(ExperimentError::io(&header))?;
            store.begin()?;
        }
        Ok(pruned)
    }
}

/// Returns the digest of what a store keeps.
fn seal(simulation: &Simulation, result: &Found) -> String {
    digest((json(simulation) + &json(result)).as_bytes())
}

/// Temporary files can be read by their owner alone; results are shared as other files are.
fn readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

/// Refuses a link, which leads out of the store: what is behind it is not the store's.
fn own(folder: &Path) -> Result<(), ExperimentError> {
    if fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()) {
        return Err(ExperimentError::Store {
            path: folder.display().to_string(),
            reason: "it is a link; expected a folder of the store's own".to_string(),
        });
    }
    Ok(())
}

/// True for a file that perch began to write.
fn is_unfinished(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let name = path.file_name().map(|name| name.to_string_lossy());
    is_file && name.is_some_and(|name| name.starts_with(PREFIX))
}

/// Returns what is in a folder, sorted; nothing where there is no folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ExperimentError> {
    own(folder)?;
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(ExperimentError::io(folder))?,
    };
    let paths: io::Result<Vec<PathBuf>> = read.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(ExperimentError::io(folder))?;
    paths.sort();
    Ok(paths)
}
