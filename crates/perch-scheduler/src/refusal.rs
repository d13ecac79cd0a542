// SPDX-License-Identifier: GPL-2.0-or-later
//! The reason why the kernel took no program, in words: the verifier's last lines where it was the verifier,
//! else libbpf's.

use std::fmt;

use libbpf_rs::{Error, ErrorKind};

use crate::program::{hear, heard};

/// The reason why the kernel refused a program, or why there was none to give it.
#[derive(Debug, thiserror::Error)]
pub enum RefusedError {
    /// libbpf or the kernel said no.
    #[error("{}", refusal_of(what, source, heard))]
    Load {
        /// The step that the kernel refused.
        what: String,
        /// The error that libbpf returned.
        source: Error,
        /// All that libbpf and the verifier said meanwhile.
        heard: String,
    },
    /// The kernel has the program and does not let it schedule.
    #[error("{}; the kernel's log (dmesg) may say why", refusal_of(what, source, heard))]
    Attach {
        /// The step that the kernel refused.
        what: String,
        /// The error that libbpf returned.
        source: Error,
        /// All that libbpf and the verifier said meanwhile.
        heard: String,
    },
    /// The compiled program is another one than the loader expects.
    #[error("{}", refusal("perch's BPF object is not as it should be", source, heard))]
    Object {
        /// The defect of the object.
        source: ObjectError,
        /// All that libbpf said meanwhile.
        heard: String,
    },
    /// A map of a loaded program is not in this process's memory.
    #[error("the map {0} of perch's BPF object is not mapped")]
    Unmapped(String),
    /// The test program cannot be run.
    #[error("perch's test program cannot be run: {0}")]
    Run(#[source] Error),
    /// The test program is not in its object.
    #[error("perch's test program cannot be run: it has no {0}")]
    NoProgram(&'static str),
    /// The test program did not answer the question that it was to answer.
    #[error("perch's test program answered question {asked} of {count} by {next}")]
    Answer {
        /// The first question without an answer.
        asked: u32,
        /// How many questions there are.
        count: u32,
        /// The question that the program wants to be asked next.
        next: u32,
    },
    /// The meter of programs' costs failed.
    #[error("{what}: {source:#}")]
    Meter {
        /// The step that the kernel refused.
        what: String,
        /// The error that libbpf returned.
        source: Error,
    },
}

impl RefusedError {
    /// Keeps for [`RefusedError::heard`] what libbpf says from now on, which it would write to stderr.
    pub fn listen() {
        hear();
    }

    /// The refusal of a step with what libbpf has said since [`RefusedError::listen`].
    pub fn heard(what: &str, source: Error) -> RefusedError {
        RefusedError::Load { what: what.to_string(), source, heard: heard() }
    }
}

/// How a compiled program differs from what the loader expects of it.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The arena is at another address.
    #[error("its arena is at {0:#x}")]
    ArenaAddress(u64),
    /// The arena would have more pages than a map can.
    #[error("an arena of {0} pages")]
    ArenaPages(usize),
    /// The configuration has another size.
    #[error(".rodata.config has another size")]
    ConfigSize,
    /// A table of callbacks would stay when the process ends.
    #[error("{0} is not in .struct_ops.link")]
    NoLink(String),
    /// A map is missing.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// libbpf does not take the change.
    #[error("{0}")]
    Libbpf(#[from] Error),
}

/// So much of the verifier's log, which may have 100,000 lines, is shown.
const SHOWN: usize = 12;

/// Words for a refusal by libbpf or the kernel.
fn refusal_of(what: &str, error: &Error, heard: &str) -> String {
    // The kernel gives no reason, and libbpf guesses that a limit of memory is too low.
    if error.kind() == ErrorKind::PermissionDenied && !heard.contains("-EACCES") {
        return format!(
            "{what}: the kernel does not let this process load BPF programs, though it has the \
             capabilities: a container (seccomp) or a lockdown of the kernel may forbid it; try it on \
             the host itself, as root"
        );
    }
    refusal(what, error, heard)
}

/// Words for a refusal: the verifier's last lines where it was the verifier, else libbpf's.
fn refusal(what: &str, error: &dyn fmt::Display, heard: &str) -> String {
    const BEGIN: &str = "-- BEGIN PROG LOAD LOG --";
    const END: &str = "-- END PROG LOAD LOG --";
    if let Some((before, rest)) = heard.split_once(BEGIN) {
        let log = rest.split_once(END).map_or(rest, |(log, _)| log);
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let program = before.rsplit("prog '").next();
        let program = program.and_then(|text| text.split('\'').next()).unwrap_or("?");
        let skipped = lines.len().saturating_sub(SHOWN);
        let mut out = format!("{what}: the verifier refused {program}");
        if skipped > 0 {
            out.push_str(&format!(
                " (the last {SHOWN} of {} lines; --log FILE keeps all)",
                lines.len()
            ));
        }
        for line in &lines[skipped..] {
            out.push_str("\n    ");
            out.push_str(line);
        }
        return out;
    }
    let mut out = format!("{what}: {error}");
    let said: Vec<&str> = heard.lines().filter(|line| !line.trim().is_empty()).collect();
    for line in &said[said.len().saturating_sub(SHOWN)..] {
        out.push_str("\n    ");
        out.push_str(line);
    }
    // Seen on Debian's 7.2.12 for trixie, whose BTF shows an argument of half of sched_ext's
    // functions that the kernel itself fills in; then no code can call them.
    if heard.contains("extern (func ksym)") && heard.contains("incompatible with vmlinux") {
        out.push_str(
            "\n    This kernel's BTF describes a function of sched_ext otherwise than sched_ext \
             has it.\n    Some builds of Linux 7.2 have that fault, and no scheduler that uses the \
             function loads there:\n    try another build of the kernel.",
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifier_s_last_lines_are_shown() {
        let log: String = (0..5000).map(|n| format!("{n}: r0 = 0\n")).collect();
        let heard = format!(
            "libbpf: prog 'perch_enqueue': BPF program load failed: -EACCES\n\
             libbpf: prog 'perch_enqueue': -- BEGIN PROG LOAD LOG --\n{log}\
             invalid access to map value\n-- END PROG LOAD LOG --\nlibbpf: more\n"
        );
        let text = refusal("Linux 7.2 refused it", &"Permission denied", &heard);
        assert!(text.starts_with("Linux 7.2 refused it: the verifier refused perch_enqueue"));
        assert!(text.contains("of 5001 lines"), "{text}");
        assert!(text.ends_with("invalid access to map value"), "{text}");
        assert_eq!(text.lines().count(), 1 + SHOWN);
    }

    #[test]
    fn other_refusals_have_libbpf_s_words() {
        let text = refusal("it failed", &"No such file", "libbpf: kernel has no BTF\n");
        assert_eq!(text, "it failed: No such file\n    libbpf: kernel has no BTF");
    }

    #[test]
    fn missing_permission_is_told_without_libbpf_s_guess() {
        let heard = "libbpf: prog 'fair_begins': BPF program load failed: -EPERM\n\
                     libbpf: permission error while running as root; try raising 'ulimit -l'?\n";
        let error = std::io::Error::from_raw_os_error(libc::EPERM).into();
        let text = refusal_of("the recorder's programs", &error, heard);
        assert!(text.contains("does not let this process load BPF programs"), "{text}");
        assert!(!text.contains("libbpf") && !text.contains('\n'), "{text}");
        let error = std::io::Error::from_raw_os_error(libc::EACCES).into();
        let heard = "libbpf: prog 'x': BPF program load failed: -EACCES\n";
        assert!(refusal_of("it failed", &error, heard).contains("-EACCES"));
    }

    #[test]
    fn a_kernel_with_faulty_btf_is_told_from_a_faulty_program() {
        let heard = "libbpf: extern (func ksym) 'bpf_iter_scx_dsq_new': func_proto [232] \
                     incompatible with vmlinux [35548]\n";
        let text = refusal("it failed", &"Invalid argument", heard);
        assert!(text.ends_with("try another build of the kernel."), "{text}");
    }
}
