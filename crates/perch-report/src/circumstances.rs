// SPDX-License-Identifier: GPL-2.0-or-later
//! The circumstances that bring results back, in the words that every format uses.

use perch_experiment::{ArmKernel, ArmModes, Comparison, Report};

/// Returns the circumstances of an experiment: machine, kernel, ticks, seed and model.
pub(crate) fn of_report(report: &Report) -> String {
    let domain = report.root_domain.as_deref();
    let kernel = kernel(&report.era, domain, report.hz);
    let said = said(&report.machine, &kernel, report.seed, &report.model);
    match report.effort {
        Some(effort) => format!("{said}, effort {}", effort.name()),
        None => said,
    }
}

/// Returns the circumstances of a comparison: machine, kernel, ticks, seed and model.
pub(crate) fn of_comparison(found: &Comparison) -> String {
    let domain = found.root_domain.as_deref();
    let machine = match &found.place {
        None => found.machine.clone(),
        Some(place) => format!("{} as {place}", found.machine),
    };
    let kernel = if !has_several_kernels(found) {
        kernel(&found.era, domain, found.hz)
    } else {
        kernels(&found.kernels)
    };
    said(&machine, &kernel, found.seed, &found.model)
}

/// Returns whether the arms ran on kernels of different releases or ticks.
pub(crate) fn has_several_kernels(found: &Comparison) -> bool {
    let identity = |kernel: &ArmKernel| (kernel.release.clone(), kernel.hz);
    let mut all = found.kernels.iter().map(identity);
    let first = all.next();
    all.any(|other| Some(other) != first)
}

/// Returns all kernels, each with the names of its arms in brackets.
fn kernels(all: &[ArmKernel]) -> String {
    let mut named: Vec<(String, Vec<&str>)> = Vec::new();
    for one in all {
        let words = kernel(&one.release, None, one.hz);
        match named.iter_mut().find(|(kernel, _)| *kernel == words) {
            Some((_, arms)) => arms.push(&one.arm),
            None => named.push((words, vec![&one.arm])),
        }
    }
    let words = named.iter();
    let words = words.map(|(kernel, arms)| format!("{kernel} ({})", arms.join(", ")));
    words.collect::<Vec<_>>().join(", ")
}

fn kernel(era: &str, domain: Option<&str>, hz: u32) -> String {
    // The text names the root domain only where it is not the stock one.
    let domain = domain.map_or(String::new(), |name| format!(" with its root domain {name}"));
    let hz = match hz {
        0 => String::new(),
        hz => format!(", {hz} Hz"),
    };
    format!("Linux {era}{domain}{hz}")
}

fn said(machine: &str, kernel: &str, seed: u64, model: &str) -> String {
    // Results of older versions do not have it.
    let model = match model {
        "" => String::new(),
        model => format!(", model {model}"),
    };
    format!("{machine}, {kernel}, seed {seed}{model}")
}

/// Returns the arms with their modes, in one line.
pub(crate) fn modes(arms: &[ArmModes]) -> String {
    let arms = arms.iter().map(|arm| format!("{} {}", arm.name, arm.modes));
    arms.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::comparison;
    use crate::comparison::tests::given;
    use crate::format::Format;
    use crate::paste::{Origin, Paste, paste_comparison};

    #[test]
    fn arms_on_several_kernels_are_named_with_them() {
        let mut found = given();
        let on = |arm: &str, release: &str, hz| ArmKernel {
            arm: arm.to_string(),
            release: release.to_string(),
            hz,
        };
        found.era = "7.2".to_string();
        found.kernels = vec![on("a", "7.2", 250), on("b", "7.2", 250)];
        let head = |found: &Comparison, format| {
            let text = comparison(found, format);
            text.lines().next().unwrap().to_string()
        };
        assert!(head(&found, Format::Table).contains("kunpeng920, Linux 7.2, 250 Hz, seed 1"));
        assert!(!comparison(&found, Format::Csv).contains("\nkernel,"));
        found.kernels[1] = on("b", "7.3", 1000);
        let words = "kunpeng920, Linux 7.2, 250 Hz (a), Linux 7.3, 1000 Hz (b), seed 1";
        for format in [Format::Table, Format::Markdown] {
            let head = head(&found, format);
            assert!(head.contains(words), "{head}");
        }
        let text = comparison(&found, Format::Csv);
        assert_eq!(text.lines().nth(2), Some("kernel,7.3,,b,,,,,"));
        let origin =
            Origin { version: "0.1.0".to_string(), command: "perch lab compare".to_string() };
        for paste in [Paste::Lkml, Paste::Mmtests] {
            let text = paste_comparison(&found, &origin, paste);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("Linux 7.3, 1000 Hz (b)"), "{text}");
        }
    }
}
