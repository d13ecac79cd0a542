// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs of tasks on other computers, which have a CPU for everybody: their work takes time and
//! nothing else.

use perch_workload::Op;

use crate::id::{ChannelId, TaskId};

use super::Interpreter;

/// The reason why a task on another computer stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideStop {
    /// It is busy, or sleeps, until this moment, nanoseconds.
    Until(u64),
    /// It waits for a message.
    Waits,
    /// It has ended.
    Ends,
}

impl Interpreter {
    /// A task on another computer goes on, until something there takes time or it waits. `send` has
    /// the messages that it sends, each a channel and cache lines.
    pub fn run_outside(
        &mut self,
        task: TaskId,
        now_ns: u64,
        mut send: impl FnMut(ChannelId, u32),
    ) -> OutsideStop {
        let t = &mut self.threads[task];
        loop {
            match *t.op() {
                Op::Run(time) | Op::Kernel(time) | Op::Sleep(time) => {
                    t.pc += 1;
                    return OutsideStop::Until(now_ns + time.sample(&mut t.random).max(1));
                }
                Op::Send { channel, lines, .. } => {
                    t.pc += 1;
                    send(ChannelId(channel), lines);
                }
                Op::Receive { channel } => {
                    let c = &mut self.channels[ChannelId(channel)];
                    if c.messages.pop_front().is_none() {
                        c.waiting.push_back(task);
                        return OutsideStop::Waits;
                    }
                    c.taken += 1;
                    t.pc += 1;
                }
                Op::Count => {
                    t.pc += 1;
                    self.counted += 1;
                }
                Op::Jump(pc) => t.pc = pc,
                Op::Repeat { to, times } => t.repeat(to, times),
                Op::Exit => return OutsideStop::Ends,
                op => unreachable!("{op:?} on another computer"),
            }
        }
    }
}
