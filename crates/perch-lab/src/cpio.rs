// SPDX-License-Identifier: GPL-2.0-or-later
//! The archive that the kernel unpacks as its first file system: cpio in the form `newc`, as the
//! kernel's Documentation/driver-api/early-userspace/buffer-format.rst describes it.

use std::io::{self, Write};

/// What an entry is.
pub(crate) enum Kind<'a> {
    Folder,
    /// Points to this path.
    Link(&'a str),
    /// Has these bytes.
    File(&'a [u8]),
    /// A character device, major and minor.
    Device(u32, u32),
}

impl Kind<'_> {
    /// The file type's bits of a mode (inode(7)).
    fn bits(&self) -> u32 {
        match self {
            Kind::Folder => 0o040_000,
            Kind::Link(_) => 0o120_000,
            Kind::File(_) => 0o100_000,
            Kind::Device(..) => 0o020_000,
        }
    }
}

/// Writes an archive entry by entry. The same entries give the same bytes: everything belongs to
/// root and was last changed at the epoch.
pub(crate) struct Writer<W> {
    to: W,
    written: u64,
    entries: u32,
}

impl<W: Write> Writer<W> {
    /// An empty archive.
    pub fn new(to: W) -> Writer<W> {
        Writer {
            to,
            written: 0,
            entries: 0,
        }
    }

    /// Appends `path`, which is relative to the root; the folders above it have to come before.
    ///
    /// # Errors
    /// What the system said, and [`io::ErrorKind::FileTooLarge`] beyond 4 GiB, which the format
    /// cannot express.
    pub fn entry(&mut self, path: &str, permissions: u32, kind: &Kind) -> io::Result<()> {
        self.entries += 1;
        self.write_entry(path, self.entries, kind.bits() | permissions, kind)
    }

    /// Ends the archive and returns its size in bytes.
    pub fn finish(mut self) -> io::Result<u64> {
        self.write_entry("TRAILER!!!", 0, 0, &Kind::File(&[]))?;
        self.to.flush()?;
        Ok(self.written)
    }

    fn write_entry(&mut self, path: &str, number: u32, mode: u32, kind: &Kind) -> io::Result<()> {
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
        let links = if matches!(kind, Kind::Folder) { 2 } else { 1 };
        // With the zero byte that ends it.
        let name = path.len() as u32 + 1;
        let fields = [
            number, mode, 0, 0, links, 0, size, 0, 0, major, minor, name, 0,
        ];
        let mut header = String::from("070701");
        header.extend(fields.iter().map(|field| format!("{field:08x}")));
        self.write(header.as_bytes())?;
        self.write(path.as_bytes())?;
        self.write(&[0])?;
        self.pad()?;
        self.write(data)?;
        self.pad()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.to.write_all(bytes)
    }

    /// Headers and data begin at multiples of four.
    fn pad(&mut self) -> io::Result<()> {
        let missing = self.written.next_multiple_of(4) - self.written;
        self.write(&[0; 3][..missing as usize])
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
        writer
            .entry("dev/console", 0o600, &Kind::Device(5, 1))
            .unwrap();
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
