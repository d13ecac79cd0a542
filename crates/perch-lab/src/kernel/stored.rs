// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel, and the folder of the store that holds it.

use std::fs;
use std::path::{Path, PathBuf};

use super::version::{NEWEST_TESTED, dotted};
use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::image;
use crate::store::Locked;

/// The options that a guest's kernel needs built in, with the file or device that each is for.
/// Modules do not help, since the guest's only file system is its initramfs.
pub(super) const NEEDED: [(&str, &str); 5] = [
    ("CONFIG_BLK_DEV_INITRD", "the initramfs"),
    ("CONFIG_DEVTMPFS", "/dev"),
    ("CONFIG_TMPFS", "/tmp"),
    ("CONFIG_VIRTIO_PCI", "the agent's port"),
    ("CONFIG_VIRTIO_CONSOLE", "the agent's port"),
];

/// A kernel that QEMU can boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel's release, as `uname -r` prints it in the guest.
    pub release: String,
    /// The architecture of the machines that it runs on.
    pub arch: Arch,
    /// The file for `-kernel`: for x86 the unpacked vmlinux, which boots through PVH, unless it has
    /// no PVH entry; for arm64 the Image.
    pub image: PathBuf,
    /// Its configuration, where that is known.
    pub config: Option<PathBuf>,
    /// True when it has sched_ext, by its configuration, else by its type information.
    pub sched_ext: bool,
}

impl Kernel {
    /// Refuses a kernel without sched_ext, which could load no scheduler.
    ///
    /// # Errors
    /// [`Error::Input`] with what to do about it.
    pub fn require_sched_ext(&self) -> Result<()> {
        if self.sched_ext {
            return Ok(());
        }
        Err(Error::Input(format!(
            "Linux {} was built without sched_ext (CONFIG_SCHED_CLASS_EXT), so no scheduler can be \
             loaded into it; leave --kernel out for {}, or give one that has it",
            self.release,
            dotted(&NEWEST_TESTED)
        )))
    }

    /// The options that a guest needs and that this kernel's configuration has not built in, each
    /// with its purpose. Empty when none is missing or the configuration is unknown.
    pub fn lacking(&self) -> Vec<(&'static str, &'static str)> {
        let Some(config) = self.config.as_deref().and_then(|path| fs::read(path).ok()) else {
            return Vec::new();
        };
        let config = String::from_utf8_lossy(&config);
        let lacks = |(option, _): &(&str, _)| !built_in(&config, option);
        NEEDED.into_iter().filter(lacks).collect()
    }

    /// A kernel as it is kept in a folder of the store.
    pub(super) fn load(folder: &Path, arch: Arch) -> Result<Kernel> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(Error::file("read", &path))
        };
        let (image, config) = (folder.join("image"), folder.join("config"));
        Ok(Kernel {
            release: read("release")?,
            arch,
            // The image may be a link to the user's file.
            image: fs::canonicalize(&image).map_err(Error::file("find", &image))?,
            config: config.is_file().then_some(config),
            sched_ext: read("sched-ext")? == "yes",
        })
    }
}

/// The store's folder of an architecture's kernels.
pub(super) fn shelf(arch: Arch) -> String {
    format!("kernels/{arch}")
}

/// Fills a folder of the store from the kernel in the file `path`.
///
/// `config` is its configuration; when there is none it is looked for near the file.
pub(super) fn unpack(
    locked: &Locked,
    path: &Path,
    arch: Arch,
    folder: &Path,
    config: Option<PathBuf>,
) -> Result<()> {
    let bytes = fs::read(path).map_err(Error::file("read the kernel", path))?;
    let refused = |why: &str| Error::Input(format!("{}: {why}", path.display()));
    let image = image::read(&bytes).map_err(|why| refused(&why))?;
    if image.arch != arch {
        let why = format!("it is a kernel for {} and the guest is {arch}", image.arch);
        return Err(refused(&why));
    }
    write(&folder.join("release"), image.release.as_bytes())?;
    match &image.unpacked {
        Some(unpacked) => {
            locked.check_space("an unpacked kernel", unpacked.len() as u64)?;
            write(&folder.join("image"), unpacked)?;
        }
        None if path.starts_with(folder) => write(&folder.join("image"), &bytes)?,
        None => {
            let link = folder.join("image");
            std::os::unix::fs::symlink(path, &link).map_err(Error::file("make", &link))?;
        }
    }
    let near = || {
        configs_near(path, &image.release)
            .into_iter()
            .find(|path| path.is_file())
    };
    let mut sched_ext = image.sched_ext.unwrap_or(false);
    if let Some(config) = config.or_else(near) {
        let text = fs::read(&config).map_err(Error::file("read", &config))?;
        sched_ext = built_in(&String::from_utf8_lossy(&text), "CONFIG_SCHED_CLASS_EXT");
        write(&folder.join("config"), &text)?;
    }
    write(
        &folder.join("sched-ext"),
        if sched_ext { b"yes" } else { b"no" },
    )
}

/// The paths that the configuration of the kernel in `path` may have: as installed, as packaged, as
/// built.
fn configs_near(path: &Path, release: &str) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let named = format!("config-{release}");
    if let Some(folder) = path.parent() {
        places.extend([folder.join(&named), folder.join("config")]);
        // vmlinux stands beside .config, arch/x86/boot/bzImage three folders below it; a bare
        // .config elsewhere may be of any kernel.
        let built = |root: &Path| root.join("Kbuild").is_file();
        let roots = folder.ancestors().take(4).filter(|root| built(root));
        places.extend(roots.map(|root| root.join(".config")));
    }
    places
}

/// Returns whether a configuration has `option=y`.
pub(super) fn built_in(config: &str, option: &str) -> bool {
    let value = |line: &str| {
        line.strip_prefix(option)?
            .strip_prefix('=')
            .map(|v| v == "y")
    };
    config.lines().find_map(value).unwrap_or(false)
}

/// Writes a file of such a folder.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(Error::file("write", path))
}
