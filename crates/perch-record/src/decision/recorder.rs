// SPDX-License-Identifier: GPL-2.0-or-later
//! The programs that hand out decisions about queues, at work in the kernel.

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};

use crate::format::Decisions;
use crate::recorder::{RecordError, functions, has_function, unable};

use super::Kind;

/// The programs of bpf/decisions.bpf.c, which build.rs compiles.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decisions.bpf.o"));

/// The programs, those that end a decision before those that begin it: what begins is then under way
/// when it ends.
const PROGRAMS: [&str; 8] = [
    "pick_ends",
    "pick_begins",
    "place_ends",
    "place_begins",
    "leave_ends",
    "leave_begins",
    "preempt_ends",
    "preempt_begins",
];

/// The kernel's function for each kind, by the names that it has had, the latest first; before it the
/// beginning of the names of the programs that watch it.
const FUNCTIONS: [(&str, &[&str]); 4] = [
    ("pick_", &["pick_eevdf", "__pick_eevdf"]),
    ("place_", &["place_entity"]),
    ("leave_", &["dequeue_entities"]),
    ("preempt_", &["wakeup_preempt_fair", "check_preempt_wakeup_fair"]),
];

/// The programs at work.
pub(crate) struct QueueRecorder {
    object: Object,
    links: Vec<Link>,
    cpus: usize,
}

impl QueueRecorder {
    /// Loads the programs, with a ring buffer of so many bytes. They record nothing yet.
    pub fn load(possible: usize, ring: u32) -> Result<QueueRecorder, RecordError> {
        let functions = functions()?;
        let mut targets = Vec::new();
        for (programs, names) in FUNCTIONS {
            let name = names.iter().find(|name| has_function(&functions, name));
            targets.push((programs, *name.ok_or(RecordError::NoFunction(names[0]))?));
        }
        let failed = unable("the recorder's programs for decisions about queues");
        let mut open = ObjectBuilder::default()
            .name("perch_decisions")
            .and_then(|builder| builder.open_memory(OBJECT))
            .map_err(&failed)?;
        let places = (possible * Kind::ALL.len()) as u32;
        for mut map in open.maps_mut() {
            match map.name().to_str() {
                Some("places" | "counts") => map.set_max_entries(places).map_err(&failed)?,
                Some("ring") => map.set_max_entries(ring).map_err(&failed)?,
                _ => {}
            }
        }
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let target = targets.iter().find(|(start, _)| name.starts_with(start));
            if let Some((_, function)) = target {
                let set = program.set_attach_target(0, Some(function.to_string()));
                set.map_err(&failed)?;
            }
        }
        Ok(QueueRecorder {
            object: open.load().map_err(&failed)?,
            links: Vec::new(),
            cpus: possible,
        })
    }

    /// Starts the recording.
    pub fn attach(&mut self) -> Result<(), RecordError> {
        for name in PROGRAMS {
            let program = self.object.progs_mut().find(|p| p.name() == name);
            let program = program.ok_or(RecordError::NoProgram(name))?;
            let attached = program.attach();
            let what = format!("{name} cannot be attached");
            self.links.push(attached.map_err(unable(&what))?);
        }
        Ok(())
    }

    /// Stops recording; the records in the ring buffer stay there. The programs that begin a
    /// decision stop first.
    pub fn detach(&mut self) {
        while self.links.pop().is_some() {}
    }

    /// Returns the object, whose map "ring" has the records, and the links, which end the recording
    /// when they are dropped.
    pub fn parts(&mut self) -> (&Object, &mut Vec<Link>) {
        (&self.object, &mut self.links)
    }

    /// Sums the counts of all CPUs; see bpf/decisions.bpf.c, `struct kind_counts`.
    pub fn counts(&self) -> Result<Decisions, RecordError> {
        let map = self.object.maps().find(|map| map.name() == "counts");
        let map = map.ok_or_else(|| RecordError::Missing("map counts".to_string()))?;
        let mut counts = Decisions::default();
        for place in 0..(self.cpus * Kind::ALL.len()) as u32 {
            let value = map.lookup(&place.to_ne_bytes(), MapFlags::ANY);
            let value = value.map_err(unable("counts"))?.unwrap_or_default();
            let mut words = value.chunks_exact(8);
            let mut next = || {
                let word = words.next().and_then(|w| w.try_into().ok());
                word.map_or(0, u64::from_ne_bytes)
            };
            let [recorded, dropped, too_long, timed, timed_ns] = std::array::from_fn(|_| next());
            counts.dropped += dropped;
            counts.too_long += too_long;
            let all = u128::from(recorded + dropped);
            counts.cost_ns += (u128::from(timed_ns) * all / u128::from(timed.max(1))) as u64;
        }
        Ok(counts)
    }
}
