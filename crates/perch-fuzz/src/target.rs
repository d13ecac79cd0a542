// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader, and the inputs that are tried on it.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::Recipe;
use crate::effort::{Amount, Effort};
use crate::meter::{is_metered, metered};
use crate::watchdog::{MOST_MS, Watchdog};

/// Bytes that a reader may hold for an input of up to 256 KiB.
const MOST_BYTES: u64 = 256 << 20;
/// Inputs between two looks at the time that has passed.
const ROUND: u32 = 1000;

/// Reads an input, which is also in the file at the path, and goes on with what was read. It returns
/// what is wrong with the words of a refusal, or with what was read.
pub type Check<'a> = &'a dyn Fn(&[u8], &Path) -> Result<(), String>;

/// A reader of perch's, and all that makes inputs for it.
pub struct Target<'a> {
    /// The name, which is that of the test.
    pub name: &'static str,
    /// The inputs that `./x test` tries: about two seconds of CPU time.
    pub inputs: u32,
    /// Good inputs.
    pub seeds: Vec<Vec<u8>>,
    /// Words of the format: keys, marks, units.
    pub words: &'a [&'a str],
    /// True where the format is not text.
    pub binary: bool,
    /// Mends what would have every changed input refused in the same way, such as a checksum.
    pub seal: fn(&mut Vec<u8>),
    /// Tries an input.
    pub check: Check<'a>,
}

impl std::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("name", &self.name).finish_non_exhaustive()
    }
}

thread_local! {
    /// The message and the place of the last panic in an input.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the words of panics in inputs, of which shrinking makes many, from the terminal.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if is_metered() { PANIC.set(info.to_string()) } else { usual(info) }
        }));
    });
}

struct Trial<'a> {
    target: &'a Target<'a>,
    path: PathBuf,
    file: File,
    watchdog: Watchdog,
}

impl Trial<'_> {
    /// Tries an input; the error says what went wrong.
    fn input(&self, input: &[u8]) -> Result<(), String> {
        // It is in the file before it is tried: an abort leaves it there.
        let written = (self.file.set_len(0)).and_then(|()| self.file.write_all_at(input, 0));
        written.unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
        let check = AssertUnwindSafe(|| (self.target.check)(input, &self.path));
        let ((found, peak), ms) =
            self.watchdog.time(|| metered(self.target.name, || panic::catch_unwind(check)));
        match found {
            Err(_) => Err(format!("a panic: {}", PANIC.take())),
            Ok(Err(why)) => Err(why),
            Ok(Ok(())) if ms > MOST_MS => Err(format!("it takes {ms} ms of CPU time")),
            Ok(Ok(())) if peak > MOST_BYTES => Err(format!("it holds {peak} bytes")),
            Ok(Ok(())) => Ok(()),
        }
    }

    /// Tries a number of inputs that the seed and the number of the round decide.
    fn round(&self, seed: u64, round: u64, inputs: u32) {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&round.to_le_bytes());
        let config = Config {
            cases: inputs,
            failure_persistence: None,
            max_shrink_iters: 1024,
            ..Config::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let target = self.target;
        let made = |recipe: &Recipe| {
            let mut input = recipe.input(&target.seeds, target.words);
            (target.seal)(&mut input);
            input
        };
        let tried = runner.run(&Recipe::any(target.binary), |recipe| {
            self.input(&made(&recipe)).map_err(TestCaseError::fail)
        });
        let (why, recipe) = match tried {
            Ok(()) => return,
            Err(TestError::Fail(why, recipe)) => (why, recipe),
            Err(error) => panic!("{}: {error}", target.name),
        };
        let input = made(&recipe);
        let path = self.path.with_extension("found");
        fs::write(&path, &input).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        panic!(
            "{}: {why}\nPERCH_FUZZ_SEED={seed}, round {round}; {recipe:?}\nthe input, {} bytes, is in {}:\n{}",
            target.name,
            input.len(),
            path.display(),
            String::from_utf8_lossy(&input[..input.len().min(2000)]).escape_debug(),
        );
    }
}

/// Tries inputs on a target, as many as the environment says. The folder, which this makes, gets
/// the input that is being tried (`NAME.input`) and the one that failed (`NAME.found`).
///
/// # Panics
/// Panics when an input fails, and says why, where the input is, and how to have it again.
pub fn fuzz(target: &Target, folder: &Path) {
    keep_panics();
    let path = folder.join(target.name).with_extension("input");
    let made = fs::create_dir_all(folder).and_then(|()| File::create(&path));
    let file = made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let watchdog = Watchdog::new(target.name, &path);
    let trial = Trial { target, path, file, watchdog };
    // Every seed is good as it stands, which the check need not know.
    for seed in &target.seeds {
        if let Err(why) = trial.input(seed) {
            panic!("{}: a seed: {why}\n{}", target.name, String::from_utf8_lossy(seed));
        }
    }
    let effort = Effort::of_environment(target.inputs);
    let mut tried = 0;
    match effort.amount {
        Amount::Inputs(inputs) => {
            trial.round(effort.seed, 0, inputs);
            tried += u64::from(inputs);
        }
        Amount::Time(time) => {
            let began = trial.watchdog.spent_ms();
            for round in 0.. {
                if u128::from(trial.watchdog.spent_ms() - began) >= time.as_millis() {
                    break;
                }
                trial.round(effort.seed, round, ROUND);
                tried += u64::from(ROUND);
            }
        }
    }
    if let Amount::Time(_) = effort.amount {
        // cargo keeps what `println!` says of a test that passes.
        let _ = writeln!(
            std::io::stderr(),
            "{}: {tried} inputs from seed {}, {} s of CPU time, nothing found",
            target.name,
            effort.seed,
            trial.watchdog.spent_ms() / 1000
        );
    }
}
