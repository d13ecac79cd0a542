// SPDX-License-Identifier: GPL-2.0-or-later
//! Wake-ups laid out for a policy that was compiled for another address space, and its answers to
//! them; the layout is policy/hosts/question.h.

use std::sync::Arc;

use bytemuck::{Zeroable, must_cast};

use crate::ffi;
use crate::host::Host;
use crate::image::{Image, read};
use crate::mask::CpuMask;
use crate::policy::Policy;
use crate::task::TaskState;
use crate::topology::Topology;
use crate::wake::{Verdict, Wake};

/// Questions about one machine: which CPUs are idle, which task wakes which, and by which policy.
#[derive(Debug)]
pub struct Batch {
    image: Image,
    topology: Arc<Topology>,
    placed: ffi::Topology,
    questions_at: u64,
    most: usize,
    /// Where each question's array of LLCs is.
    llcs_at: Vec<u64>,
}

/// A policy's verdict, and the memory that the policy leaves on the two tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Where the wakee goes, and why.
    pub verdict: Verdict,
    /// The waker as the policy left it.
    pub waker: TaskState,
    /// The wakee as the policy left it.
    pub wakee: TaskState,
    /// By LLC and asymmetric domain, whether it is still thought to have a fully idle core.
    pub idle_cores: Vec<bool>,
}

impl Answer {
    /// The native policy's answer; the call changes the memory of `host` as well.
    ///
    /// # Panics
    /// As [`Host::select`].
    pub fn native(
        host: &mut Host,
        policy: &Policy,
        wake: &Wake,
        (mut waker, mut wakee): (TaskState, TaskState),
        allowed: &CpuMask,
    ) -> Answer {
        let verdict = host.select(policy, wake, &mut waker, &mut wakee, allowed);
        let llcs = 0..host.topology().nr_shared();
        Answer { verdict, waker, wakee, idle_cores: llcs.map(|llc| host.idle_cores(llc)).collect() }
    }
}

impl Batch {
    /// An empty batch of at most `most` questions, which will lie at `base`, a multiple of 64.
    pub fn new(base: u64, topology: &Arc<Topology>, most: usize) -> Batch {
        let mut image = Image::new(base);
        let questions_at = image.reserve(most * size_of::<ffi::Question>());
        Batch {
            placed: topology.image(&mut image),
            image,
            topology: topology.clone(),
            questions_at,
            most,
            llcs_at: Vec::new(),
        }
    }

    /// Adds a question: what [`Host::select`] would be asked, at this moment of the host.
    ///
    /// # Panics
    /// When the batch is full, or the host or the affinity is another machine's.
    pub fn add(
        &mut self,
        host: &Host,
        policy: &Policy,
        wake: &Wake,
        (waker, wakee): (&TaskState, &TaskState),
        allowed: &CpuMask,
    ) {
        assert!(self.len() < self.most, "a batch of {} questions", self.most);
        assert!(Arc::ptr_eq(host.topology(), &self.topology));
        assert_eq!(allowed.words().len(), host.idle_words().len());
        let mut wakee = *wakee;
        wakee.lend(host.place_process(&wakee, &mut self.image));
        wakee.lend_group(host.place_group(&wakee, &mut self.image));
        let host = host.place(self.placed, &mut self.image);
        wakee.allow(allowed, self.image.push(allowed.words()));
        let at = self.questions_at + (self.len() * size_of::<ffi::Question>()) as u64;
        self.llcs_at.push(host.llcs);
        let question = ffi::Question {
            host,
            policy: *policy.raw(),
            wake: wake.raw(),
            waker: must_cast(*waker),
            wakee: must_cast(wakee),
            verdict: ffi::Verdict::zeroed(),
        };
        self.image.put(at, &question);
    }

    /// Number of questions.
    pub fn len(&self) -> usize {
        self.llcs_at.len()
    }

    /// True if the batch has no question yet.
    pub fn is_empty(&self) -> bool {
        self.llcs_at.is_empty()
    }

    /// The bytes at the base address before the questions are answered.
    pub fn image(&self) -> &[u8] {
        self.image.bytes()
    }

    /// Address of the array of `struct perch_question`.
    pub fn questions_at(&self) -> u64 {
        self.questions_at
    }

    /// The answer to a question, from what lies at the base address since; `None` when that is
    /// too short, there is no such question, or the reason's number is unknown.
    pub fn answer(&self, memory: &[u8], index: usize) -> Option<Answer> {
        let llcs_at = self.image.offset(*self.llcs_at.get(index)?);
        let at = self.image.offset(self.questions_at) + index * size_of::<ffi::Question>();
        let q: ffi::Question = read(memory, at)?;
        let llc =
            |index| -> Option<ffi::Llc> { read(memory, llcs_at + index * size_of::<ffi::Llc>()) };
        let idle_cores = (0..self.topology.nr_shared())
            .map(|index| Some(llc(index)?.idle_cores != 0))
            .collect::<Option<_>>()?;
        Some(Answer {
            verdict: Verdict::from_raw(&q.verdict)?,
            waker: must_cast::<_, TaskState>(q.waker).outside(),
            wakee: must_cast::<_, TaskState>(q.wakee).outside(),
            idle_cores,
        })
    }
}
