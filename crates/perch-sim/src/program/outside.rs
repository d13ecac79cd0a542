// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs of tasks on other computers, which have a CPU for everybody: their work takes time and
//! nothing else.

use perch_workload::Op;

use super::channel::Channels;
use super::tally::Tally;
use super::thread::Thread;
use crate::id::ChannelId;

/// The reason why a task on another computer stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideStop {
    /// It is busy, or sleeps, until this moment, nanoseconds.
    Until(u64),
    /// It waits for a message.
    Waits,
    Ends,
}

/// A task on another computer goes on, until something there takes time or it waits. It calls `send`
/// for each message that it sends, with the channel and the message's cache lines.
pub fn run(
    thread: &mut Thread,
    channels: &mut Channels,
    tally: &mut Tally,
    now_ns: u64,
    mut send: impl FnMut(ChannelId, u32),
) -> OutsideStop {
    loop {
        match *thread.op() {
            Op::Run(time) | Op::Kernel(time) | Op::Sleep(time) => {
                thread.step();
                return OutsideStop::Until(now_ns + thread.sample(time).max(1));
            }
            Op::Send { channel, lines, .. } => {
                thread.step();
                send(ChannelId(channel), lines);
            }
            Op::Receive { channel } => {
                if !channels.take(ChannelId(channel), thread.task) {
                    return OutsideStop::Waits;
                }
                thread.step();
            }
            Op::Count => {
                thread.step();
                tally.count();
            }
            Op::Jump(pc) => thread.pc = pc,
            Op::Repeat { to, times } => thread.repeat(to, times),
            Op::Exit => return OutsideStop::Ends,
            op => unreachable!("{op:?} on another computer"),
        }
    }
}
