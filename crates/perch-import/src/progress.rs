// SPDX-License-Identifier: GPL-2.0-or-later
//! The progress of reading.

use std::io::{Read, Result, Seek, SeekFrom};

/// A function that is told the number of bytes that were read, and the number of all; the latter is
/// 0 where it is not known.
pub type Tell<'a> = &'a dyn Fn(u64, u64);

/// An input, and the function that is told of the progress.
pub(crate) struct Told<'a, R> {
    inner: R,
    at: u64,
    total: u64,
    tell: Tell<'a>,
}

impl<'a, R> Told<'a, R> {
    pub(crate) fn new(inner: R, total: u64, tell: Tell<'a>) -> Told<'a, R> {
        Told { inner, at: 0, total, tell }
    }
}

impl<R: Read> Read for Told<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.inner.read(buffer)?;
        self.at += read as u64;
        (self.tell)(self.at, self.total);
        Ok(read)
    }
}

impl<R: Seek> Seek for Told<'_, R> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.at = self.inner.seek(to)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::io::Cursor;

    #[test]
    fn what_is_read_is_told_as_where_it_is_in_the_file() {
        let told = RefCell::new(Vec::new());
        let tell = |at, total| told.borrow_mut().push((at, total));
        let mut from = Told::new(Cursor::new(vec![7; 100]), 100, &tell);
        from.read_exact(&mut [0; 10]).unwrap();
        from.seek(SeekFrom::Start(60)).unwrap();
        assert_eq!(from.read_to_end(&mut Vec::new()).unwrap(), 40);
        drop(from);
        let told = told.into_inner();
        assert_eq!((told[0], told.last()), ((10, 100), Some(&(100, 100))));
        assert!(told.is_sorted());
    }
}
