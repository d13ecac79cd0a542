// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernels of a comparison's arms: each arm's own, or the one that all others share; and what an
//! arm needs of its kernel.

use perch_experiment::ArmKernel;
use perch_file::Kind;
use perch_lab::kernel::Kernel;
use perch_lab::{Arch, Store};

use super::arm::{Arm, Scheduler};
use super::change::CACHE_AWARE;
use crate::lab::options::no_sched_ext;
use crate::output::Failure;

/// The kernels of all arms, each found once.
pub struct Kernels {
    found: Vec<Kernel>,
    /// By arm, the index of its kernel.
    of: Vec<usize>,
}

impl Kernels {
    /// Finds the kernel of each arm, and fetches what is not here. An arm without a kernel of its own
    /// has that of `--kernel`.
    ///
    /// # Errors
    /// A failure that names the arm where the kernel is its own.
    pub fn find(arms: &[Arm], shared: &str, store: &Store, arch: Arch) -> Result<Kernels, Failure> {
        if !shared.is_empty() && arms.iter().all(|arm| arm.image.is_some()) {
            return Err(Failure::input(format!(
                "--kernel {shared} is for arms without a kernel of their own, and every arm has one; \
                 leave --kernel out, or the @KERNEL of an arm"
            )));
        }
        let mut specs: Vec<&str> = Vec::new();
        let mut kernels = Kernels { found: Vec::new(), of: Vec::new() };
        for arm in arms {
            let spec = arm.image.as_deref().unwrap_or(shared);
            let index = match specs.iter().position(|known| *known == spec) {
                Some(index) => index,
                None => {
                    let kernel = Kernel::find(store, spec, arch);
                    kernels.found.push(kernel.map_err(|error| not_found(arm, error))?);
                    specs.push(spec);
                    specs.len() - 1
                }
            };
            kernels.of.push(index);
        }
        Ok(kernels)
    }

    /// The kernel of an arm.
    pub fn of(&self, arm: usize) -> &Kernel {
        &self.found[self.of[arm]]
    }

    /// Calls `make` once per kernel, and returns by arm what it made of the arm's kernel.
    pub fn each<T: Clone>(
        &self,
        make: impl FnMut(&Kernel) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let made = self.found.iter().map(make).collect::<Result<Vec<T>, _>>()?;
        Ok(self.of.iter().map(|index| made[*index].clone()).collect())
    }

    /// The kernels as reports name them.
    pub fn named(&self, arms: &[Arm]) -> Vec<ArmKernel> {
        let arms = arms.iter().enumerate();
        let named = arms.map(|(index, arm)| ArmKernel {
            arm: arm.name.clone(),
            release: self.of(index).release.clone(),
            hz: hz(self.of(index)),
        });
        named.collect()
    }
}

/// Refuses an arm whose kernel lacks what its scheduler or its changes need, or whose decisions can't
/// be recorded where they are to be.
pub fn check(arm: &Arm, kernel: &Kernel, is_recorded: bool) -> Result<(), Failure> {
    let release = &kernel.release;
    if arm.scheduler != Scheduler::Stock && !kernel.sched_ext {
        let others = "--kernel 7.2, or @7.2 behind the arm's scheduler";
        return Err(refused(arm, &no_sched_ext(kernel, others)));
    }
    let writes = &arm.kernel.writes;
    let is_cache_aware = || config(kernel).is_none_or(|text| has(&text, "CONFIG_SCHED_CACHE=y"));
    if writes.iter().any(|write| write.file == CACHE_AWARE) && !is_cache_aware() {
        let words = format!(
            "kernel {release} has no cache-aware balancing (CONFIG_SCHED_CACHE, Linux 7.2 and newer) \
             that cache=off or cache=on could change; leave the change out, or take another kernel"
        );
        return Err(refused(arm, &words));
    }
    let has_types = || config(kernel).is_none_or(|text| has(&text, "CONFIG_DEBUG_INFO_BTF=y"));
    if is_recorded && !has_types() {
        let words = format!(
            "kernel {release} has no BTF (CONFIG_DEBUG_INFO_BTF), without which --decisions can't \
             record; build it in, or leave --decisions out"
        );
        return Err(refused(arm, &words));
    }
    Ok(())
}

/// A failure that names an arm.
pub fn refused(arm: &Arm, words: &str) -> Failure {
    Failure::input(format!("arm {}: {words}", arm.name))
}

/// Names the arm and its kernel before the reason for which there is no such kernel.
fn not_found(arm: &Arm, error: perch_lab::Error) -> Failure {
    let Failure { code, message } = error.into();
    let message = match &arm.image {
        Some(spec) => format!("arm {}: kernel {spec}: {message}", arm.name),
        None => message,
    };
    Failure { code, message }
}

/// A kernel's configuration, where it is known.
fn config(kernel: &Kernel) -> Option<String> {
    let path = kernel.config.as_ref()?;
    perch_file::text(path, Kind::KERNEL_CONFIG).ok()
}

fn has(config: &str, line: &str) -> bool {
    config.lines().any(|other| other == line)
}

/// Ticks of the kernel per second by its configuration; 0 where nobody knows.
fn hz(kernel: &Kernel) -> u32 {
    let text = config(kernel).unwrap_or_default();
    let mut lines = text.lines();
    let hz = lines.find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok());
    hz.unwrap_or(0)
}
