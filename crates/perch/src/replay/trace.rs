// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch replay --trace` writes a recording as a trace for Perfetto.

use std::io::{BufWriter, Write};
use std::path::Path;

use perch_policy::{Policy, Topology};
use perch_record::{Cause, Class, Cpu, Decided, Outcome, Replay, UNSEEN_ROWS};
use perch_report::{Choice, Recorded, RecordedTrace};

use crate::fresh::Fresh;
use crate::output::Failure;
use crate::recording::Recording;

/// A whole trace that is not yet in its place.
pub struct Trace<'a> {
    file: Fresh,
    path: &'a Path,
}

impl Trace<'_> {
    /// Moves the trace to its place.
    pub fn keep(self) -> Result<(), Failure> {
        self.file.keep().map_err(|error| cannot(self.path, error))
    }
}

fn cannot(path: &Path, error: std::io::Error) -> Failure {
    Failure::run(format!("cannot write {}: {error}", path.display()))
}

/// Replays a recording, and writes each wake-up as it was recorded together with the model's
/// choice. The caller keeps the trace when nothing else is wrong with the recording.
pub fn trace<'a>(
    recording: &mut Recording,
    other: Option<Policy>,
    path: &'a Path,
) -> Result<(Outcome, Trace<'a>), Failure> {
    let cannot = |error| cannot(path, error);
    let topology = recording.topology.clone();
    let mut out = BufWriter::new(Fresh::create(path).map_err(cannot)?);
    let (cpus, llcs) = (topology.nr_cpus(), topology.nr_llcs());
    let mut trace = RecordedTrace::new(&mut out, cpus, llcs).map_err(cannot)?;
    let mut replay = Replay::new(&topology, recording.header.hz, recording.model, other);
    let mut outcome = Outcome::default();
    loop {
        let block = recording.reader.next_block();
        let Some(block) = block.map_err(|error| recording.wrong(error))? else {
            break;
        };
        let mut written = Ok(());
        let look = |decided: &Decided| {
            if written.is_ok() {
                written = add(&mut trace, &topology, decided);
            }
        };
        let sums = replay.block(&block, look);
        outcome.add(&sums.map_err(|error| recording.wrong(error))?);
        written.map_err(cannot)?;
    }
    trace.finish().map_err(cannot)?;
    let file = out.into_inner().map_err(|error| cannot(error.into_error()))?;
    Ok((outcome, Trace { file, path }))
}

fn add<W: Write>(
    trace: &mut RecordedTrace<W>,
    topology: &Topology,
    decided: &Decided,
) -> std::io::Result<()> {
    let (moment, w) = (decided.moment, decided.moment.wake_up());
    let choice = match (&decided.verdicts, w.class) {
        (Some((model, other)), _) => Choice::Asked {
            cpu: model.cpu,
            reason: model.reason.name(),
            target: model.target,
            cause: decided.cause.map(Cause::name),
            other: other.as_ref().map(|v| (v.cpu, v.reason.name())),
        },
        (None, Class::RealTime) => Choice::NotAsked("real-time"),
        (None, Class::NotAsked) => Choice::NotAsked("not asked"),
        (None, Class::Fair) => Choice::NotAsked("not recorded in full"),
    };
    // The recorder looks for idle CPUs in the caches of waker and wakee, and notes the length of
    // every queue only where it looks at every CPU.
    let all = w.unseen & UNSEEN_ROWS == 0;
    let near = [w.this_cpu, w.prev_cpu].map(|cpu| topology.llc(cpu as usize));
    let looked_at = |llc: &usize| all || near.contains(&Some(*llc));
    let sum = |llc: usize, of: &dyn Fn(usize) -> u64| -> u32 {
        let here = topology.llc_span(llc).iter();
        here.map(of).sum::<u64>().min(u32::MAX.into()) as u32
    };
    let llcs = || (0..topology.nr_llcs()).filter(looked_at);
    let is_idle = |cpu: usize| u64::from(moment.cpus()[cpu][Cpu::Idle] != 0);
    let idle: Vec<_> = llcs().map(|llc| (llc, sum(llc, &is_idle))).collect();
    let queued = |cpu: usize| moment.cpus()[cpu][Cpu::NrRunning];
    let runnable: Vec<_> = llcs().filter(|_| all).map(|llc| (llc, sum(llc, &queued))).collect();
    trace.wake_up(&Recorded {
        at_ns: w.at_ns,
        waker: (w.waker != 0).then_some(w.waker),
        this_cpu: w.this_cpu as usize,
        wakee: w.wakee,
        prev_cpu: w.prev_cpu as usize,
        chosen: w.chosen as usize,
        choice,
        idle: &idle,
        runnable: &runnable,
    })
}
