// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest's files: those that most guests want, and the few that one guest alone has.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use super::link::JOB;
use super::setup::Setup;
use super::sibling::perch_for;
use crate::agent::frame::{Request, send};
use crate::console::scratch;
use crate::cpio::{Kind, Writer};
use crate::error::{Error, Result};
use crate::initramfs::Contents;
use crate::kernel::Kernel;
use crate::store::Store;
use crate::tools::{Busybox, Tool};

/// The guest's first program: a script for busybox that prepares the guest and starts the agent,
/// which is perch.
pub const INIT: &str = include_str!("init.sh");

/// The files of an ordinary guest: busybox, the perch at the path `perch` (its sibling for the
/// guest's architecture, see [`perch_for`]) as /bin/perch, the kernel's configuration, and `tools`
/// by name (see [`Tool::find`]). Where a tool cannot be had, busybox's applet of its name replaces
/// it.
///
/// # Errors
/// As [`perch_for`] and [`Tool::find`].
pub fn contents<T: AsRef<str>>(
    store: &Store,
    kernel: &Kernel,
    perch: &Path,
    tools: impl IntoIterator<Item = T>,
) -> Result<Contents> {
    let perch = perch_for(kernel.arch, perch)?;
    let busybox = Busybox::find(store, kernel.arch)?;
    let mut contents = Contents::new(INIT);
    contents.program(&perch, "bin/perch")?.kernel(kernel);
    for tool in tools {
        let applet = busybox.applets.iter().any(|name| name == tool.as_ref());
        match Tool::find(store, tool.as_ref(), kernel.arch) {
            Err(Error::Input(_)) if applet => {}
            tool => drop(contents.tool(&tool?)),
        }
    }
    contents.busybox(&busybox);
    Ok(contents)
}

/// The archive for the kernel, in memory: the setup's contents, and behind them an archive of the
/// files that this guest alone has.
pub(super) fn archive(setup: &Setup) -> Result<File> {
    let mut file = scratch("perch-initramfs")?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    setup.contents.build(Path::new(&path))?;
    append(setup, &mut file).map_err(Error::file("write", Path::new("the initramfs")))?;
    Ok(file)
}

fn append(setup: &Setup, file: &mut File) -> io::Result<()> {
    // An archive begins at a multiple of four bytes.
    let end = file.seek(SeekFrom::End(0))?;
    file.write_all(&[0; 3][..(end.next_multiple_of(4) - end) as usize])?;
    let mut archive = Writer::new(file);
    if let Some(command) = &setup.job {
        let mut frame = Vec::new();
        send(&mut frame, &Request::Start(JOB, command.start.clone()))?;
        archive.entry("perch.job", 0o600, &Kind::File(&frame))?;
    }
    if setup.bpf_stats {
        archive.entry("perch.bpf-stats", 0o600, &Kind::File(b""))?;
    }
    archive.finish()?;
    Ok(())
}
