// SPDX-License-Identifier: GPL-2.0-or-later
//! Compares the policy's decisions in BPF with its native ones (property P17): they must be equal.
//!
//! Random moments on random and well-known machines are decided twice: by the policy that the
//! simulator calls, and by the same headers compiled to BPF ([`InKernel`]), whose arrays lie in
//! an arena. Verdicts and all that the policy remembers must be the same.

mod kernel;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use perch_machine::{Machine, library};
use perch_policy::testing::dice::Dice;
use perch_policy::testing::machines::{self, Shape};
use perch_policy::testing::scenario::{self, Scenario};
use perch_policy::{Answer, Batch, CacheStep, Host, Reason, Topology};

use crate::error::SchedulerError;
pub use kernel::InKernel;

/// Moments a machine; each is decided in every mode of every era.
const MOMENTS: usize = 12;
/// The most CPUs of a random machine: its sets take up to three words of 64.
const MOST_CPUS: u32 = 150;
/// Mismatches that are told in full.
const TOLD: usize = 3;

/// The comparison to make.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Everything random follows from it.
    pub seed: u64,
    /// How many wake-ups at least; machines are not cut short.
    pub count: usize,
    /// Falsify one question on the other side only: an idle CPU that a verdict names is busy
    /// there. A comparison that is worth anything finds it.
    pub falsify: bool,
}

/// Another compilation of the policy, with memory of its own.
pub trait Answerer {
    /// The address at which batches must be laid out.
    fn base(&self) -> u64;

    /// Answers every question of the batch; what lies at the address since.
    ///
    /// # Errors
    /// When it cannot, in words.
    fn answer(&mut self, batch: &Batch) -> Result<&[u8], SchedulerError>;
}

/// The comparison that was made, and its result.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Wake-ups.
    pub questions: usize,
    /// How many machines there were of each kind.
    pub machines: BTreeMap<&'static str, usize>,
    /// How often each reason was given natively.
    pub reasons: BTreeMap<Reason, usize>,
    /// How often each step of the cache mechanism was taken natively.
    pub steps: BTreeMap<CacheStep, usize>,
    /// Wake-ups that were not decided alike.
    pub mismatches: usize,
    /// The first of them in words.
    pub told: Vec<String>,
}

impl fmt::Display for Comparison {
    /// A line for each number, the number last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "wake-ups: {}", self.questions)?;
        for (kind, count) in &self.machines {
            writeln!(f, "machines, {kind}: {count}")?;
        }
        for &reason in Reason::ALL.iter().filter(|&&r| r != Reason::Nothing) {
            let count = self.reasons.get(&reason).copied().unwrap_or(0);
            writeln!(f, "reason, {}: {count}", reason.name())?;
        }
        for step in CacheStep::ALL {
            let count = self.steps.get(&step).copied().unwrap_or(0);
            writeln!(f, "cache, {}: {count}", step.name())?;
        }
        writeln!(f, "mismatches: {}", self.mismatches)
    }
}

/// Compares `other` with the native policy.
///
/// # Errors
/// When `other` cannot answer. Mismatches are no error here: see [`Comparison::mismatches`].
pub fn compare(plan: &Plan, other: &mut dyn Answerer) -> Result<Comparison, SchedulerError> {
    let mut comparison = Comparison::default();
    let mut falsify = plan.falsify;
    let mut number = 0;
    while comparison.questions < plan.count {
        let machine = machine(plan.seed, number);
        comparison.see(&machine);
        let round = Round::new(plan.seed, number, &machine, other.base(), &mut falsify);
        let memory = other.answer(&round.batch)?;
        for (index, asked) in round.asked.iter().enumerate() {
            comparison.questions += 1;
            let verdict = asked.native.verdict;
            *comparison.reasons.entry(verdict.reason).or_default() += 1;
            *comparison.steps.entry(verdict.cache).or_default() += 1;
            let answer = round.batch.answer(memory, index);
            if answer.as_ref() == Some(&asked.native) {
                continue;
            }
            comparison.mismatches += 1;
            if comparison.told.len() < TOLD {
                let there = match answer {
                    Some(answer) => format!("{answer:?}"),
                    None => "no verdict that could be read".to_string(),
                };
                comparison.told.push(format!(
                    "seed {}, machine {number} ({}), wake-up {index} of it, {}:\n  {}\n  \
                     native: {:?}\n  other:  {there}",
                    plan.seed,
                    machine.description,
                    asked.policy,
                    told(&round.moments[index * MOMENTS / round.asked.len()]),
                    asked.native
                ));
            }
        }
        number += 1;
    }
    Ok(comparison)
}

