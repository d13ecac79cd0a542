// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine and the kernel that a recording's header names, as a policy needs them.

use std::io::Read;
use std::sync::Arc;

use perch_machine::{Machine, MachineError};
use perch_policy::{Era, Mechanism, Mode, Modes, ParseError, Policy, Recording, Topology};

use crate::format::{Header, Reader};

/// The machine and the kernel of a recording.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The recorded machine.
    pub machine: Machine,
    /// The same machine, as the kernel sees it.
    pub topology: Arc<Topology>,
    /// The model of the recorded kernel.
    pub model: Policy,
}

/// A reason why no policy can be asked about a recording.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The header's machine is faulty.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The columns of the wake-ups belong to another machine.
    #[error(
        "header: its wake-ups are of {} CPUs and {} sets that share a cache, but its machine has {} \
         and {}: it was not written by perch record, or by one with another idea of this machine; \
         record again",
        rows[0], rows[1], machine[0], machine[1]
    )]
    Rows {
        /// CPUs and sets that share a cache, as the wake-ups have them.
        rows: [usize; 2],
        /// The same of the machine.
        machine: [usize; 2],
    },
    /// The header's era or its modes are faulty.
    #[error("header: {0}")]
    Kernel(#[from] ParseError),
    /// The kernel decided by something that no recording holds.
    #[error("header: {modes}, and a recording does not have what {mechanism} decides by")]
    Unrecorded {
        /// The kernel's modes.
        modes: Modes,
        /// The first mechanism that decides so.
        mechanism: Mechanism,
    },
}

impl Subject {
    /// Returns the subject of a recording with this header. The kernel is modelled by the rules of
    /// `era`, or of the era that the recorder found.
    ///
    /// # Errors
    /// The error says what is wrong with the header.
    pub fn new(header: &Header, era: Option<Era>) -> Result<Subject, SubjectError> {
        let machine = Machine::from_toml_str(&header.machine, "its machine")?;
        let topology = Topology::new(&machine);
        let known = [topology.nr_cpus(), topology.nr_shared()];
        let rows = header.rows.unwrap_or(known);
        if rows != known {
            return Err(SubjectError::Rows { rows, machine: known });
        }
        let era = match era {
            Some(era) => era,
            None => header.era.parse()?,
        };
        let modes = match header.modes.as_str() {
            "" => upstream(&header.kernel, era),
            modes => modes.parse()?,
        };
        if let Some(mechanism) = unrecorded(&modes) {
            return Err(SubjectError::Unrecorded { modes, mechanism });
        }
        Ok(Subject { machine, topology, model: Policy::new(era, modes) })
    }
}

/// A reason why a recorded kernel's modes cannot be changed so.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The text has another form.
    #[error("expected MECHANISM=MODE")]
    Form,
    /// The mechanism or its mode does not exist.
    #[error(transparent)]
    Mode(#[from] ParseError),
    /// The mechanism would decide by something that the recording of a kernel does not hold.
    #[error("a recording does not have what {0} decides by: {1}")]
    Unrecorded(Mechanism, &'static str),
}

/// Changes the mode of one mechanism; `text` is `MECHANISM=MODE`, as `perch replay --set` takes it.
///
/// # Errors
/// The error says what is wrong with the text; it does not repeat the text.
pub fn change_mode(modes: &mut Modes, text: &str) -> Result<(), ChangeError> {
    let (name, mode) = text.split_once('=').ok_or(ChangeError::Form)?;
    let mode: Mode = mode.parse()?;
    if let Some(mechanism) = Mechanism::named(name).filter(|_| mode != Mode::Off) {
        let (whose, lacks) = mechanism.recording();
        if whose != Recording::Kernel {
            return Err(ChangeError::Unrecorded(mechanism, lacks));
        }
    }
    Ok(modes.set(name, mode)?)
}

/// Checks that wake-ups of `era` can be replayed.
///
/// # Errors
/// The error says from which era on they can; it does not name `era`.
pub fn check_era(era: Era) -> Result<(), &'static str> {
    if era < Era::V5_5 {
        return Err("its wake-ups were decided by what no recording has; expected 5.5 or later");
    }
    Ok(())
}

/// Returns the first mechanism of these modes that is on and decides by something that no recording
/// holds.
pub fn unrecorded(modes: &Modes) -> Option<Mechanism> {
    let never = |m: &Mechanism| m.recording().0 == Recording::Never;
    let on = modes.iter().find(|(m, mode)| never(m) && *mode != Mode::Off);
    on.map(|(mechanism, _)| mechanism)
}

/// Says why no table can be made of a recording that has no wake-up of the fair class, and `others` of
/// other classes.
pub fn no_wake_ups(others: u64) -> String {
    let holds = match others {
        0 => "no wake-up".to_string(),
        others => format!("no wake-up of the fair class, and {others} of others"),
    };
    format!(
        "it holds {holds}: there is nothing to ask a policy about; record while the workload runs"
    )
}

impl<R: Read> Reader<R> {
    /// Says which parts of the recording, which users know as `path`, are missing. The caller has
    /// read everything before.
    pub fn missing(&self, path: &str) -> Vec<String> {
        let mut missing = Vec::new();
        if let Some(at) = self.cut_off() {
            missing.push(format!(
                "{path} ends at byte {at} before its end was written: what comes before it is counted"
            ));
        }
        let footer = self.footer();
        if let Some(n) = footer.map(|footer| footer.dropped).filter(|&n| n > 0) {
            missing.push(format!("{n} wake-ups were lost while {path} was recorded"));
        }
        let decisions = footer.and_then(|footer| footer.decisions.as_ref());
        if let Some(n) = decisions.map(|counts| counts.dropped).filter(|&n| n > 0) {
            missing.push(format!("{n} decisions about queues were lost while {path} was recorded"));
        }
        missing
    }
}

/// Returns the two numbers that a kernel's release begins with; `None` where it is not a number.
pub fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    number().zip(number())
}

/// Returns the modes of the mechanisms that a kernel has in its own wake-up path, by its release, or by
/// its era where the release is not a number. The table of mechanisms names the first release of each.
fn upstream(release: &str, era: Era) -> Modes {
    let version = version_of(release).unwrap_or(era.release());
    let mut modes = Modes::default();
    for mechanism in Mechanism::ALL {
        if mechanism.since().is_some_and(|since| version >= since) {
            modes[mechanism] = Mode::Upstream;
        }
    }
    modes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_what_they_were_released_with() {
        let has = |release: &str, era| upstream(release, era).to_string();
        assert_eq!(has("7.2.12+deb14", Era::V7_2), "cluster=upstream,capacity=upstream");
        assert_eq!(has("6.7.0", Era::V6_15), "cluster=upstream,capacity=upstream");
        assert_eq!(has("6.6.1", Era::V6_15), "capacity=upstream");
        assert_eq!(has("5.5.19", Era::V5_5), "off");
        assert_eq!(has("simulated", Era::V7_2), "cluster=upstream,capacity=upstream");
        assert_eq!(has("", Era::V6_5), "capacity=upstream");
        assert_eq!(has("", Era::V5_5), "off");
    }
}
