// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernels to boot: from a file, the store, the host's /boot or Debian's packages.

mod debian;
mod version;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::image;
use crate::store::{Locked, Store};

use version::Wanted;
pub use version::{NEWEST_TESTED, OLDEST};

/// What a guest needs that is built into a kernel, with the file or device that it is for. Modules
/// do not help: the guest's only file system is its initramfs.
const NEEDED: [(&str, &str); 5] = [
    ("CONFIG_BLK_DEV_INITRD", "the initramfs"),
    ("CONFIG_DEVTMPFS", "/dev"),
    ("CONFIG_TMPFS", "/tmp"),
    ("CONFIG_VIRTIO_PCI", "the agent's port"),
    ("CONFIG_VIRTIO_CONSOLE", "the agent's port"),
];

/// A kernel that QEMU can boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// What `uname -r` says in the guest.
    pub release: String,
    /// Which machines it runs on.
    pub arch: Arch,
    /// What to give to `-kernel`: for x86 the unpacked vmlinux, which boots through PVH, unless it
    /// has no PVH entry; for arm64 the Image.
    pub image: PathBuf,
    /// Its configuration, where that is known.
    pub config: Option<PathBuf>,
    /// Whether it has sched_ext: by its configuration, else by its type information.
    pub sched_ext: bool,
}

impl Kernel {
    /// The kernel that `spec` names, for guests of `arch`.
    ///
    /// `spec` is a file (bzImage, vmlinux or Image), a release or the beginning of its numbers
    /// (`7.2`, `6.18.15`), or empty for the newest of [`NEWEST_TESTED`]. The store is searched
    /// first, then /boot, then Debian's suites that keep newer kernels; among those that match
    /// the newest is taken, and nothing is fetched when one is there.
    ///
    /// # Errors
    /// [`Error::Input`] when `spec` is no version or the file is no kernel for `arch`,
    /// [`Error::Missing`] when no such kernel can be had, else what went wrong in fetching it.
    pub fn find(store: &Store, spec: &str, arch: Arch) -> Result<Kernel> {
        let file = Path::new(spec);
        if spec.contains('/') || file.is_file() {
            return from_file(store, file, arch);
        }
        let wanted = Wanted::parse(spec)?;
        if let Some(kernel) = kept(store, &wanted, arch)? {
            return Ok(kernel);
        }
        if let Some(kernel) = booted(store, &wanted, arch)? {
            return Ok(kernel);
        }
        let locked = store.lock()?;
        // Another process may have fetched it while this one waited.
        if let Some(kernel) = kept(store, &wanted, arch)? {
            return Ok(kernel);
        }
        match debian::fetch(&locked, &wanted, arch) {
            // Without a network an untested version is better than none.
            Err(error) => kept(store, &wanted.or_any(), arch)?.ok_or(error),
            fetched => fetched,
        }
    }

    /// Refuses a kernel without sched_ext, for whoever loads a scheduler.
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
            version::dotted(&NEWEST_TESTED)
        )))
    }

    /// What the guest needs and this kernel's configuration has not got built in: the option and
    /// what it is for. Empty when all is there or the configuration is unknown.
    pub fn lacking(&self) -> Vec<(&'static str, &'static str)> {
        let Some(config) = self.config.as_deref().and_then(|path| fs::read(path).ok()) else {
            return Vec::new();
        };
        let config = String::from_utf8_lossy(&config);
        let lacks = |(option, _): &(&str, _)| !built_in(&config, option);
        NEEDED.into_iter().filter(lacks).collect()
    }

    /// A kernel as it is kept in a folder of the store.
    fn load(folder: &Path, arch: Arch) -> Result<Kernel> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(Error::file("read", &path))
        };
        let (image, config) = (folder.join("image"), folder.join("config"));
        Ok(Kernel {
            release: read("release")?,
            arch,
            // May be a link to where the file is.
            image: fs::canonicalize(&image).map_err(Error::file("find", &image))?,
            config: config.is_file().then_some(config),
            sched_ext: read("sched-ext")? == "yes",
        })
    }
}

/// Where kernels of an architecture are kept.
fn shelf(arch: Arch) -> String {
    format!("kernels/{arch}")
}

/// The newest kernel of the store that is wanted.
fn kept(store: &Store, wanted: &Wanted, arch: Arch) -> Result<Option<Kernel>> {
    let shelf = shelf(arch);
    let releases = store.names(&shelf);
    let Some(release) = wanted.choose(releases.iter().map(String::as_str)) else {
        return Ok(None);
    };
    Kernel::load(&store.root().join(shelf).join(release), arch).map(Some)
}

