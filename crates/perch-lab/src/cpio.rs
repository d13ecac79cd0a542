// SPDX-License-Identifier: GPL-2.0-or-later
//! The archive that the kernel unpacks as its first file system: cpio in the form `newc`, as the
//! kernel's Documentation/driver-api/early-userspace/buffer-format.rst describes it. The crate `cpio`
//! writes the headers; this module says what the entries of a guest's first file system are.

use std::io::{self, Write};

use cpio::newc::{Builder, ModeFileType, trailer};

/// The kinds of entry.
pub(crate) enum Kind<'a> {
    Folder,
    /// A symbolic link to this path.
    Link(&'a str),
    /// A file with these bytes.
    File(&'a [u8]),
    /// A character device, major and minor.
    Device(u32, u32),
}

impl Kind<'_> {
    fn file_type(&self) -> ModeFileType {
        match self {
            Kind::Folder => ModeFileType::Directory,
            Kind::Link(_) => ModeFileType::Symlink,
            Kind::File(_) => ModeFileType::Regular,
            Kind::Device(..) => ModeFileType::Char,
        }
    }
}

/// Writes an archive entry by entry. The same entries give the same bytes: everything belongs to
/// root and was last changed at the epoch.
pub(crate) struct Writer<W> {
    to: Counted<W>,
    entries: u32,
}

impl<W: Write> Writer<W> {
    /// An empty archive.
    pub fn new(to: W) -> Writer<W> {
        let to = Counted { to, written: 0 };
        Writer { to, entries: 0 }
    }

    /// Appends `path`, which is relative to the root; the folders above it have to come before.
    ///
    /// # Errors
    /// Those of the writer, and [`io::ErrorKind::FileTooLarge`] beyond 4 GiB, which the format
    /// cannot express.
    pub fn entry(&mut self, path: &str, permissions: u32, kind: &Kind) -> io::Result<()> {
        self.entries += 1;
        let data = match kind {
            Kind::Folder | Kind::Device(..) => &[],
            Kind::Link(target) => target.as_bytes(),
            Kind::File(bytes) => bytes,
        };
        let size = u32::try_from(data.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let (major, minor) = match kind {
            Kind::Device(major, minor) => (*major, *minor),
            _ => (0, 0),
        };
        let entry = Builder::new(path)
            .ino(self.entries)
            .mode(permissions)
            .set_mode_file_type(kind.file_type())
            .nlink(if matches!(kind, Kind::Folder) { 2 } else { 1 })
            .rdev_major(major)
            .rdev_minor(minor);
        let mut entry = entry.write(&mut self.to, size);
        entry.write_all(data)?;
        entry.finish().map(drop)
    }

    /// Ends the archive and returns its size in bytes.
    pub fn finish(mut self) -> io::Result<u64> {
        trailer(&mut self.to)?;
        self.to.flush()?;
        Ok(self.to.written)
    }
}

/// A writer that counts its bytes.
struct Counted<W> {
    to: W,
    written: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_names_and_data_are_where_the_kernel_looks() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.entry("dev", 0o755, &Kind::Folder).unwrap();
        writer.entry("dev/console", 0o600, &Kind::Device(5, 1)).unwrap();
        writer.entry("init", 0o755, &Kind::File(b"hello")).unwrap();
        let size = writer.finish().unwrap();
        assert_eq!(size, bytes.len() as u64);
        let field = |at: usize, index: usize| {
            let start = at + 6 + index * 8;
            let text = std::str::from_utf8(&bytes[start..start + 8]).unwrap();
            u32::from_str_radix(text, 16).unwrap()
        };
        // "dev\0" ends at 114, its padding at 116.
        assert!(bytes.starts_with(b"070701"));
        assert_eq!(field(0, 1), 0o040_755);
        let console = 116;
        assert_eq!(&bytes[console..console + 6], b"070701");
        assert_eq!(&bytes[console + 110..console + 122], b"dev/console\0");
        assert_eq!(field(console, 1), 0o020_600);
        assert_eq!((field(console, 9), field(console, 10)), (5, 1));
        let init = console + 110 + 12 + 2;
        assert_eq!(field(init, 6), 5);
        assert_eq!(field(init, 11), 5);
        // 110 and "init\0" are 115, so the data begins at 116.
        assert_eq!(&bytes[init + 116..init + 121], b"hello");
        assert_eq!(&bytes[init + 124 + 110..init + 124 + 121], b"TRAILER!!!\0");
        assert_eq!(size % 4, 0);
    }
}
