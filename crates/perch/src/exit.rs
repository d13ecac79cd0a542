// SPDX-License-Identifier: GPL-2.0-or-later
//! Exit codes: what a script or a service manager can tell from a command's end.

#[cfg(feature = "record")]
use perch_record::RecordError;
#[cfg(feature = "record")]
use perch_scheduler::RefusedError;
#[cfg(feature = "live")]
use perch_scheduler::{SchedulerError, UnableError};

#[cfg(feature = "live")]
use crate::output::Failure;

/// The work failed; trying again may help.
pub const FAILED: u8 = 1;
/// The arguments, the configuration or a file make no sense.
pub const INPUT: u8 = 2;
/// A gate failed: the work is done, and its result is not as somebody wants it.
pub const GATE: u8 = 3;
/// Neither this kernel nor this user can do it: trying again does not help.
#[cfg(feature = "live")]
pub const UNABLE: u8 = 3;
/// Somebody unloaded perch by hand, and would not want it back.
#[cfg(feature = "live")]
pub const UNLOADED: u8 = 4;
/// A condition of `--revert-if` ended the trial.
#[cfg(feature = "live")]
pub const REVERTED: u8 = 5;

/// The end of the help of the commands that load programs into the kernel.
#[cfg(feature = "live")]
pub const HELP: &str = "\
Exit codes of perch run, record and trial:
  0  done, or ended by Ctrl-C; with --check: perch run would load it
  1  it failed, another scheduler is loaded, the kernel ejected perch, or the command that was
     recorded failed: trying again may help
  2  the arguments or the configuration make no sense; nothing was loaded
  3  this kernel, this machine or this user cannot do it: trying again does not help
  4  somebody unloaded perch by hand: SysRq-S, or another program
  5  a condition of --revert-if ended the trial";

#[cfg(feature = "live")]
impl From<UnableError> for Failure {
    fn from(error: UnableError) -> Failure {
        SchedulerError::from(error).into()
    }
}

#[cfg(feature = "live")]
impl From<SchedulerError> for Failure {
    fn from(error: SchedulerError) -> Failure {
        let code = if error.is_input() {
            INPUT
        } else if error.lasts() {
            UNABLE
        } else if error.is_by_hand() {
            UNLOADED
        } else {
            FAILED
        };
        Failure { code, message: error.to_string() }
    }
}

#[cfg(feature = "record")]
impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Failure {
        match error {
            RecordError::Kernel { what, source } => {
                SchedulerError::from(RefusedError::heard(&what, source)).into()
            }
            RecordError::Cpus(_) | RecordError::NoFunction(_) => {
                Failure { code: UNABLE, message: error.to_string() }
            }
            other => Failure::run(other.to_string()),
        }
    }
}

#[cfg(all(test, feature = "record"))]
mod tests {
    use std::path::PathBuf;

    use perch_scheduler::Purpose;
    use perch_scheduler::exit::{BY_SYSRQ, Ended, STALL};

    use super::*;

    fn code(error: impl Into<Failure>) -> u8 {
        error.into().code
    }

    fn ended(kind: i32) -> SchedulerError {
        let (reason, message) = (String::new(), String::new());
        SchedulerError::Ended(Ended { kind, code: 0, reason, message })
    }

    #[test]
    fn errors_of_run_record_and_trial_have_the_codes_of_the_help() {
        let rights = UnableError::NoRights(Purpose::Recording);
        let taken = UnableError::Taken("bpfland".to_string());
        let write = UnableError::Write {
            path: PathBuf::from("log"),
            source: std::io::ErrorKind::StorageFull.into(),
        };
        let settings = perch_plan::Settings::default().set_all(&["slice_us=1".to_string()]);
        let codes = [
            code(ended(STALL)),
            code(taken),
            code(write),
            code(RecordError::Write(std::io::ErrorKind::StorageFull.into())),
            code(SchedulerError::from(settings.unwrap_err())),
            code(rights),
            code(RecordError::Cpus(1 << 20)),
            code(ended(BY_SYSRQ)),
        ];
        assert_eq!(codes, [1, 1, 1, 1, 2, 3, 3, 4]);
    }

    #[test]
    fn kernels_refusal_of_the_recorder_is_one_sentence() {
        let source = std::io::Error::from_raw_os_error(libc::EPERM).into();
        let what = "the recorder's programs".to_string();
        let failure = Failure::from(RecordError::Kernel { what, source });
        assert_eq!(failure.code, UNABLE);
        assert!(failure.message.contains("container"), "{}", failure.message);
        assert_eq!(failure.message.lines().count(), 1, "{}", failure.message);
    }
}