/// The newest kernel of the host's /boot that is wanted and can be a guest's.
fn booted(store: &Store, wanted: &Wanted, arch: Arch) -> Result<Option<Kernel>> {
    if Arch::host() != Some(arch) {
        return Ok(None);
    }
    let entries = fs::read_dir("/boot").into_iter().flatten();
    let names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let releases = names
        .iter()
        .filter_map(|name| name.strip_prefix("vmlinuz-"));
    // A distribution's kernel has most drivers as modules, which a guest has no use for.
    let fit = |release: &&str| {
        let config = fs::read_to_string(format!("/boot/config-{release}")).unwrap_or_default();
        let options = NEEDED.iter().map(|(option, _)| *option);
        let mut options = options.chain(["CONFIG_SCHED_CLASS_EXT"]);
        let readable = || fs::File::open(format!("/boot/vmlinuz-{release}")).is_ok();
        options.all(|option| built_in(&config, option)) && readable()
    };
    match wanted.choose(releases.filter(fit)) {
        Some(release) => {
            let path = PathBuf::from(format!("/boot/vmlinuz-{release}"));
            from_file(store, &path, arch).map(Some)
        }
        None => Ok(None),
    }
}

/// The kernel in a file that the user gave, unpacked into the store unless it boots as it is.
fn from_file(store: &Store, path: &Path, arch: Arch) -> Result<Kernel> {
    let path = fs::canonicalize(path).map_err(Error::file("read the kernel", path))?;
    let metadata = fs::metadata(&path).map_err(Error::file("read the kernel", &path))?;
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let name = format!("files/{arch}-{:016x}", hasher.finish());
    // One that was built anew has another time, size or place on the disk.
    let state = format!(
        "{}.{:09} {} {}",
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.size(),
        metadata.ino()
    );
    let same =
        |folder: &PathBuf| fs::read_to_string(folder.join("state")).is_ok_and(|kept| kept == state);
    if let Some(folder) = store.get(&name).filter(same) {
        return Kernel::load(&folder, arch);
    }
    let locked = store.lock()?;
    store.say(&format!("unpacking {}", path.display()), None);
    let folder = locked.keep(&name, |folder| {
        write(&folder.join("state"), state.as_bytes())?;
        unpack(&locked, &path, arch, folder, None)
    })?;
    Kernel::load(&folder, arch)
}

/// Fills a folder of the store from the kernel in the file `path`.
///
/// `config` is its configuration; when there is none it is looked for near the file.
fn unpack(
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

/// Where the configuration of the kernel in `path` may be: as installed, as packaged, as built.
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

/// Whether a configuration has `option=y`.
fn built_in(config: &str, option: &str) -> bool {
    let value = |line: &str| {
        line.strip_prefix(option)?
            .strip_prefix('=')
            .map(|v| v == "y")
    };
    config.lines().find_map(value).unwrap_or(false)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn arm64_image(release: &str) -> Vec<u8> {
        let mut kernel = vec![0; 0x40];
        kernel[0x38..0x3c].copy_from_slice(b"ARM\x64");
        kernel.extend(format!("Linux version {release} (x)").bytes());
        kernel
    }

    #[test]
    fn a_file_that_is_built_anew_is_read_anew() {
        let folder = Folder::new();
        let store = Store::at(folder.path().join("cache")).unwrap();
        let path = folder.path().join("Image");
        let spec = path.to_str().unwrap();
        for release in ["7.2.1-a", "7.2.1-bc"] {
            fs::write(&path, arm64_image(release)).unwrap();
            let kernel = Kernel::find(&store, spec, Arch::Aarch64).unwrap();
            assert_eq!(kernel.release, release);
            assert_eq!(kernel.image, fs::canonicalize(&path).unwrap());
            assert!(!kernel.sched_ext);
            assert_eq!(kernel.config, None);
        }
    }

    #[test]
    fn the_configuration_decides_where_there_is_one() {
        let folder = Folder::new();
        let store = Store::at(folder.path().join("cache")).unwrap();
        let path = folder.path().join("vmlinuz-7.2.1");
        fs::write(&path, arm64_image("7.2.1")).unwrap();
        let config = "CONFIG_SCHED_CLASS_EXT=y\nCONFIG_TMPFS=y\nCONFIG_VIRTIO_PCI=m\n";
        fs::write(folder.path().join("config-7.2.1"), config).unwrap();
        let kernel = Kernel::find(&store, path.to_str().unwrap(), Arch::Aarch64).unwrap();
        assert!(kernel.sched_ext);
        let lacking: Vec<&str> = kernel.lacking().iter().map(|(option, _)| *option).collect();
        assert!(lacking.contains(&"CONFIG_VIRTIO_PCI"));
        assert!(!lacking.contains(&"CONFIG_TMPFS"));
    }

    #[test]
    fn a_file_for_another_machine_or_no_kernel_at_all_is_refused_by_name() {
        let folder = Folder::new();
        let store = Store::at(folder.path().join("cache")).unwrap();
        let path = folder.path().join("Image");
        fs::write(&path, arm64_image("7.2.1")).unwrap();
        let refused = |spec: &str| {
            let error = Kernel::find(&store, spec, Arch::X86_64).unwrap_err();
            error.to_string()
        };
        let message = refused(path.to_str().unwrap());
        assert!(
            message.contains("for aarch64 and the guest is x86_64"),
            "{message}"
        );
        fs::write(&path, "text").unwrap();
        assert!(refused(path.to_str().unwrap()).contains("Image: it is no kernel"));
        assert!(refused("./no-such-kernel").contains("no-such-kernel"));
        assert!(refused("seven").contains("seven"));
    }
}
