// SPDX-License-Identifier: GPL-2.0-only
//! `perch compare`: any arms on any workload and machine.

use std::sync::Arc;

use clap::Args;
use perch_experiment::{Arm, CompareSpec, Effort};
use perch_policy::Era;
use perch_report::{ResultFormat, comparison, paste_comparison};
use perch_sim::RootDomain;

use crate::arguments::{Common, at_least_one, duration_ns, origin};
use crate::output::{Failure, Meter, emit};

/// What to compare and how.
#[derive(Args)]
pub struct Arguments {
    /// A machine by name (perch machine list), or a TOML file
    #[arg(short, long, value_name = "MACHINE")]
    machine: String,
    /// A workload with its keys (perch workload list), for example tbench:n=16,where=node0
    #[arg(short, long, value_name = "WORKLOAD")]
    workload: String,
    /// An arm, for example near:cluster=perch; changes are shown from the first
    #[arg(long = "arm", value_name = "NAME:MODES", required = true)]
    arms: Vec<String>,
    /// The stock kernel
    #[arg(long, default_value = "7.2", value_name = "VERSION")]
    era: Era,
    /// Ticks per second
    #[arg(long, default_value_t = 250, value_name = "N")]
    hz: u32,
    /// How the kernel's root domain is laid out: stock, or rearranged as patch 2 of the series on
    /// its lines has it
    #[arg(long, default_value = "stock", value_name = "LAYOUT")]
    root_domain: RootDomain,
    /// Simulations per arm
    #[arg(long, default_value = "5", value_name = "N", value_parser = at_least_one)]
    repetitions: u32,
    /// Simulated time before anything is counted
    #[arg(long, default_value = "100ms", value_name = "TIME", value_parser = duration_ns)]
    warmup: u64,
    /// Simulated time that is counted
    #[arg(long, default_value = "500ms", value_name = "TIME", value_parser = duration_ns)]
    measure: u64,
    /// Also show std, min, percentiles and max over the repetitions, and how they spread
    #[arg(long)]
    statistics: bool,
    #[command(flatten)]
    common: Common,
}

/// Does it.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let spec = CompareSpec {
        machine: Arc::new(perch_machine::resolve(&arguments.machine)?),
        era: arguments.era,
        hz: arguments.hz,
        root_domain: arguments.root_domain,
        workload: arguments.workload,
        arms: arguments
            .arms
            .iter()
            .map(|arm| Arm::parse(arm))
            .collect::<Result<_, _>>()?,
        effort: Effort {
            repetitions: arguments.repetitions,
            warmup_ns: arguments.warmup,
            measure_ns: arguments.measure,
        },
        statistics: arguments.statistics,
        seed: common.seed.unwrap_or(1),
        jobs: common.jobs(),
    };
    let meter = Meter::new(&spec.workload, spec.jobs, common.quiet);
    let result = perch_experiment::compare(&spec, &|done, total| meter.advance(done, total))?;
    meter.finish();
    emit(&match common.format {
        ResultFormat::Plain(format) => comparison(&result, format),
        ResultFormat::Paste(paste) => paste_comparison(&result, &origin(), paste),
    })
}
