// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs of tasks on other computers, which have a CPU for everybody: their work takes time and
//! nothing else.

use perch_workload::Op;

use super::Interpreter;

/// What becomes of a task on another computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
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
        task: u32,
        now_ns: u64,
        mut send: impl FnMut(u32, u32),
    ) -> Outside {
        let t = &mut self.threads[task as usize];
        loop {
            match t.program[t.pc as usize] {
                Op::Run(time) | Op::Kernel(time) | Op::Sleep(time) => {
                    t.pc += 1;
                    return Outside::Until(now_ns + time.sample(&mut t.random).max(1));
                }
                Op::Send { channel, lines, .. } => {
                    t.pc += 1;
                    send(channel, lines);
                }
                Op::Receive { channel } => {
                    let c = &mut self.channels[channel as usize];
                    if c.messages.pop_front().is_none() {
                        c.waiting.push_back(task);
                        return Outside::Waits;
                    }
                    c.taken += 1;
                    t.pc += 1;
                }
                Op::Count => {
                    t.pc += 1;
                    self.counted += 1;
                }
                Op::Jump(pc) => t.pc = pc,
                Op::Repeat { to, times } => {
                    t.rounds += 1;
                    if t.rounds < times {
                        t.pc = to;
                    } else {
                        t.rounds = 0;
                        t.pc += 1;
                    }
                }
                Op::Exit => return Outside::Ends,
                op => unreachable!("{op:?} on another computer"),
            }
        }
    }
}
