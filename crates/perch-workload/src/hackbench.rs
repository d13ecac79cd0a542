// SPDX-License-Identifier: GPL-2.0-or-later
//! hackbench (rt-tests), processes or threads, sockets or pipes: every sender of a group writes to
//! each of the group's receivers in turn, over and over.
//!
//! A parent forks all tasks, a group's receivers before its senders, and waits until each task has
//! said that it is ready. The parent then starts the clock and lets all of them go with a single
//! byte; the clock stops when the last task has ended. Each receiver has one socket or pipe, to which
//! all senders of its group write. A sender sleeps while it is full, and with more tasks than CPUs
//! it is full most of the time. The score is the time in seconds, which the
//! tool prints as "Time".

use perch_engine::Dist;

use crate::keys::Keys;
use crate::workload::{MAX_TASKS, Workload, one_process_each};
use crate::{Demand, Measure, Op, SpecError, TaskSpec};

/// A socket's send buffer, `net.core.wmem_default`: 256 packets of 256 bytes as the kernel
/// accounts them, on 64-bit machines.
const SEND_BUFFER: u64 = 212_992;
/// Bytes that a packet occupies beside its data: `struct sk_buff` (232 bytes, rounded up to cache
/// lines), which the kernel accounts with every packet.
const PACKET_BYTES: u64 = 256;
/// Bytes of `struct skb_shared_info`, which the kernel allocates behind the data.
const SHARED_INFO_BYTES: u64 = 320;
/// Bytes of the largest message that the kernel keeps in one piece of memory (`SKB_MAX_ALLOC` with
/// pages of 4 KiB).
const MAX_MESSAGE: u64 = 16_384 - SHARED_INFO_BYTES;
/// Bytes of a pipe's buffer: a page. Larger messages are not written in one piece.
const PIPE_BUFFER: u64 = 4096;
/// Bytes that the sender, and again the receiver, copies in a nanosecond at full capacity: a rough
/// figure.
const COPIED_PER_NS: u64 = 8;
/// Work of forking a child, of the child's way to "ready", and of its way from the last message to
/// its end: rough figures. The first two are over before the clock starts.
const FORK_NS: u64 = 100_000;
const READY_NS: u64 = 50_000;
const EXIT_NS: u64 = 100_000;

/// Bytes of the send buffer that a message takes. The allocator rounds the data with its
/// `skb_shared_info` up to its next size; sizes are powers of two here.
fn packet_bytes(size: u64) -> u64 {
    let data = size.next_multiple_of(64) + SHARED_INFO_BYTES;
    data.next_power_of_two() + PACKET_BYTES
}

/// Messages that a socket holds: the kernel lets a packet in as long as the buffer is not full.
fn room(size: u64) -> u64 {
    SEND_BUFFER.div_ceil(packet_bytes(size))
}

/// Numbers of the channels between the parent and all its children.
struct Common {
    /// A child says that it is ready.
    ready: u32,
    /// The parent lets all children go.
    go: u32,
    /// A child says that it is done.
    done: u32,
}

impl Common {
    /// The channels that follow the sockets, of which there are so many.
    fn after(sockets: u32) -> Common {
        Common { ready: sockets, go: sockets + 1, done: sockets + 2 }
    }

    /// The program of a child whose part is `body`.
    fn child(&self, body: Vec<Op>) -> Vec<Op> {
        let tell = |channel| Op::Send { channel, lines: 1, sync: true };
        let mut program = vec![
            Op::Run(Dist::around(READY_NS, 20)),
            tell(self.ready),
            Op::Receive { channel: self.go },
        ];
        program.extend(body);
        program.extend([Op::Run(Dist::around(EXIT_NS, 20)), tell(self.done), Op::Exit]);
        program
    }

    /// The program of the parent of so many children.
    fn parent(&self, children: u32) -> Vec<Op> {
        let mut parent = Vec::with_capacity(2 * children as usize + 8);
        for child in 0..children {
            parent.extend([Op::Run(Dist::around(FORK_NS, 20)), Op::Fork(child)]);
        }
        let hear_all = |parent: &mut Vec<Op>, channel| {
            let to = parent.len() as u32;
            let times = children.into();
            parent.extend([Op::Receive { channel }, Op::Repeat { to, times }]);
        };
        hear_all(&mut parent, self.ready);
        parent.push(Op::StartClock);
        parent.push(Op::Release { channel: self.go, readers: children });
        hear_all(&mut parent, self.done);
        parent.extend([Op::StopClock, Op::Exit]);
        parent
    }
}

