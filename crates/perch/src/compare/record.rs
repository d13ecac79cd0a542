// SPDX-License-Identifier: GPL-2.0-or-later
//! A simulated run as a recording, which holds the state that the policy saw at each decision and
//! its choice; so a user can try replay and advice without a kernel to record.

use std::io::{self, Write};

use perch_policy::CpuMask;
use perch_record::format::{Footer, Header, Undecided, Writer};
use perch_record::{Class, CpuRow, GroupRow, Row, Task, TaskRow, WakeUp, group_capacities};
use perch_sim::{Asked, Scenario, Switched, Watch, Woken};

use perch_record::unrecorded;

/// A watcher that writes the decisions of a run.
pub struct SimulatedRecording<W: Write> {
    /// The recording's writer; `None` when the run is over.
    writer: Option<Writer<W>>,
    /// The last question to the policy, until the answer comes.
    wake_up: Option<WakeUp>,
    tasks: [Row<TaskRow>; 2],
    affinity: Option<CpuMask>,
    cpus: Vec<Row<CpuRow>>,
    groups: Vec<Row<GroupRow>>,
    /// Wake-ups about which no policy was asked.
    undecided: Undecided,
}

impl<W: Write> SimulatedRecording<W> {
    /// Begins a recording of a run.
    pub fn new(out: W, scenario: &Scenario, command: Vec<String>) -> io::Result<Self> {
        let modes = scenario.policy.modes();
        if let Some(mechanism) = unrecorded(&modes) {
            return Err(io::Error::other(format!(
                "a recording does not have what {mechanism} decides by: leave {mechanism} out of \
                 the arm"
            )));
        }
        let header = Header {
            perch: env!("CARGO_PKG_VERSION").to_string(),
            machine: scenario.machine.to_toml(),
            kernel: format!("simulated {}", scenario.policy.era()),
            era: scenario.policy.era().to_string(),
            modes: modes.to_string(),
            hz: scenario.hz,
            command,
            ..Header::default()
        };
        let (cpus, groups) = (scenario.topology.nr_cpus(), scenario.topology.nr_shared());
        Ok(SimulatedRecording {
            writer: Some(Writer::new(out, header, cpus, groups)?),
            wake_up: None,
            tasks: [Row::default(); 2],
            affinity: None,
            cpus: vec![Row::default(); cpus],
            groups: vec![Row::default(); groups],
            undecided: Undecided::default(),
        })
    }
}

impl<W: Write> Watch for SimulatedRecording<W> {
    fn asked(&mut self, asked: &Asked) -> io::Result<()> {
        let Asked { host, wake, waker, wakee, allowed } = *asked;
        let n = self.cpus.len();
        for (cpu, row) in self.cpus.iter_mut().enumerate() {
            *row = Row::<CpuRow>::of(host, cpu);
        }
        for (group, row) in self.groups.iter_mut().enumerate() {
            *row = Row::<GroupRow>::of(host, group);
        }
        self.tasks = [waker, wakee].map(Row::<TaskRow>::of);
        // In a recording, 0 stands for no process.
        self.tasks[1][Task::Process] = wakee.process().map_or(0, |p| u64::from(p.number()) + 1);
        let all = allowed.weight() as usize == n;
        self.affinity = (!all).then(|| allowed.clone());
        let mut queued = Vec::new();
        if let Some(group) = wakee.group() {
            queued = vec![0; n.div_ceil(64)];
            let cpus = (0..n).filter(|&cpu| host.is_queued(group, cpu));
            cpus.for_each(|cpu| queued[cpu / 64] |= 1 << (cpu % 64));
        }
        self.wake_up = Some(WakeUp {
            at_ns: wake.now_ns,
            class: Class::Fair,
            flags: wake.flags(),
            this_cpu: wake.this_cpu as u32,
            prev_cpu: wake.prev_cpu as u32,
            // The simulator gives idle tasks the highest numbers; a recording has 0 for them.
            waker: if waker.id == u32::MAX - wake.this_cpu as u32 { 0 } else { waker.id },
            wakee: wakee.id,
            queued,
            capacities: group_capacities(host, wake),
            ..WakeUp::default()
        });
        Ok(())
    }

    fn woken(&mut self, woken: &Woken) -> io::Result<()> {
        // The policy was not asked about a task that another rule placed.
        let (Some(mut wake_up), Some(writer)) = (self.wake_up.take(), &mut self.writer) else {
            match woken.reason {
                "never left its queue" => self.undecided.queued += 1,
                "never left its CPU" => self.undecided.others += 1,
                _ => {}
            }
            return Ok(());
        };
        wake_up.chosen = woken.cpu as u32;
        writer.add(
            &wake_up,
            [&self.tasks[0], &self.tasks[1]],
            self.affinity.as_ref(),
            &self.cpus,
            &self.groups,
        )
    }

    fn switched(&mut self, _: &Switched) -> io::Result<()> {
        Ok(())
    }

    fn loaded(&mut self, _: u64, _: usize, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn ended(&mut self, _: u64) -> io::Result<()> {
        match self.writer.take() {
            Some(writer) => {
                let footer = Footer { undecided: self.undecided.clone(), ..Footer::default() };
                writer.finish(footer).map(|_| ())
            }
            None => Ok(()),
        }
    }
}
