// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab compare`: arms on a real kernel. Each arm and repetition has a guest of its own, which
//! shows the machine, runs the command and is gone; the scores come from the command's output.

mod arguments;
mod arm;
mod change;
mod decisions;
mod inside;
mod kernels;
mod measure;
mod programs;
mod score;
mod wanted;

use perch_experiment::{ArmModes, MeasuredSpec, compare_measured};
use perch_lab::{Arch, Store, Topology};
use perch_report::{ResultFormat, comparison, paste_comparison};

use super::options::say_left_out;
use super::spinner::Spinner;
use crate::arguments::{origin, quoted};
use crate::meter::{Meter, Unit};
use crate::output::{Failure, emit_as, say};
pub use arguments::Arguments;
use arm::Arm;
pub use inside::{ArmArguments, NAME as ARM, run as run_arm};
use measure::Guests;

/// Carries out `perch lab compare`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let machine = perch_machine::resolve(&arguments.machine)?;
    if machine.is_asymmetric() {
        return Err(Failure::input(format!(
            "{}: its CPUs differ in capacity, and the arms run in x86-64 guests, whose CPUs are all \
             alike; take a machine without [[capacity]]",
            machine.name
        )));
    }
    let topology = Topology::of(Arch::X86_64, &machine, arguments.cpus.0)?;
    let names: Vec<&str> = arguments.arms.iter().map(|arm| arm.name.as_str()).collect();
    let (first, others) = (names.first().copied(), names.get(1..).unwrap_or_default());
    let (repetitions, quiet) = (arguments.repetitions, arguments.quiet);
    let gates = (arguments.gates).begin(first, others, repetitions, quiet)?;
    if arguments.decisions {
        decisions::check(arguments)?;
    }
    if let Some(folder) = &arguments.outputs {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::run(format!("cannot make {}: {error}", folder.display())))?;
    }
    let spinner = Spinner::new(arguments.quiet);
    let store = Store::open()?.with_progress(spinner.clone());
    let guests = Guests::find(arguments, &store, topology)?;
    spinner.finish();
    let spec = spec(arguments, &guests);
    if !arguments.quiet {
        say_left_out(&guests.topology);
    }
    let meter = Meter::new(&spec.workload, Unit::Each, arguments.quiet);
    let total = spec.repetitions as usize * spec.arms.len();
    // A measurement has another guest that records its decisions.
    let guests_each = if arguments.decisions { 2 } else { 1 };
    let mut advance = |done, total| {
        meter.advance(guests_each * done as u64, guests_each * total as u64);
    };
    advance(0, total);
    let mut found = compare_measured(&spec, &mut advance, |at| {
        guests.measure(at).map_err(|failure| failure.message)
    })?;
    found.decisions = guests.decisions();
    meter.say("guests", spec.jobs);
    if !arguments.quiet {
        guests.trouble().into_iter().for_each(say);
    }
    let text = match arguments.format {
        ResultFormat::Plain(format) => comparison(&found, format),
        ResultFormat::Paste(paste) => paste_comparison(&found, &origin(), paste),
    };
    emit_as(arguments.format, &text)?;
    gates.judge(&found.changes())
}

fn spec(arguments: &Arguments, guests: &Guests) -> MeasuredSpec {
    let command = || {
        let words = arguments.command.iter().map(|word| quoted(word));
        let text = words.collect::<Vec<_>>().join(" ");
        // A script has lines, and a title has one.
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let modes = |arm: &Arm| ArmModes { name: arm.name.clone(), modes: arm.words.clone() };
    MeasuredSpec {
        machine: guests.topology.machine().clone(),
        place: guests.place(),
        workload: arguments.name.clone().unwrap_or_else(command),
        arms: arguments.arms.iter().map(modes).collect(),
        kernels: guests.kernels(),
        repetitions: arguments.repetitions,
        statistics: arguments.statistics,
        seed: arguments.seed,
        jobs: guests.jobs(arguments),
    }
}
