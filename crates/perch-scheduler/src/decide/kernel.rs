// SPDX-License-Identifier: GPL-2.0-or-later
//! The policy as BPF, in the running kernel: bpf/decide.bpf.c.

use std::path::Path;
use std::ptr::NonNull;

use libbpf_rs::{Object, ObjectBuilder, ProgramInput};
use perch_policy::Batch;

use super::Answerer;
use crate::error::SchedulerError;
use crate::kernel::{Kernel, Purpose, UnableError};
use crate::program::{hear, heard, memory, page_size};
use crate::refusal::RefusedError;
use perch_plan::interface::ARENA_BASE;

/// bpf/decide.bpf.c, compiled by build.rs.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decide.bpf.o"));

/// Room for a batch about a machine of 1000 CPUs.
pub(super) const ARENA_BYTES: usize = 48 << 20;

/// The test program, loaded. It schedules nothing.
pub struct InKernel {
    arena: NonNull<u8>,
    object: Object,
}

impl InKernel {
    /// Loads it.
    ///
    /// # Errors
    /// [`SchedulerError::Unable`] for a user who may not load programs;
    /// [`SchedulerError::Refused`] with the kernel's reason.
    pub fn load() -> Result<InKernel, SchedulerError> {
        let kernel = Kernel::new(Path::new("/"));
        kernel.check_rights(Purpose::Comparing)?;
        hear();
        let refused = |source: libbpf_rs::Error| RefusedError::Load {
            what: format!("Linux {} refused perch's test program", kernel.version()),
            source,
            heard: heard(),
        };
        let mut open = ObjectBuilder::default()
            .name("perch_decide")
            .and_then(|builder| builder.open_memory(OBJECT))
            .map_err(refused)?;
        let pages = ARENA_BYTES.div_ceil(page_size()) as u32;
        let mut maps = open.maps_mut();
        if let Some(mut map) = maps.find(|map| map.name() == "arena") {
            map.set_max_entries(pages).map_err(refused)?;
        }
        drop(maps);
        let object = open.load().map_err(refused)?;
        let arena = memory(&object, "arena", ARENA_BYTES)?;
        Ok(InKernel { arena, object })
    }

    /// Asks for questions `first` to `count` - 1; the number of the first without an answer.
    fn ask(&mut self, questions_at: u64, first: u32, count: u32) -> Result<u32, RefusedError> {
        const NAME: &str = "perch_decide";
        let mut programs = self.object.progs_mut();
        let program =
            programs.find(|program| program.name() == NAME).ok_or(RefusedError::NoProgram(NAME))?;
        // struct perch_batch
        let mut batch = [0; 16];
        batch[..8].copy_from_slice(&questions_at.to_ne_bytes());
        batch[8..12].copy_from_slice(&first.to_ne_bytes());
        batch[12..].copy_from_slice(&count.to_ne_bytes());
        let input = ProgramInput { context_in: Some(&mut batch), ..ProgramInput::default() };
        let output = program.test_run(input).map_err(RefusedError::Run)?;
        Ok(output.return_value)
    }
}

impl Answerer for InKernel {
    fn base(&self) -> u64 {
        ARENA_BASE
    }

    fn answer(&mut self, batch: &Batch) -> Result<&[u8], SchedulerError> {
        let image = batch.image();
        if image.len() > ARENA_BYTES {
            let (bytes, arena) = (image.len(), ARENA_BYTES);
            return Err(UnableError::Batch { bytes, arena }.into());
        }
        // SAFETY: the arena is mapped as long as the object lives and is that long; only a run of
        // the program, for which this function waits, touches it.
        unsafe {
            self.arena.copy_from_nonoverlapping(NonNull::from(image).cast(), image.len());
        }
        let count = batch.len() as u32;
        let mut first = 0;
        while first < count {
            let next = self.ask(batch.questions_at(), first, count)?;
            if next <= first || next > count {
                let asked = first;
                return Err(RefusedError::Answer { asked, count, next }.into());
            }
            first = next;
        }
        // SAFETY: as above.
        Ok(unsafe { std::slice::from_raw_parts(self.arena.as_ptr(), ARENA_BYTES) })
    }
}
