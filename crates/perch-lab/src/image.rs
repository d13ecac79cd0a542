// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernels as files: the parts of a bzImage or of an arm64 image, and the abilities of the kernel
//! in it.
//!
//! The layout of a bzImage is the kernel's Documentation/arch/x86/boot.rst, that of an arm64 image
//! its Documentation/arch/arm64/booting.rst.

use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};

use object::LittleEndian;
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::arch::Arch;

/// The note in which an x86 kernel says where to enter it without a boot loader (PVH):
/// XEN_ELFNOTE_PHYS32_ENTRY.
const PVH_NOTE: u32 = 18;

/// A kernel's image as QEMU boots it fastest.
pub(crate) struct Image {
    /// The machines that it is for.
    pub arch: Arch,
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// The bytes to give to QEMU; `None`: the file as it came.
    pub unpacked: Option<Vec<u8>>,
    /// True when the kernel's type information (BTF) has sched_ext; `None` when it has no type
    /// information.
    pub sched_ext: Option<bool>,
}

/// The fault of a file that should be a kernel, in words that follow the file's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    #[error("it is no kernel: neither bzImage nor vmlinux (x86) nor Image (arm64)")]
    NoKernel,
    #[error(
        "it is a vmlinux without a PVH entry, which QEMU cannot boot; build it with CONFIG_PVH=y \
         or give its bzImage"
    )]
    NoEntry,
    #[error("it is a vmlinux; for arm64 give arch/arm64/boot/Image")]
    Vmlinux,
    #[error("it is an ELF file for machine {0}, not a kernel")]
    Machine(u16),
    #[error("what is packed in it is no arm64 kernel")]
    Packed,
    #[error("it does not say which Linux version it is")]
    NoRelease,
    #[error("its ELF header is damaged ({0})")]
    Header(#[from] object::read::Error),
    #[error("it ends within byte {offset} and the {size} that should follow")]
    Short { offset: usize, size: usize },
    #[error("its payload is compressed in a way that perch does not know")]
    Compression,
    #[error("its payload is damaged ({0})")]
    Payload(String),
    #[error("its payload is to be unpacked with {0}, which failed: {1}; install it")]
    Unpacker(String, #[source] std::io::Error),
    #[error("{0} cannot unpack its payload ({1})")]
    Unpacked(String, ExitStatus),
}

/// Reads a kernel: a bzImage or vmlinux for x86, an Image, compressed or not, for arm64.
///
/// # Errors
/// The fault of the file.
pub(crate) fn read(file: &[u8]) -> Result<Image, ImageError> {
    if at(file, 0x202, b"HdrS") {
        return bzimage(file);
    }
    if at(file, 4, b"zimg") {
        // This is an EFI program that unpacks itself; QEMU does not know all of its compressions.
        let offset = word(file, 8)? as usize;
        let size = word(file, 12)? as usize;
        let payload = slice(file, offset, size)?;
        let unpacked = decompress(payload, payload)?;
        return arm64(&unpacked, Some(unpacked.clone()));
    }
    if file.starts_with(&[0x1f, 0x8b]) {
        let unpacked = decompress(file, file)?;
        return arm64(&unpacked, Some(unpacked.clone()));
    }
    if at(file, 0x38, b"ARM\x64") {
        return arm64(file, None);
    }
    if file.starts_with(b"\x7fELF") {
        let header = elf(file)?;
        return match header.e_machine.get(LittleEndian) {
            EM_X86_64 if has_pvh(header, file) => describe(Arch::X86_64, file, None),
            EM_X86_64 => Err(ImageError::NoEntry),
            EM_AARCH64 => Err(ImageError::Vmlinux),
            machine => Err(ImageError::Machine(machine)),
        };
    }
    Err(ImageError::NoKernel)
}

fn bzimage(file: &[u8]) -> Result<Image, ImageError> {
    let sectors = match slice(file, 0x1f1, 1)?[0] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let offset = (sectors + 1) * 512 + word(file, 0x248)? as usize;
    let payload = slice(file, offset, word(file, 0x24c)? as usize)?;
    // The payload's unpacked size is appended to it, except that gzip has that anyway.
    let body = &payload[..payload.len().saturating_sub(4)];
    let unpacked = decompress(payload, body)?;
    // A kernel without PVH boots through its own unpacker.
    let bootable = elf(&unpacked).is_ok_and(|header| has_pvh(header, &unpacked));
    let mut image = describe(Arch::X86_64, &unpacked, None)?;
    image.unpacked = bootable.then_some(unpacked);
    Ok(image)
}

fn arm64(kernel: &[u8], unpacked: Option<Vec<u8>>) -> Result<Image, ImageError> {
    if !at(kernel, 0x38, b"ARM\x64") {
        return Err(ImageError::Packed);
    }
    describe(Arch::Aarch64, kernel, unpacked)
}

fn describe(arch: Arch, kernel: &[u8], unpacked: Option<Vec<u8>>) -> Result<Image, ImageError> {
    let release = release(kernel).ok_or(ImageError::NoRelease)?;
    Ok(Image { arch, release, unpacked, sched_ext: sched_ext(kernel) })
}

/// The first word behind `Linux version `.
fn release(kernel: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"Linux version ";
    let mut from = 0;
    while let Some(found) = find(&kernel[from..], BEFORE) {
        from += found + BEFORE.len();
        let word = kernel[from..].split(|byte| *byte <= b' ').next()?;
        // The same words stand in format strings.
        if word.first().is_some_and(u8::is_ascii_digit) {
            return String::from_utf8(word.to_vec()).ok();
        }
    }
    None
}

/// Returns whether the type of a sched_ext scheduler is among the kernel's BTF strings; `None` when
/// the kernel has no BTF.
fn sched_ext(kernel: &[u8]) -> Option<bool> {
    // The magic, version and flags of BTF, and the length of its header.
    let btf = find(kernel, &[0x9f, 0xeb, 1, 0, 24, 0, 0, 0])?;
    Some(find(&kernel[btf..], b"\0sched_ext_ops\0").is_some())
}

fn elf(file: &[u8]) -> Result<&FileHeader64<LittleEndian>, ImageError> {
    Ok(FileHeader64::parse(file)?)
}

fn has_pvh(header: &FileHeader64<LittleEndian>, file: &[u8]) -> bool {
    let segments = header.program_headers(LittleEndian, file).unwrap_or_default();
    segments.iter().any(|segment| {
        let Ok(Some(mut notes)) = segment.notes(LittleEndian, file) else {
            return false;
        };
        std::iter::from_fn(|| notes.next().ok().flatten())
            .any(|note| note.name() == b"Xen" && note.n_type(LittleEndian) == PVH_NOTE)
    })
}

/// Unpacks `body`, which is `whole` without its last four bytes; gzip alone needs these four.
fn decompress(whole: &[u8], body: &[u8]) -> Result<Vec<u8>, ImageError> {
    match whole {
        [0x28, 0xb5, 0x2f, 0xfd, ..] if whole.len() != body.len() => {
            let size = word(whole, whole.len() - 4)?;
            zstd(&one_segment(body, size)?)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd(body),
        [0x1f, 0x8b, ..] => host(&["gzip", "-dc"], whole),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => host(&["xz", "-dc"], body),
        [b'B', b'Z', b'h', ..] => host(&["bzip2", "-dc"], body),
        [0x5d, 0, 0, ..] => host(&["xz", "--format=lzma", "-dc"], body),
        [0x02, 0x21, 0x4c, 0x18, ..] => host(&["lz4", "-dc"], body),
        [0x89, b'L', b'Z', b'O', ..] => host(&["lzop", "-dc"], body),
        // The kernel is not compressed.
        [0x7f, b'E', b'L', b'F', ..] => Ok(body.to_vec()),
        _ => Err(ImageError::Compression),
    }
}

/// The same zstd frame with a header that says how long it is in place of its window.
///
/// The kernel's build packs through a pipe, with a window of 128 MB whatever the size. That is more
/// than decoders allow. No distance in the frame exceeds the frame's own length, so that length is
/// a window large enough.
fn one_segment(frame: &[u8], size: u32) -> Result<Vec<u8>, ImageError> {
    const SINGLE_SEGMENT: u8 = 1 << 5;
    const DICTIONARY: u8 = 3;
    let descriptor = slice(frame, 4, 1)?[0];
    let size_given = descriptor >> 6 != 0;
    if descriptor & (SINGLE_SEGMENT | DICTIONARY) != 0 || size_given {
        return Ok(frame.to_vec());
    }
    let mut packed = frame[..4].to_vec();
    // The size has four bytes; the flag of a checksum stays.
    packed.push(descriptor | SINGLE_SEGMENT | 2 << 6);
    packed.extend(size.to_le_bytes());
    // The rest of the frame stands behind the descriptor and the window.
    packed.extend(frame.get(6..).unwrap_or_default());
    Ok(packed)
}

fn zstd(frame: &[u8]) -> Result<Vec<u8>, ImageError> {
    let damaged = |error: &dyn std::fmt::Display| ImageError::Payload(error.to_string());
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(frame).map_err(|e| damaged(&e))?;
    let mut unpacked = Vec::new();
    decoder.read_to_end(&mut unpacked).map_err(|e| damaged(&e))?;
    Ok(unpacked)
}

/// Unpacks with a program of the host, for compressions that few kernels have.
fn host(command: &[&str], packed: &[u8]) -> Result<Vec<u8>, ImageError> {
    let program = command[0];
    let failed = |error| ImageError::Unpacker(program.to_string(), error);
    let mut child = Command::new(program)
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut stdin = child.stdin.take().expect("it was asked for");
    let output = std::thread::scope(|scope| {
        // A thread writes, because a write to a full pipe waits until somebody reads the output. A
        // program that has seen the end of its data closes the pipe; the bytes behind that end are
        // not part of them.
        scope.spawn(move || drop(stdin.write_all(packed)));
        child.wait_with_output()
    });
    let output = output.map_err(failed)?;
    // gzip ends with exit code 2 to warn of bytes behind its data.
    if output.stdout.is_empty() {
        return Err(ImageError::Unpacked(program.to_string(), output.status));
    }
    Ok(output.stdout)
}

fn at(file: &[u8], offset: usize, magic: &[u8]) -> bool {
    file.get(offset..).is_some_and(|rest| rest.starts_with(magic))
}

fn slice(file: &[u8], offset: usize, size: usize) -> Result<&[u8], ImageError> {
    let end = offset.checked_add(size);
    end.and_then(|end| file.get(offset..end)).ok_or(ImageError::Short { offset, size })
}

fn word(file: &[u8], offset: usize) -> Result<u32, ImageError> {
    let bytes = slice(file, offset, 4)?;
    Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// The first place of `needle`.
fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let (first, rest) = needle.split_first()?;
    let mut from = 0;
    loop {
        from += haystack.get(from..)?.iter().position(|byte| byte == first)?;
        if haystack[from + 1..].starts_with(rest) {
            return Some(from);
        }
        from += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of one raw block with a window and no size, as a pipe makes it.
    fn frame(content: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3];
        let last_raw_block = 1 | (content.len() as u32) << 3;
        frame.extend(&last_raw_block.to_le_bytes()[..3]);
        frame.extend(content);
        frame
    }

    /// A bzImage that has only the fields that perch reads.
    fn bzimage_of(kernel: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 1024];
        file[0x1f1] = 1;
        file[0x202..0x206].copy_from_slice(b"HdrS");
        let mut payload = frame(kernel);
        payload.extend((kernel.len() as u32).to_le_bytes());
        file[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        file.extend(payload);
        file
    }

    #[test]
    fn the_payload_of_a_bzimage_with_the_largest_window() {
        let kernel = b"Linux version %s\0Linux version 6.18.15+deb13 (gcc)";
        let image = read(&bzimage_of(kernel)).unwrap();
        assert_eq!(image.release, "6.18.15+deb13");
        assert_eq!(image.arch, Arch::X86_64);
        // The kernel is no ELF file with a PVH entry, so it boots as it came.
        assert!(image.unpacked.is_none());
        assert_eq!(image.sched_ext, None);
    }

    #[test]
    fn sched_ext_is_looked_for_in_the_types_only() {
        let mut kernel = b"\0sched_ext_ops\0 Linux version 1 ".to_vec();
        kernel.extend([0x9f, 0xeb, 1, 0, 24, 0, 0, 0]);
        assert_eq!(sched_ext(&kernel), Some(false));
        kernel.extend(b"types\0sched_ext_ops\0more");
        assert_eq!(sched_ext(&kernel), Some(true));
    }

    #[test]
    fn an_arm64_image() {
        let mut kernel = vec![0; 0x40];
        kernel[0x38..0x3c].copy_from_slice(b"ARM\x64");
        kernel.extend(b"Linux version 7.2.1-arm64 (x)");
        let image = read(&kernel).unwrap();
        assert_eq!((image.arch, image.release.as_str()), (Arch::Aarch64, "7.2.1-arm64"));
    }

    #[test]
    fn what_is_no_kernel_or_only_half_of_one_is_refused() {
        let no_kernel = read(b"#!/bin/sh\n").err().unwrap();
        assert!(matches!(no_kernel, ImageError::NoKernel), "{no_kernel}");
        let whole = bzimage_of(b"Linux version 6.18.15 ");
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} bytes");
        }
    }
}