impl Comparison {
    fn see(&mut self, machine: &Machine) {
        let capacity = machine.cpus[0].capacity;
        let kinds = [
            ("all", true),
            ("threads", machine.has_smt()),
            ("clusters", machine.clusters() > 1),
            ("several LLCs", machine.llcs() > 1),
            ("several nodes", machine.nodes() > 1),
            ("several capacities", machine.cpus.iter().any(|cpu| cpu.capacity != capacity)),
            ("more than 64 CPUs", machine.cpus.len() > 64),
        ];
        for (kind, is) in kinds {
            *self.machines.entry(kind).or_default() += usize::from(is);
        }
    }
}

/// Machine `number` of a seed: first those of the library and a wide LLC, then random ones.
fn machine(seed: u64, number: usize) -> Machine {
    if let Some(name) = library::names().nth(number) {
        return library::load(name).expect("a machine of the library");
    }
    if number == library::names().count() {
        return Machine::regular("wide", 1, 1, 1, 16, 8, 2).expect("a regular machine");
    }
    let mut dice = Dice::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number as u64));
    let most = dice.range(2, MOST_CPUS) as usize;
    machines::random(dice.next(), most)
}

/// One wake-up, decided natively.
struct Asked {
    policy: String,
    native: Answer,
}

/// The wake-ups of one machine.
struct Round {
    moments: Vec<Scenario>,
    asked: Vec<Asked>,
    batch: Batch,
}

impl Round {
    /// Falsifies a question where `falsify` says so and one lends itself, and takes it back.
    fn new(seed: u64, number: usize, machine: &Machine, base: u64, falsify: &mut bool) -> Round {
        let shape = Shape::new(machine);
        let topology = Topology::new(machine);
        let mut host = Host::new(topology.clone());
        let mut dice = Dice::new(seed ^ (number as u64) << 32);
        let mut asked = Vec::new();
        let moments: Vec<_> = (0..MOMENTS).map(|_| Scenario::random(&shape, &mut dice)).collect();
        let policies = scenario::policies();
        let mut batch = Batch::new(base, &topology, MOMENTS * policies.len());
        for (moment, &policy) in moments.iter().flat_map(|m| policies.iter().map(move |p| (m, p))) {
            let (wake, allowed) = (moment.wake.to_policy(), moment.affinity());
            moment.put(&mut host);
            let tasks = (moment.waker.to_policy(), moment.wakee_of(&mut host));
            let native = Answer::native(&mut host, &policy, &wake, tasks, &allowed);
            moment.put(&mut host);
            if *falsify && native.verdict.reason == Reason::TargetIdle {
                host.set_idle(native.verdict.cpu, false);
                host.set_sched_idle(native.verdict.cpu, false);
                *falsify = false;
            }
            batch.add(&host, &policy, &wake, (&tasks.0, &tasks.1), &allowed);
            asked.push(Asked {
                policy: format!("era {}, {}", policy.era(), policy.modes()),
                native,
            });
        }
        Round { moments, asked, batch }
    }
}

/// A moment in words; the CPUs' loads follow from the seed.
fn told(moment: &Scenario) -> String {
    let cpus = |is: &[bool]| {
        let cpus: Vec<u32> = (0u32..).zip(is).filter(|c| *c.1).map(|c| c.0).collect();
        perch_machine::cpulist::format(&cpus)
    };
    format!(
        "{:?}, {:?} wakes {:?}, allowed {}, idle {}, busy with SCHED_IDLE {}",
        moment.wake,
        moment.waker,
        moment.wakee,
        cpus(&moment.allowed),
        cpus(&moment.state.idle),
        cpus(&moment.state.sched_idle)
    )
}
