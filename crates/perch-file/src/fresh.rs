// SPDX-License-Identifier: GPL-2.0-or-later
//! The one writer of files: they appear whole or not at all, and replace nothing that perch reads.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::{Identity, identity, was_read};

/// An output file. Until it is whole it has no name, so that nothing is left of it when it is dropped or
/// perch is killed; where the file system cannot do that its name is `.perch-PID-N.new`. An
/// existing terminal, pipe or device cannot be replaced, so it is written to directly.
#[derive(Debug)]
pub struct Fresh {
    file: File,
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    /// Its folder, whatever the folder's name leads to by the time the file is whole.
    folder: OwnedFd,
    name: OsString,
    /// The unfinished file's name in that folder, while it has one.
    unfinished: Option<OsString>,
    _writing: Writing,
}

/// The folder, by device and inode, and the name of a file that perch writes.
type Target = (u64, u64, OsString);

/// The files that perch writes at this moment, and which ones they replace.
static WRITTEN: Mutex<BTreeMap<Target, Option<Identity>>> = Mutex::new(BTreeMap::new());

/// Returns whether perch is about to replace this file.
pub(crate) fn is_written(file: Identity) -> bool {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    written.values().any(|old| *old == Some(file))
}

/// A file in that list.
#[derive(Debug)]
struct Writing(Target);

impl Writing {
    fn begin(target: Target, old: Option<Identity>) -> io::Result<Writing> {
        let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        if written.contains_key(&target) {
            return Err(io::Error::other("another output has the same name"));
        }
        written.insert(target.clone(), old);
        Ok(Writing(target))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        written.remove(&self.0);
    }
}

impl Fresh {
    /// Begins the file for `path`. It gets the mode of the file that it replaces, and its owner where the
    /// user may give it away.
    ///
    /// # Errors
    /// When the file cannot be written in that folder, when the user may not write to the file that it
    /// would replace, when perch has read that file, when `path` is a link that leads nowhere, or a pipe
    /// that nobody reads.
    pub fn create(path: &Path) -> io::Result<Fresh> {
        if let Some(file) = descriptor(path)? {
            return Ok(Fresh { file, place: None });
        }
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    return Err(io::Error::other("it is a link that leads nowhere"));
                }
                return Fresh::beside(path, None);
            }
            Err(error) => return Err(error),
        };
        if !found.is_file() {
            return Fresh::there(path, &found);
        }
        // A user who may not write to a file must not replace it either, so this open fails for such a file.
        // The kernel follows the links, and refuses one that somebody else left in /tmp.
        let old = File::options().append(true).open(path)?.metadata()?;
        let is_input = rustix::fs::fstat(io::stdin())
            .is_ok_and(|input| (input.st_dev, input.st_ino) == (old.dev(), old.ino()));
        if was_read(&old) || is_input {
            return Err(io::Error::other("perch reads this file; write to another one"));
        }
        // A symbolic link stays: the new file replaces the one that the link leads to.
        let place = fs::canonicalize(path)?;
        let same = |other: &Metadata| (other.dev(), other.ino()) == (old.dev(), old.ino());
        if !fs::symlink_metadata(&place).is_ok_and(|there| same(&there)) {
            return Err(io::Error::other("its links change meanwhile"));
        }
        Fresh::beside(&place, Some(&old))
    }

    /// Opens a terminal, a pipe or a device.
    fn there(path: &Path, found: &Metadata) -> io::Result<Fresh> {
        let mut options = File::options();
        // A pipe without a reader would keep perch waiting for one.
        if found.file_type().is_fifo() {
            options.custom_flags(OFlags::NONBLOCK.bits() as i32);
        }
        let file = options.write(true).open(path);
        let file = file.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NXIO) => io::Error::other("nobody reads this pipe"),
            _ => error,
        })?;
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
        Ok(Fresh { file, place: None })
    }

    /// Begins a file in the folder of its `place`, like the `old` one there.
    fn beside(place: &Path, old: Option<&Metadata>) -> io::Result<Fresh> {
        let name = place.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        let of = rustix::fs::fstat(&folder)?;
        let target = (of.st_dev, of.st_ino, name.to_os_string());
        let writing = Writing::begin(target, old.map(identity))?;
        let mode = Mode::from_raw_mode(old.map_or(0o666, |old| old.mode() & 0o777));
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let (file, unfinished) =
            match rustix::fs::openat(&folder, ".", flags | OFlags::TMPFILE, mode) {
                Ok(file) => (file, None),
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                    let (made, name) = unnamed(|name| {
                        let flags = flags | OFlags::CREATE | OFlags::EXCL;
                        rustix::fs::openat(&folder, name, flags, mode)
                    })?;
                    (made, Some(name))
                }
                Err(error) => return Err(error.into()),
            };
        let fresh = Fresh {
            file: file.into(),
            place: Some(Place { folder, name: name.to_os_string(), unfinished, _writing: writing }),
        };
        if let Some(old) = old {
            let own = |uid| std::os::unix::fs::fchown(&fresh.file, uid, Some(old.gid()));
            // Who may not give the file away keeps it, in its group if that is one of theirs.
            let _ = own(Some(old.uid())).or_else(|_| own(None));
            rustix::fs::fchmod(&fresh.file, mode)?;
        }
        Ok(fresh)
    }

    /// Returns another handle of the file, for a writer that keeps what it is given.
    ///
    /// # Errors
    /// When the process has no handle left.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Puts the file, now whole, in its place.
    ///
    /// # Errors
    /// When it cannot be moved there.
    pub fn keep(mut self) -> io::Result<()> {
        self.file.flush()?;
        let Some(place) = &mut self.place else {
            return Ok(());
        };
        let from = match place.unfinished.take() {
            Some(name) => name,
            None => {
                let named = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                let link = |name: &OsStr| {
                    let follow = AtFlags::SYMLINK_FOLLOW;
                    rustix::fs::linkat(CWD, &named, place.folder.as_fd(), name, follow)
                };
                match link(&place.name) {
                    Err(Errno::EXIST) => {}
                    linked => return Ok(linked?),
                }
                unnamed(link)?.1
            }
        };
        let moved = rustix::fs::renameat(&place.folder, &from, &place.folder, &place.name);
        if moved.is_err() {
            place.unfinished = Some(from);
        }
        Ok(moved?)
    }
}

