// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording that is open for reading, with everything that replay and advise both need of it.

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Mechanism, Mode, Modes, Policy, Topology};
use perch_record::format::{Header, Reader};

use crate::meter::{Meter, Metered, Unit};
use crate::output::{Failure, say};

/// A recording whose header was read.
pub struct Recording {
    /// The path, as the user named it.
    pub path: String,
    /// The wake-ups.
    pub reader: Reader<Box<dyn Read>>,
    /// The recording's header.
    pub header: Header,
    /// The recorded machine.
    pub machine: Machine,
    /// The same machine, as the kernel sees it.
    pub topology: Arc<Topology>,
    /// The model of the recorded kernel.
    pub model: Policy,
}

/// The modes of the mechanisms that a kernel has in its own wake-up path, by its release, or by its
/// era where the release is not a number. The table of mechanisms names the first release of each.
fn upstream(release: &str, era: Era) -> Modes {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let version = number().zip(number()).unwrap_or(era.release());
    let mut modes = Modes::default();
    for mechanism in Mechanism::ALL {
        if mechanism.since().is_some_and(|since| version >= since) {
            modes[mechanism] = Mode::Upstream;
        }
    }
    modes
}

/// The first mechanism of these modes that is on and decides by something that no recording holds.
pub fn unrecorded(modes: &Modes) -> Option<Mechanism> {
    let never = |m: &Mechanism| m.recording().0 == perch_policy::Recording::Never;
    let on = modes
        .iter()
        .find(|(m, mode)| never(m) && *mode != Mode::Off);
    on.map(|(mechanism, _)| mechanism)
}

impl Recording {
    /// Opens a recording (`-` is stdin); its kernel is modelled by the rules of `era`, or of the
    /// era that the recorder found. A long reading shows its progress on a terminal, unless
    /// `quiet`.
    pub fn open(file: &Path, era: Option<Era>, quiet: bool) -> Result<Recording, Failure> {
        if let Some(era) = era.filter(|&era| era < Era::V5_5) {
            return Err(Failure::input(format!(
                "--era {era}: its wake-ups were decided by what no recording has; expected 5.5 or \
                 later"
            )));
        }
        let path = match file.as_os_str() == "-" {
            true => "stdin".to_string(),
            false => file.display().to_string(),
        };
        let wrong = |error: String| Failure::input(format!("{path}: {error}"));
        let meter = Meter::new(&path, Unit::Bytes, quiet);
        let input: Box<dyn Read> = match file.as_os_str() == "-" {
            true => Box::new(BufReader::new(Metered::new(std::io::stdin(), meter, 0))),
            false => {
                let file = perch_file::open(file).map_err(|e| Failure::input(e.to_string()))?;
                let bytes = file.metadata().map_or(0, |found| found.len());
                Box::new(BufReader::with_capacity(
                    1 << 16,
                    Metered::new(file, meter, bytes),
                ))
            }
        };
        let reader = Reader::new(input).map_err(|e| wrong(e.to_string()))?;
        let header = reader.header().clone();
        let machine = Machine::from_toml_str(&header.machine, "its machine")
            .map_err(|e| wrong(e.to_string()))?;
        let topology = Topology::new(&machine);
        let rows = header
            .rows
            .unwrap_or([topology.nr_cpus(), topology.nr_shared()]);
        if rows != [topology.nr_cpus(), topology.nr_shared()] {
            return Err(wrong(format!(
                "header: its wake-ups are of {} CPUs and {} sets that share a cache, but its \
                 machine has {} and {}: it was not written by perch record, or by one with \
                 another idea of this machine; record again",
                rows[0],
                rows[1],
                topology.nr_cpus(),
                topology.nr_shared()
            )));
        }
        let era = match era {
            Some(era) => era,
            None => header
                .era
                .parse()
                .map_err(|e| wrong(format!("header: {e}")))?,
        };
        let modes = match header.modes.as_str() {
            "" => upstream(&header.kernel, era),
            modes => modes.parse().map_err(|e| wrong(format!("header: {e}")))?,
        };
        if let Some(mechanism) = unrecorded(&modes) {
            return Err(wrong(format!(
                "header: {modes}, and a recording does not have what {mechanism} decides by"
            )));
        }
        let model = Policy::new(era, modes);
        Ok(Recording {
            path,
            reader,
            header,
            machine,
            topology,
            model,
        })
    }

    /// The failure of a faulty file.
    pub fn wrong(&self, error: impl std::fmt::Display) -> Failure {
        Failure::input(format!("{}: {error}", self.path))
    }

    /// The failure of a recording without wake-ups, of which no table can be made.
    pub fn no_wake_ups(&self, others: u64) -> Failure {
        let holds = match others {
            0 => "no wake-up".to_string(),
            others => format!("no wake-up of the fair class, and {others} of others"),
        };
        self.wrong(format_args!(
            "it holds {holds}: there is nothing to ask a policy about; record while the workload \
             runs"
        ))
    }

    /// Says on stderr which parts of the recording are missing. The caller has read everything
    /// before.
    pub fn warn(&self) {
        let path = &self.path;
        match (self.reader.cut_off(), self.reader.footer()) {
            (Some(at), _) => say(format_args!(
                "{path} ends at byte {at} before its end was written: what comes before it is \
                 counted"
            )),
            (None, Some(footer)) if footer.dropped > 0 => say(format_args!(
                "{} wake-ups were lost while {path} was recorded",
                footer.dropped
            )),
            _ => {}
        }
        let footer = self.reader.footer();
        let dropped = footer.and_then(|footer| footer.decisions.as_ref());
        if let Some(n) = dropped.map(|counts| counts.dropped).filter(|&n| n > 0) {
            say(format_args!(
                "{n} decisions about queues were lost while {path} was recorded"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_what_they_were_released_with() {
        let has = |release: &str, era| upstream(release, era).to_string();
        let of = |cluster: &str, capacity: &str| {
            format!("cluster={cluster},capacity={capacity},cache=off,overload=off,steer=off")
        };
        assert_eq!(has("7.2.12+deb14", Era::V7_2), of("upstream", "upstream"));
        assert_eq!(has("6.7.0", Era::V6_15), of("upstream", "upstream"));
        assert_eq!(has("6.6.1", Era::V6_15), of("off", "upstream"));
        assert_eq!(has("5.5.19", Era::V5_5), of("off", "off"));
        assert_eq!(has("simulated", Era::V7_2), of("upstream", "upstream"));
        assert_eq!(has("", Era::V6_5), of("off", "upstream"));
        assert_eq!(has("", Era::V5_5), of("off", "off"));
    }
}
