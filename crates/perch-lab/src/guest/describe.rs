// SPDX-License-Identifier: GPL-2.0-or-later
//! The device tree of a guest that has one: QEMU's own, with the CPUs of the machine.

use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::setup::Setup;
use crate::console::scratch;
use crate::error::{Error, Result};
use crate::process;
use crate::topology::Memory;

/// The file for `-dtb`, in memory; `None` for a guest that needs none.
///
/// # Errors
/// [`Error::Program`] when QEMU cannot write its own tree, or when that tree cannot be the
/// machine's.
pub(super) fn device_tree(setup: &Setup, memory_mib: u64) -> Result<Option<File>> {
    if !setup.topology.has_device_tree() {
        return Ok(None);
    }
    let doing = "describing its board";
    let folder = Folder::new()?;
    let path = folder.0.join("virt.dtb");
    let mut command = setup.qemu.command();
    command.args(["-nodefaults", "-display", "none", "-accel", "tcg"]);
    command.args(setup.topology.arguments(&Memory::own(memory_mib), &setup.cpu_features()));
    // Commas in a path would begin another setting.
    let dump = format!("dumpdtb={}", path.to_string_lossy().replace(',', ",,"));
    process::output(command.args(["-machine", &dump]), doing)?;
    let blob = fs::read(&path).map_err(Error::file("read", &path))?;
    let edited = setup.topology.device_tree(&blob);
    let edited = edited.map_err(|why| Error::Program {
        program: setup.qemu.program.display().to_string(),
        doing: doing.to_string(),
        said: format!("its device tree is not what was expected: {why}"),
    })?;
    let mut file = scratch("perch-dtb")?;
    let written = file.write_all(&edited);
    written.map_err(Error::file("write", Path::new("the device tree")))?;
    Ok(Some(file))
}

/// A folder that holds nothing else: QEMU writes a tree to a new file, which it renames, and not to
/// one that perch has open.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("perch-{}-{number}.dtb", std::process::id());
        let path = std::env::temp_dir().join(name);
        // A killed process of the same number may have left such a folder; its content is of no
        // use.
        let _ = fs::remove_dir_all(&path);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(Error::file("make", &path))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