/// Builds hackbench.
pub(crate) fn hackbench(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let groups = keys.count("groups", 10, 1, MAX_TASKS / 2)?;
    let fds = keys.number("fds", 20, 1, 10_000)?;
    let loops = keys.number("loops", 100, 1, 1_000_000_000)?;
    let pipe = keys.is_on("pipe")?;
    let size = keys.number("size", 100, 1, if pipe { PIPE_BUFFER } else { MAX_MESSAGE })?;
    let threads = keys.is_on("threads")?;
    let allowed = keys.cpus()?;
    let n = 2 * groups * fds;
    if n >= MAX_TASKS {
        return Err(SpecError::HackbenchTasks { groups, fds, tasks: n });
    }
    let counts = Demand {
        tasks: n + 1,
        // A receiver has its own, the senders of a group share theirs, and the parent forks all.
        operations: 10 * groups * fds + groups * (2 * fds + 7) + 2 * n,
        channels: groups * fds + 3,
        ..Demand::default()
    };
    keys.afford(&[("groups", &groups), ("fds", &fds)], counts)?;
    // Work at full capacity, to be fitted to a machine; these are rough figures for a core of
    // 2 GHz: a write to or read from a socket takes a few thousand cycles. In a guest with Linux 6.18
    // a write and a read of 100 bytes took 178 ns each with a pipe, 428 and 463 with a socket.
    // The receiver fetches, beside the data, the sk_buff, the first line of `skb_shared_info` and
    // the socket's queue; of a pipe its lock, its positions and the buffer (a guess).
    let [write_ns, read_ns, lines] = if pipe { [750, 500, 3] } else { [1800, 1300, 6] };
    let write_ns = keys.number("write_ns", write_ns, 1, 1_000_000_000)?;
    let read_ns = keys.number("read_ns", read_ns, 1, 1_000_000_000)?;
    let lines = keys.number("lines", lines + size.div_ceil(64), 0, 1_000_000)? as u32;
    // Lines of its own that a task uses each time: counted in Linux 6.1 and 7.2.
    let footprint = keys.number("footprint", 90, 0, 1_000_000)? as u32;
    let room = room(size) as u32;
    let copy_ns = size / COPIED_PER_NS;
    let receivers = (groups * fds) as u32;
    let (sockets, pipes) = if pipe { (0, receivers) } else { (receivers, 0) };
    let common = Common::after(sockets);
    let task =
        |program: std::sync::Arc<[Op]>, start| TaskSpec::new(program, &allowed, footprint, start);
    let mut tasks = Vec::with_capacity(n as usize + 1);
    for group in 0..groups as u32 {
        let sockets = (0..fds as u32).map(|fd| group * fds as u32 + fd);
        for channel in sockets.clone() {
            let body = vec![
                if pipe { Op::ReadPipe { pipe: channel } } else { Op::Receive { channel } },
                Op::Run(Dist::around(read_ns + copy_ns, 5)),
                Op::Count,
                Op::Repeat { to: 3, times: fds * loops },
            ];
            tasks.push(task(common.child(body).into(), None));
        }
        let mut body = Vec::with_capacity(2 * fds as usize + 1);
        for channel in sockets {
            let fits = (PIPE_BUFFER / size) as u32;
            let write = match pipe {
                true => Op::WritePipe { pipe: channel, lines, fits },
                // unix_write_space: writable again with at most a quarter of the buffer in use.
                false => Op::Write { channel, lines, room, low: room / 4, sync: true },
            };
            body.extend([Op::Run(Dist::around(write_ns + copy_ns, 5)), write]);
        }
        body.push(Op::Repeat { to: 3, times: loops });
        let sender: std::sync::Arc<[Op]> = common.child(body).into();
        tasks.extend((0..fds).map(|_| task(sender.clone(), None)));
    }
    let parent = common.parent(n as u32);
    tasks.push(task(parent.into(), Some(Dist::Uniform(0, 1_000_000))));
    // With -T all of them are threads of one process.
    let mut spaces = one_process_each(&mut tasks);
    if threads {
        tasks.iter_mut().for_each(|task| task.space = Some(0));
        spaces.truncate(1);
    }
    Ok(Workload {
        channels: sockets as usize + 3,
        pipes: pipes as usize,
        ..Workload::of(tasks, spaces, Measure::time())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_one_address_space() {
        let machine = perch_machine::resolve("kunpeng920").unwrap();
        let spaces = |spec| {
            let workload = Workload::parse(spec, &machine).unwrap();
            let last = workload.tasks.last().and_then(|task| task.space);
            (workload.tasks.len(), workload.spaces.len(), last)
        };
        assert_eq!(spaces("hackbench:groups=1"), (41, 41, Some(40)));
        assert_eq!(spaces("hackbench:groups=1,threads=yes"), (41, 1, Some(0)));
        for (spec, expected) in [
            ("hackbench:threads=1", "threads=1: expected yes or no"),
            // More than a page is not written in one piece.
            ("hackbench:pipe=yes,size=4097", "size=4097: expected a whole number from 1 to 4096"),
        ] {
            let why = Workload::parse(spec, &machine).unwrap_err();
            assert!(why.to_string().contains(expected), "{why}");
        }
    }

    #[test]
    fn a_socket_holds_what_the_kernel_lets_in() {
        // 768 bytes a packet of 100 bytes: 277 of them leave room for one more.
        assert_eq!((packet_bytes(100), room(100)), (768, 278));
        assert_eq!((packet_bytes(192), packet_bytes(193)), (768, 1280));
        assert_eq!(packet_bytes(MAX_MESSAGE), 16_384 + 256);
    }
}
