// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernels to boot: from a file, the store, the host's /boot or Debian's packages.

mod debian;
mod stored;
mod version;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::store::Store;

pub use stored::Kernel;
use stored::{NEEDED, built_in, shelf, unpack, write};
pub use version::{NEWEST_TESTED, OLDEST, numbers};
use version::{Wanted, dotted};

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
            // Without a network, perch takes an untested version rather than none.
            Err(error) => kept(store, &wanted.or_any(), arch)?.ok_or(error),
            fetched => fetched,
        }
    }
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
    let names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let releases = names.iter().filter_map(|name| name.strip_prefix("vmlinuz-"));
    // A distribution's kernel has most drivers as modules, which a guest cannot load.
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
    if !path.exists() {
        return Err(Error::Input(format!(
            "there is no file {}; give the path of a kernel's bzImage, vmlinux or Image, or a version \
             such as {}",
            path.display(),
            dotted(&NEWEST_TESTED)
        )));
    }
    let path = fs::canonicalize(path).map_err(Error::file("read the kernel", path))?;
    let metadata = fs::metadata(&path).map_err(Error::file("read the kernel", &path))?;
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let name = format!("files/{arch}-{:016x}", hasher.finish());
    // A kernel that was built anew has another time, size or place on the disk.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn arm64_image(release: &str) -> Vec<u8> {
        let mut kernel = vec![0; 0x40];
        kernel[0x38..0x3c].copy_from_slice(b"ARM\x64");
        kernel.extend(format!("Linux version {release} (x)").bytes());
        kernel
    }

    #[test]
    fn a_file_that_is_built_anew_is_read_anew() {
        let folder = tempfile::tempdir().unwrap();
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
        let folder = tempfile::tempdir().unwrap();
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

    /// As Debian's packages have them unpacked: boot/ beside lib/.
    #[test]
    fn drivers_that_are_modules_come_with_the_kernel_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("cache")).unwrap();
        let boot = folder.path().join("boot");
        let drivers = folder.path().join("lib/modules/6.1.0-x/kernel/drivers");
        for folder in [&boot, &drivers.join("virtio"), &drivers.join("char")] {
            fs::create_dir_all(folder).unwrap();
        }
        let modules = ["virtio/virtio_ring", "virtio/virtio", "char/virtio_console"];
        for module in modules {
            fs::write(drivers.join(format!("{module}.ko")), module).unwrap();
        }
        let path = boot.join("vmlinuz-6.1.0-x");
        fs::write(&path, arm64_image("6.1.0-x")).unwrap();
        let options = "CONFIG_BLK_DEV_INITRD=y\nCONFIG_DEVTMPFS=y\nCONFIG_TMPFS=y\n";
        let drivers = "CONFIG_VIRTIO_PCI=m\nCONFIG_VIRTIO_CONSOLE=m\n";
        fs::write(boot.join("config-6.1.0-x"), format!("{options}{drivers}")).unwrap();
        let kernel = Kernel::find(&store, path.to_str().unwrap(), Arch::Aarch64).unwrap();
        let read = |path: &PathBuf| fs::read_to_string(path).unwrap();
        let kept: Vec<String> = kernel.modules.iter().map(read).collect();
        assert_eq!(kept, modules);
        assert_eq!(kernel.lacking(), []);
    }

    #[test]
    fn a_file_for_another_machine_or_no_kernel_at_all_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("cache")).unwrap();
        let path = folder.path().join("Image");
        fs::write(&path, arm64_image("7.2.1")).unwrap();
        let refused = |spec: &str| {
            let error = Kernel::find(&store, spec, Arch::X86_64).unwrap_err();
            error.to_string()
        };
        let message = refused(path.to_str().unwrap());
        assert!(message.contains("for aarch64 and the guest is x86_64"), "{message}");
        fs::write(&path, "text").unwrap();
        assert!(refused(path.to_str().unwrap()).contains("Image: it is no kernel"));
        assert!(refused("./no-such-kernel").contains("no-such-kernel"));
        assert!(refused("seven").contains("seven"));
    }
}
