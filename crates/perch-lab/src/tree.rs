// SPDX-License-Identifier: GPL-2.0-or-later
//! Packages unpacked into a folder, and programs found on the host.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::error::{Error, Result};

/// The path of the program `name`, from PATH or from the folders of system programs that a user's
/// PATH may lack.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(system);
    folders.find_map(|folder| {
        let program = folder.join(name);
        let executable = fs::metadata(&program)
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
        (folder.is_absolute() && executable).then_some(program)
    })
}

/// The folder of an unpacked tree's libraries once [`flatten_libraries`] has run.
pub(crate) fn libraries(tree: &Path, arch: Arch) -> PathBuf {
    tree.join("usr/lib").join(arch.multiarch())
}

/// Makes every library of a tree reachable in one folder.
///
/// Packages put some libraries beside that folder (in `/lib`, which is the same folder on an
/// installed system) and some below it, where an alternative or an absolute search path in a
/// program would lead.
pub(crate) fn flatten_libraries(tree: &Path, arch: Arch) -> Result<()> {
    let folder = libraries(tree, arch);
    fs::create_dir_all(&folder).map_err(Error::file("make", &folder))?;
    let mut others = vec![tree.join("lib").join(arch.multiarch()), tree.join("lib64")];
    others.extend(folders(&folder));
    for other in others {
        for path in entries(&other) {
            let Some(name) = path.file_name() else {
                continue;
            };
            let link = folder.join(name);
            let name = name.to_string_lossy();
            let library = ["lib", "ld-"].iter().any(|start| name.starts_with(start));
            let library = library && name.contains(".so");
            if library && !path.is_dir() && link.symlink_metadata().is_err() {
                // The link is relative, so that the tree can be renamed.
                let target = relative(&path, &folder, tree);
                symlink(&target, &link).map_err(Error::file("make", &link))?;
            }
        }
    }
    Ok(())
}

/// `path` as seen from `folder`, both below `tree`.
fn relative(path: &Path, folder: &Path, tree: &Path) -> PathBuf {
    if let Ok(below) = path.strip_prefix(folder) {
        return below.to_path_buf();
    }
    let depth = folder.strip_prefix(tree).map_or(0, |below| below.components().count());
    let up: PathBuf = std::iter::repeat_n("..", depth).collect();
    up.join(path.strip_prefix(tree).unwrap_or(path))
}

/// The folders in a folder, sorted.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let paths = entries(folder).into_iter();
    paths.filter(|path| path.is_dir() && !path.is_symlink()).collect()
}

/// The entries of a folder, sorted; none when there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_reachable_wherever_a_package_put_them() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree.partial");
        for path in [
            "lib/x86_64-linux-gnu/libusb.so.0",
            "usr/lib/x86_64-linux-gnu/libz.so.1",
            "usr/lib/x86_64-linux-gnu/pulseaudio/libpulse.so",
            "usr/lib/x86_64-linux-gnu/pulseaudio/README",
        ] {
            let path = tree.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, path.to_str().unwrap()).unwrap();
        }
        flatten_libraries(&tree, Arch::X86_64).unwrap();
        let kept = folder.path().join("tree");
        fs::rename(&tree, &kept).unwrap();
        let library = |name: &str| fs::read_to_string(libraries(&kept, Arch::X86_64).join(name));
        assert!(library("libusb.so.0").unwrap().ends_with("lib/x86_64-linux-gnu/libusb.so.0"));
        assert!(library("libpulse.so").unwrap().ends_with("pulseaudio/libpulse.so"));
        assert!(library("libz.so.1").is_ok());
        assert!(library("README").is_err());
    }

    #[test]
    fn a_program_on_path_can_be_run() {
        assert!(on_path("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(on_path("perch-no-such-program"), None);
    }
}
