// SPDX-License-Identifier: GPL-2.0-or-later
//! The folder that keeps fetched things: kernels, QEMU, packages of tools, apt's lists.
//!
//! A thing that stands in it under its own name is whole: perch makes it under another name and
//! renames it. Only one process at a time adds to the folder. A user may delete anything in it
//! between two runs; perch fetches it again.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::error::{Error, Result};
use crate::progress::{Progress, Silent};

/// The end of an unfinished thing's name, until it is renamed.
const PARTIAL: &str = ".partial";

/// The cache folder, and the receiver of messages about progress.
pub struct Store {
    root: PathBuf,
    progress: Box<dyn Progress>,
}

impl Store {
    /// `$PERCH_CACHE`, else `$XDG_CACHE_HOME/perch`, else `~/.cache/perch`; made when missing.
    ///
    /// # Errors
    /// [`Error::Missing`] when none of the variables is set, [`Error::File`] when the folder can
    /// be neither found nor made.
    pub fn open() -> Result<Store> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let root = variable("PERCH_CACHE")
            .map(PathBuf::from)
            .or_else(|| variable("XDG_CACHE_HOME").map(|base| PathBuf::from(base).join("perch")))
            .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache/perch")))
            .ok_or_else(|| {
                Error::Missing(
                    "there is no place for fetched kernels: neither PERCH_CACHE nor HOME is set; \
                     set PERCH_CACHE to a folder"
                        .to_string(),
                )
            })?;
        Store::at(root)
    }

    /// The store in the folder `root`, which is made when missing.
    ///
    /// # Errors
    /// [`Error::File`] when the folder cannot be made.
    pub fn at(root: impl Into<PathBuf>) -> Result<Store> {
        let root = root.into();
        fs::create_dir_all(&root).map_err(Error::file("make the cache folder", &root))?;
        // apt and QEMU get paths below it whatever folder they run in, so the path must be
        // absolute.
        let root = fs::canonicalize(&root).map_err(Error::file("find", &root))?;
        Ok(Store { root, progress: Box::new(Silent) })
    }

    /// The same store, which tells `progress` of its work.
    pub fn with_progress(self, progress: impl Progress + 'static) -> Store {
        Store { progress: Box::new(progress), ..self }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Tells the receiver of messages.
    pub fn say(&self, message: &str, fraction: Option<f64>) {
        self.progress.step(message, fraction);
    }

    /// The thing called `name`, if it was kept.
    pub(crate) fn get(&self, name: &str) -> Option<PathBuf> {
        let path = self.root.join(name);
        path.exists().then_some(path)
    }

    /// The names of the things in the folder `name`, sorted; none when there is no such folder.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root.join(name))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| !name.ends_with(PARTIAL))
            .collect();
        names.sort();
        names
    }

    /// Waits until no other process adds to the store, and takes the right to add.
    ///
    /// The lock ends with the value, and with the process in whatever way that ends. It is not
    /// reentrant.
    ///
    /// # Errors
    /// [`Error::File`] when the store cannot be written.
    pub(crate) fn lock(&self) -> Result<Locked<'_>> {
        let path = self.root.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::file("write", &path))?;
        let lock = |how| rustix::fs::flock(&file, how);
        if lock(FlockOperation::NonBlockingLockExclusive).is_err() {
            self.say("waiting for another perch that is fetching", None);
            while let Err(error) = lock(FlockOperation::LockExclusive) {
                if error != rustix::io::Errno::INTR {
                    return Err(Error::file("lock", &path)(error.into()));
                }
            }
        }
        Ok(Locked { store: self, _file: file })
    }
}

/// The right to add to the store.
pub(crate) struct Locked<'a> {
    store: &'a Store,
    _file: File,
}

impl Locked<'_> {
    pub fn store(&self) -> &Store {
        self.store
    }

    /// Keeps as `name` the folder that `make` fills, and returns its path.
    ///
    /// When `make` fails, or the process ends in the middle, nothing is kept.
    pub fn keep(&self, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let path = self.store.root.join(name);
        let mut partial = path.clone().into_os_string();
        partial.push(PARTIAL);
        let partial = PathBuf::from(partial);
        // Earlier attempts, of this or an older version of perch, may have left folders; the lock
        // tells that no process still fills one.
        for left in fs::read_dir(partial.parent().unwrap_or(&self.store.root)).into_iter().flatten()
        {
            let left = left.map_err(Error::file("read", &self.store.root))?.path();
            if left.to_string_lossy().ends_with(PARTIAL) {
                remove(&left)?;
            }
        }
        fs::create_dir_all(&partial).map_err(Error::file("make", &partial))?;
        if let Err(error) = make(&partial) {
            // The first failure is the one to tell; the next attempt removes a folder that is left.
            let _ = remove(&partial);
            return Err(error);
        }
        remove(&path)?;
        fs::rename(&partial, &path).map_err(Error::file("rename", &partial))?;
        Ok(path)
    }

    /// Refuses to begin with `what`, which takes `needed` bytes, when fewer are free.
    pub fn check_space(&self, what: &str, needed: u64) -> Result<()> {
        let root = &self.store.root;
        let stat = rustix::fs::statvfs(root)
            .map_err(|error| Error::file("measure the free space of", root)(error.into()))?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        if free >= needed {
            return Ok(());
        }
        Err(Error::Space { what: what.to_string(), folder: root.clone(), needed, free })
    }
}

/// Removes a folder or a file that may be missing.
fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_half_way_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).unwrap();
        let lock = store.lock().unwrap();
        let failed = lock.keep("kernels/1", |path| {
            fs::write(path.join("half"), "x").unwrap();
            Err(Error::Missing("the network went away".to_string()))
        });
        assert!(failed.is_err());
        assert_eq!(store.get("kernels/1"), None);
        assert!(store.names("kernels").is_empty());
        let kept = lock.keep("kernels/1", |path| {
            assert_eq!(fs::read_dir(path).unwrap().count(), 0);
            fs::write(path.join("image"), "x").map_err(Error::file("write", path))
        });
        assert_eq!(store.get("kernels/1"), Some(kept.unwrap()));
        assert_eq!(store.names("kernels"), ["1"]);
    }

    #[test]
    fn what_an_interrupted_process_left_is_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).unwrap();
        fs::create_dir_all(folder.path().join("qemu/a.partial")).unwrap();
        fs::write(folder.path().join("qemu/a.partial/old"), "x").unwrap();
        fs::create_dir_all(folder.path().join("qemu/b.partial")).unwrap();
        assert!(store.names("qemu").is_empty());
        let kept = store.lock().unwrap().keep("qemu/a", |_| Ok(())).unwrap();
        assert!(!kept.join("old").exists());
        assert!(!folder.path().join("qemu/b.partial").exists());
    }

    #[test]
    fn a_full_disk_is_said_before_anything_is_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).unwrap();
        let lock = store.lock().unwrap();
        lock.check_space("a kernel", 1).unwrap();
        let message = lock.check_space("a kernel", u64::MAX).unwrap_err().to_string();
        assert!(message.starts_with("a kernel needs "), "{message}");
        assert!(message.contains("PERCH_CACHE"), "{message}");
    }

    #[test]
    fn two_processes_do_not_add_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let first = Store::at(folder.path()).unwrap();
        let second = Store::at(folder.path()).unwrap();
        let lock = first.lock().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| second.lock().map(drop));
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!waiting.is_finished());
            drop(lock);
            waiting.join().unwrap().unwrap();
        });
    }
}
