// SPDX-License-Identifier: GPL-2.0-or-later
//! The device tree of a guest that has one: QEMU's own, with the CPUs of the machine.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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
    // QEMU writes a tree to a new file, which it renames, and not to one that perch has open.
    let ours = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(ours).tempdir();
    let folder = folder.map_err(Error::file("make", &std::env::temp_dir()))?;
    let path = folder.path().join("virt.dtb");
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
