// SPDX-License-Identifier: GPL-2.0-or-later
//! The names of a kernel's addresses.

/// The symbols of a running kernel, as `/proc/kallsyms` lists them.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// By address.
    symbols: Vec<(u64, String)>,
}

/// The first address that is the kernel's on x86-64.
const KERNEL: u64 = 1 << 63;

impl Symbols {
    /// Reads the lines of `/proc/kallsyms`. Lines without an address of the kernel are left out: CPUs'
    /// own variables have an offset there, and a reader without rights sees zeroes.
    pub fn parse(text: &str) -> Symbols {
        let mut symbols: Vec<(u64, String)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                let name = words.nth(1)?;
                (address >= KERNEL).then(|| (address, name.to_string()))
            })
            .collect();
        // Of several names of an address the first one stays.
        symbols.sort_by_key(|(address, _)| *address);
        symbols.dedup_by_key(|(address, _)| *address);
        Symbols { symbols }
    }

    /// Returns whether no symbol is known.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The symbol at or before an address of the kernel, and how far behind its begin the address is.
    /// `None` for an address of a user's, and for one before all symbols.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        if address < KERNEL {
            return None;
        }
        let after = self.symbols.partition_point(|(at, _)| *at <= address);
        let (at, name) = self.symbols.get(after.checked_sub(1)?)?;
        Some((name, address - at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_name_before_them() {
        let symbols = Symbols::parse(
            "ffffffff81000000 T _stext\nffffffff81000040 t second\nffffffff81000040 t alias\n\
             0000000000000000 A fixed_percpu_data\nffffffff81000100 D data\t[module]\nnonsense\n",
        );
        assert_eq!(symbols.find(0xffff_ffff_8100_0000), Some(("_stext", 0)));
        assert_eq!(symbols.find(0xffff_ffff_8100_003f), Some(("_stext", 0x3f)));
        assert_eq!(symbols.find(0xffff_ffff_8100_0044), Some(("second", 4)));
        assert_eq!(symbols.find(0xffff_ffff_9000_0000).unwrap().0, "data");
        assert_eq!(symbols.find(0xffff_8000_0000_0000), None);
        assert_eq!(symbols.find(0x401000), None);
        assert!(Symbols::parse("").is_empty());
    }
}
