// SPDX-License-Identifier: GPL-2.0-or-later
//! The counters of overloaded CPUs in the arena.

use perch_policy::{Image, Layout, Mode, Modes, Overload, Topology};

use super::array::Array;
use crate::band::Band;
use crate::interface;

/// `PERCH_OVERLOAD_LINE`.
const LINE: usize = 128;

/// Their places in an image; without a band there are none.
pub(super) struct Reserved {
    layout: Layout,
    exact: bool,
    homes: Vec<u32>,
    header: Array<interface::Overload>,
    table: Array<u64>,
    counters: Vec<u64>,
    marks: Array<u64>,
    /// The image's address.
    base: u64,
}

impl Reserved {
    pub fn new(
        image: &mut Image,
        topology: &Topology,
        possible: usize,
        modes: Modes,
        bands: &[Band],
    ) -> Reserved {
        let mut reserved = Reserved {
            layout: modes.overload_layout(),
            exact: modes.overload == Mode::Perch,
            homes: vec![0; topology.nr_cpus()],
            header: Array::none(),
            table: Array::none(),
            counters: Vec::new(),
            marks: Array::none(),
            base: image.base(),
        };
        if bands.is_empty() {
            return reserved;
        }
        // The policy's own, which knows which counter is whose, without a single one raised.
        let layout = reserved.layout;
        let native = Overload::new(layout, reserved.exact, topology).expect("memory for counters");
        for (cpu, home) in reserved.homes.iter_mut().enumerate() {
            *home = native.home(cpu) as u32;
        }
        let step = if layout.padded() { LINE } else { size_of::<u64>() };
        let block = image.reserve((native.counters() + 1) * step);
        let first = block.next_multiple_of(step as u64);
        reserved.counters =
            (0..native.counters()).map(|number| first + (number * step) as u64).collect();
        reserved.header = Array::reserve(image, 1);
        reserved.table = Array::reserve(image, native.counters());
        reserved.marks = Array::reserve(image, possible.div_ceil(64));
        reserved
    }

    /// Writes what does not begin as 0.
    pub fn fill(&self, image: &mut [u8]) {
        if self.counters.is_empty() {
            return;
        }
        for (number, counter) in self.counters.iter().enumerate() {
            self.table.put(image, number, counter);
        }
        let header = interface::Overload {
            counters: self.table.at(),
            nr: self.counters.len() as u32,
            layout: self.layout as u32,
            exact: self.exact.into(),
            pad: 0,
        };
        self.header.put(image, 0, &header);
    }

    /// The counter that the CPU reads first.
    pub fn home(&self, cpu: usize) -> u32 {
        self.homes[cpu]
    }

    /// Where `struct perch_overload` is.
    pub fn header(&self) -> u64 {
        self.header.at()
    }

    /// Where the mask of overloaded CPUs is.
    pub fn marks(&self) -> u64 {
        self.marks.at()
    }

    pub fn mark_places(&self) -> Vec<usize> {
        let words = 0..self.marks.len();
        words.map(|word| self.marks.offset(word)).collect()
    }

    pub fn counter_places(&self) -> Vec<usize> {
        self.counters.iter().map(|&at| (at - self.base) as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Plan;
    use crate::interface::ARENA_BASE;
    use crate::settings::Settings;

    /// The counters' addresses for 128 CPUs of four nodes and sixteen LLCs.
    fn counters(modes: &str) -> Vec<u64> {
        let machine = Machine::regular("nodes", 2, 2, 4, 1, 8, 1);
        let topology = Topology::new(&machine.unwrap());
        let band: Band = "nice=-20,priority=1".parse().unwrap();
        let mut image = Image::new(ARENA_BASE);
        let modes = modes.parse().unwrap();
        Reserved::new(&mut image, &topology, 128, modes, &[band]).counters
    }

    use perch_machine::Machine;

    #[test]
    fn counters_lie_as_the_mode_has_it() {
        assert_eq!(counters("overload=off").len(), 1);
        let posted = counters("overload=posted");
        assert_eq!(posted.len(), 4);
        assert!(posted.windows(2).all(|two| two[1] - two[0] == 8));
        for (modes, nr) in
            [("overload=perch", 4), ("overload=perch,overload-layout=llc-padded", 16)]
        {
            let padded = counters(modes);
            assert_eq!(padded.len(), nr);
            assert!(padded.iter().all(|at| at % LINE as u64 == 0), "{padded:x?}");
            assert!(padded.windows(2).all(|two| two[1] - two[0] == LINE as u64));
        }
    }

    #[test]
    fn without_a_band_nothing_is_laid_out() {
        let machine = perch_machine::resolve("x5570").unwrap();
        let topology = Topology::new(&machine);
        let plan = |settings: &Settings| {
            Plan::new(&machine, &topology, 8, Modes::default(), settings).unwrap()
        };
        let mut settings = Settings::default();
        let without = plan(&settings);
        assert!(without.ops() == "perch_ops" && without.places().overload.is_empty());
        let band = "nice=-20,priority=1".parse().unwrap();
        settings.add_band(band).unwrap();
        let with = plan(&settings);
        assert!(with.ops() == "perch_band_ops" && with.places().overload.len() == 1);
        assert!(with.image().len() > without.image().len());
    }
}
