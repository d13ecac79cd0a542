// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel, and the folder of the store that holds it.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::image;
use crate::store::Locked;

/// The options that a guest's kernel needs, with the file or device that each is for. The last two
/// may be modules, which the guest's init loads ([`PORT`]); the first three are in use before any
/// module can be loaded.
pub(super) const NEEDED: [(&str, &str); 5] = [
    ("CONFIG_BLK_DEV_INITRD", "the initramfs"),
    ("CONFIG_DEVTMPFS", "/dev"),
    ("CONFIG_TMPFS", "/tmp"),
    ("CONFIG_VIRTIO_PCI", "the agent's port"),
    ("CONFIG_VIRTIO_CONSOLE", "the agent's port"),
];

/// The modules that drive the agent's port in kernels that have not built them in (Debian's up to
/// 6.12), each after those that it needs, below a kernel's folder of modules.
const PORT: [&str; 6] = [
    "kernel/drivers/virtio/virtio_ring.ko",
    "kernel/drivers/virtio/virtio.ko",
    "kernel/drivers/virtio/virtio_pci_modern_dev.ko",
    "kernel/drivers/virtio/virtio_pci_legacy_dev.ko",
    "kernel/drivers/virtio/virtio_pci.ko",
    "kernel/drivers/char/virtio_console.ko",
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
    /// Modules that the guest's init has to load, in this order, before the agent has its port.
    pub modules: Vec<PathBuf>,
}

impl Kernel {
    /// The options that a guest needs and that this kernel neither has built in nor brings as
    /// modules, each with its purpose. Empty when none is missing or the configuration is unknown.
    pub fn lacking(&self) -> Vec<(&'static str, &'static str)> {
        let Some(config) = self.config.as_deref().and_then(|path| fs::read(path).ok()) else {
            return Vec::new();
        };
        let config = String::from_utf8_lossy(&config);
        let loaded = !self.modules.is_empty();
        let lacks = |(option, _): &(&str, _)| {
            let loaded = loaded && set_to(&config, option, "m");
            !built_in(&config, option) && !loaded
        };
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
            modules: kept_modules(&folder.join("modules")),
        })
    }
}

/// The modules in a folder of the store, in the order of their names.
fn kept_modules(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut modules: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    modules.sort();
    modules
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
    let bytes = perch_file::bytes(path, perch_file::Kind::KERNEL);
    let bytes = bytes
        .map_err(|error| Error::file("read the kernel", path)(std::io::Error::other(error)))?;
    let refused = |why: &dyn Display| Error::Input(format!("{}: {why}", path.display()));
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
    let near = || configs_near(path, &image.release).into_iter().find(|path| path.is_file());
    let mut sched_ext = image.sched_ext.unwrap_or(false);
    if let Some(config) = config.or_else(near) {
        let text = fs::read(&config).map_err(Error::file("read", &config))?;
        sched_ext = built_in(&String::from_utf8_lossy(&text), "CONFIG_SCHED_CLASS_EXT");
        write(&folder.join("config"), &text)?;
        let text = String::from_utf8_lossy(&text);
        let options = ["CONFIG_VIRTIO_PCI", "CONFIG_VIRTIO_CONSOLE"];
        if options.iter().any(|option| set_to(&text, option, "m")) {
            keep_modules(path, &image.release, &folder.join("modules"))?;
        }
    }
    write(&folder.join("sched-ext"), if sched_ext { b"yes" } else { b"no" })
}

/// Copies the modules of [`PORT`] that lie near the kernel in `path` into `folder`, numbered in the
/// order in which they are loaded. A kernel that has some of them built in lacks their files.
fn keep_modules(path: &Path, release: &str, folder: &Path) -> Result<()> {
    let Some(root) = modules_near(path, release).into_iter().find(|root| root.is_dir()) else {
        return Ok(());
    };
    fs::create_dir(folder).map_err(Error::file("make", folder))?;
    for (number, module) in PORT.iter().enumerate() {
        let from = root.join(module);
        if from.is_file() {
            let name = from.file_name().unwrap_or_default().to_string_lossy();
            let to = folder.join(format!("{number}-{name}"));
            fs::copy(&from, &to).map_err(Error::file("read the module", &from))?;
        }
    }
    Ok(())
}

/// The folders that the modules of the kernel in `path` may be in: of an unpacked package or an
/// installed system, whose image is in boot/ or beside its modules.
fn modules_near(path: &Path, release: &str) -> Vec<PathBuf> {
    let Some(folder) = path.parent() else {
        return Vec::new();
    };
    let system = folder.parent().unwrap_or(folder);
    let below = |place: &str| system.join(place).join(release);
    vec![below("lib/modules"), below("usr/lib/modules"), folder.to_path_buf()]
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
    set_to(config, option, "y")
}

/// Returns whether a configuration has `option=value`.
fn set_to(config: &str, option: &str, value: &str) -> bool {
    let is = |line: &str| line.strip_prefix(option)?.strip_prefix('=').map(|v| v == value);
    config.lines().find_map(is).unwrap_or(false)
}

/// Writes a file of such a folder.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(Error::file("write", path))
}