/// Opens one of the process's own descriptors, if the name is that of one: what it leads to is somebody
/// else's, and is not replaced.
fn descriptor(path: &Path) -> io::Result<Option<File>> {
    let name = path.to_string_lossy();
    let number = name.strip_prefix("/dev/fd/").or_else(|| name.strip_prefix("/proc/self/fd/"));
    let own = match (&*name, number) {
        ("/dev/stdout", _) | (_, Some("1")) => io::stdout().as_fd().try_clone_to_owned()?,
        ("/dev/stderr", _) | (_, Some("2")) => io::stderr().as_fd().try_clone_to_owned()?,
        (_, Some(_)) => return Ok(Some(File::options().append(true).open(path)?)),
        _ => return Ok(None),
    };
    Ok(Some(own.into()))
}

/// Makes something with a name that is not in use.
fn unnamed<T>(mut make: impl FnMut(&OsStr) -> Result<T, Errno>) -> io::Result<(T, OsString)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".perch-{}-{number}.new", std::process::id()));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return Ok((made?, name)),
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some(Place { folder, unfinished: Some(name), .. }) = &self.place {
            let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
        }
    }
}

impl Write for Fresh {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn written(path: &Path, text: &str) -> io::Result<()> {
        let mut file = Fresh::create(path)?;
        file.write_all(text.as_bytes())?;
        file.keep()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut file = Fresh::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(names(folder.path()), Vec::<String>::new());
        // A process that is killed drops nothing.
        std::mem::forget(Fresh::create(&folder.path().join("killed")).unwrap());
        written(&path, "whole").unwrap();
        written(&path, "again").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "again");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn two_outputs_have_two_names_and_a_descriptor_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(255));
        let first = Fresh::create(&path).unwrap();
        let why = Fresh::create(&path).unwrap_err().to_string();
        assert!(why.contains("another output"), "{why}");
        drop(first);
        written(&path, "one").unwrap();
        written(&path, "two").unwrap();
        let log = File::options().append(true).open(&path).unwrap();
        let name = format!("/dev/fd/{}", log.as_raw_fd());
        written(Path::new(&name), " three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two three");
        assert!(Fresh::create(&folder.path().join("new/")).is_err());
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_a_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["secret", "link"].map(|name| folder.path().join(name));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("secret", &link).unwrap();
        written(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_file(&path).unwrap();
        let why = written(&link, "lost").unwrap_err().to_string();
        assert!(why.contains("leads nowhere"), "{why}");
    }

    #[test]
    fn what_perch_reads_it_does_not_replace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        fs::write(&path, "input").unwrap();
        let output = Fresh::create(&path).unwrap();
        let why = crate::open(&path).unwrap_err().to_string();
        assert!(why.contains("perch writes this file"), "{why}");
        drop(output);
        crate::open(&path).unwrap();
        let why = written(&path, "output").unwrap_err().to_string();
        assert!(why.contains("perch reads this file"), "{why}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "input");
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_refused_and_a_device_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        let why = written(&path, "output").unwrap_err().to_string();
        assert_eq!(why, "nobody reads this pipe");
        written(Path::new("/dev/null"), "output").unwrap();
    }
}
