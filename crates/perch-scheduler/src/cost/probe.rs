// SPDX-License-Identifier: GPL-2.0-or-later
//! A pair of programs around a program, and what they found.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::{Error, Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramMut};

use crate::histogram::{BYTES, Histogram};

/// bpf/cost.bpf.c, compiled by build.rs.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cost.bpf.o"));

/// The map with a `struct cost_meter`: a histogram, the ends without a beginning, the switch.
const METER: &str = ".data.meter";

/// Both are around a program as long as this lives.
pub struct Probe {
    object: Object,
    _links: [Link; 2],
}

impl Probe {
    /// Measures nothing yet. `name` is the function of the program, in full.
    pub fn new(program: BorrowedFd<'_>, name: &str) -> Result<Probe, Error> {
        let names = ["cost_begin", "cost_end"];
        let object = load(&names, Some((program, name)))?;
        let links = [
            self::program(&object, names[0])?.attach()?,
            self::program(&object, names[1])?.attach()?,
        ];
        Ok(Probe { object, _links: links })
    }

    /// Begins anew.
    pub fn begin(&self) -> Result<(), Error> {
        self.switch(1)
    }

    /// The histogram of the runs since the beginning.
    pub fn end(&self) -> Result<Histogram, Error> {
        let found = value(&self.object, METER)?;
        self.switch(0)?;
        Ok(Histogram::new(&found))
    }

    fn switch(&self, on: u64) -> Result<(), Error> {
        let mut meter = vec![0; BYTES + 16];
        meter[BYTES + 8..].copy_from_slice(&on.to_ne_bytes());
        find(&self.object, METER)?.update(&0u32.to_ne_bytes(), &meter, MapFlags::ANY)
    }
}

/// The meter's object with these of its programs, around `target` if that is given.
pub fn load(names: &[&str], target: Option<(BorrowedFd<'_>, &str)>) -> Result<Object, Error> {
    let mut open = ObjectBuilder::default().name("cost")?.open_memory(OBJECT)?;
    for mut program in open.progs_mut() {
        let wanted = names.iter().any(|name| program.name() == *name);
        program.set_autoload(wanted);
        if let (true, Some((fd, name))) = (wanted, target) {
            program.set_attach_target(fd.as_raw_fd(), Some(name.to_string()))?;
        }
    }
    open.load()
}

/// A program of the meter's object.
pub fn program<'a>(object: &'a Object, name: &str) -> Result<ProgramMut<'a>, Error> {
    let found = object.progs_mut().find(|program| program.name() == name);
    found.ok_or_else(|| absent(name))
}

/// A variable of the meter's object that has a section of its own.
pub fn value(object: &Object, section: &str) -> Result<Vec<u8>, Error> {
    let found = find(object, section)?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
    found.ok_or_else(|| absent(section))
}

fn find<'a>(object: &'a Object, name: &str) -> Result<libbpf_rs::Map<'a>, Error> {
    let found = object.maps().find(|map| map.name() == name);
    found.ok_or_else(|| absent(name))
}

fn absent(what: &str) -> Error {
    io::Error::other(format!("the meter's object has no {what}")).into()
}
