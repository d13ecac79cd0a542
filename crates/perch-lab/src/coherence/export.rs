// SPDX-License-Identifier: GPL-2.0-or-later
//! The functions that a QEMU exports.

use std::path::Path;

use object::{Object, ObjectSymbol};

use crate::error::{Error, Result};

/// Returns those of `names` that the program at `path` does not export to what it loads.
///
/// # Errors
/// [`Error::File`] when the program can't be read, [`Error::Input`] when it is no ELF file.
pub fn missing<'n>(path: &Path, names: &[&'n str]) -> Result<Vec<&'n str>> {
    let bytes = std::fs::read(path).map_err(Error::file("read", path))?;
    let file = object::File::parse(&*bytes)
        .map_err(|error| Error::Input(format!("{}: {error}", path.display())))?;
    let exported: Vec<&str> = file
        .dynamic_symbols()
        // A variable of each thread is no definition to `is_definition`.
        .filter(|symbol| !symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    let is_missing = |name: &&&str| !exported.contains(*name);
    Ok(names.iter().filter(is_missing).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_exports_its_functions_and_no_others() {
        // The C library that this test itself runs with.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let libc = libc.into_iter().find(|path| path.contains("libc.so"));
        let Some(libc) = libc else {
            panic!("no C library in /proc/self/maps");
        };
        let names = ["malloc", "tcg_cpu_init_cflags", "free"];
        assert_eq!(missing(libc.as_ref(), &names).unwrap(), ["tcg_cpu_init_cflags"]);
        assert!(missing("/etc/hostname".as_ref(), &names).is_err());
    }
}
