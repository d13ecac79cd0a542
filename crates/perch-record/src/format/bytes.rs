// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers in few bytes: seven bits a byte, the lowest first; a difference has its sign in the
//! lowest bit, so that small differences of either sign are short.

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns a difference as a number.
fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// Returns the difference that a number stands for.
fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Bytes that a reader takes from the front.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// Reads the next number; returns `None` when the bytes end in it, or it has more than 64 bits.
    #[inline(always)]
    pub fn take(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        if first < 0x80 {
            self.0 = rest;
            return Some(first.into());
        }
        // Most differences of loads have two bytes.
        if let Some((&second, rest)) = rest.split_first()
            && second < 0x80
        {
            self.0 = rest;
            return Some(u64::from(first & 0x7f) | u64::from(second) << 7);
        }
        self.take_long()
    }

    #[inline(never)]
    fn take_long(&mut self) -> Option<u64> {
        let mut value = 0;
        for (i, &byte) in self.0.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if i == 9 && bits > 1 {
                return None;
            }
            value |= bits << (7 * i);
            if byte < 0x80 {
                self.0 = &self.0[i + 1..];
                return Some(value);
            }
        }
        None
    }

    /// Reads the next number, which must be below `limit`.
    #[inline]
    pub fn below(&mut self, limit: usize) -> Option<usize> {
        self.take().filter(|&v| v < limit as u64).map(|v| v as usize)
    }
}

/// Appends the differences between two rows: which columns differ, then by how much.
pub fn put_row(out: &mut Vec<u8>, before: &[u64], now: &[u64]) {
    let columns = before.iter().zip(now).enumerate();
    let changed = columns.fold(0, |mask, (i, (a, b))| mask | u64::from(a != b) << i);
    put(out, changed);
    for (a, b) in before.iter().zip(now).filter(|(a, b)| a != b) {
        put(out, zigzag(b.wrapping_sub(*a) as i64));
    }
}

/// Reads the differences that [`put_row`] wrote: those of `columns` of the file, where `known[i]`
/// is the place of the `i`-th column in `row`. A column that this version does not know is skipped.
#[inline]
pub fn take_row(bytes: &mut Bytes, known: &[Option<u8>], row: &mut [u64]) -> Option<()> {
    let mut changed = bytes.take()?;
    let beyond = u32::try_from(known.len()).ok().and_then(|n| changed.checked_shr(n));
    if beyond.unwrap_or(0) != 0 {
        return None;
    }
    while changed != 0 {
        let column = changed.trailing_zeros() as usize;
        changed &= changed - 1;
        let difference = unzigzag(bytes.take()?);
        if let Some(at) = known[column] {
            let value = &mut row[usize::from(at)];
            *value = value.wrapping_add_signed(difference);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(values: Vec<u64>) {
            let mut out = Vec::new();
            values.iter().for_each(|&v| put(&mut out, v));
            let mut bytes = Bytes(&out);
            for &value in &values {
                prop_assert_eq!(bytes.take(), Some(value));
            }
            prop_assert_eq!(bytes.take(), None);
        }

        #[test]
        fn rows_come_back(before: [u64; 9], now: [u64; 9]) {
            let mut out = Vec::new();
            put_row(&mut out, &before, &now);
            let known: Vec<Option<u8>> = (0..9).map(Some).collect();
            let mut row = before;
            prop_assert_eq!(take_row(&mut Bytes(&out), &known, &mut row), Some(()));
            prop_assert_eq!(row, now);
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_none() {
        let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Bytes(&longest).take(), Some(u64::MAX));
        let beyond = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Bytes(&beyond).take(), None);
    }
}
