// SPDX-License-Identifier: GPL-2.0-or-later
//! The number of inputs, and the seed that they are drawn from, as the environment says.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::str::FromStr;
use std::time::Duration;

/// The seed of `./x test`. A change of it changes every input.
const SEED: u64 = 35;

/// The number of inputs of a target, or the CPU time that it may try inputs for.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    Inputs(u32),
    Time(Duration),
}

/// The effort of a run.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub seed: u64,
    pub amount: Amount,
}

impl Effort {
    /// Reads PERCH_FUZZ_SEED (a number, or `random`), and PERCH_FUZZ_INPUTS or PERCH_FUZZ_MINUTES
    /// (of CPU time). A target of `usual` inputs tries a quarter of them, or ten times as many,
    /// where PROPTEST_CASES asks that of every property.
    pub fn of_environment(usual: u32) -> Effort {
        let seed = match variable::<String>("PERCH_FUZZ_SEED", "a number or random") {
            None => SEED,
            // The standard library's hashes begin with random numbers of the system.
            Some(word) if word == "random" => RandomState::new().hash_one(0),
            Some(number) => parsed("PERCH_FUZZ_SEED", &number, "a number or random"),
        };
        let inputs = variable("PERCH_FUZZ_INPUTS", "a number of inputs");
        let minutes = variable::<f64>("PERCH_FUZZ_MINUTES", "minutes");
        let amount = match (inputs, minutes) {
            (Some(inputs), _) => Amount::Inputs(inputs),
            (None, Some(minutes)) => Amount::Time(
                Duration::try_from_secs_f64(minutes * 60.0)
                    .expect("PERCH_FUZZ_MINUTES: expected a number of minutes"),
            ),
            (None, None) => {
                let cases = variable::<u64>("PROPTEST_CASES", "a number of cases");
                let inputs = u64::from(usual) * cases.unwrap_or(256) / 256;
                Amount::Inputs(u32::try_from(inputs.max(1)).unwrap_or(u32::MAX))
            }
        };
        Effort { seed, amount }
    }
}

fn variable<T: FromStr>(name: &str, expected: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(parsed(name, &text, expected))
}

fn parsed<T: FromStr>(name: &str, text: &str, expected: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected {expected}"))
}
