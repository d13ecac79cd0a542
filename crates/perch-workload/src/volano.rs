// SPDX-License-Identifier: GPL-2.0-or-later
//! VolanoMark's loopback test: chat rooms of a Java server.
//!
//! As IBM's Linux Technology Center described it (Hartner, "VolanoMark 2.1.2 - Workload
//! Description"): 20 users a room, usually 10 rooms, messages of about 100 bytes. Each user is a
//! connection with four threads: the client's sender and receiver, and the server's receiver and
//! sender. A client's sender sends a message; the server's receiver of that connection wakes the
//! server's senders of the room's 19 other users, and each of these sends it to its client's
//! receiver. So a message is delivered 19 times.
//!
//! "Test users take turns": here a user sends again when it has got as many messages as a turn of
//! all others brings, 19. That is our reading. In the real test each user sends 100 messages; here
//! users go on until the measured time ends. The score is messages delivered a second.

use perch_engine::Dist;

use crate::keys::Keys;
use crate::workload::{MAX_TASKS, Workload};
use crate::{Demand, Measure, Op, Space, SpecError, TaskSpec};

/// Cache lines of its own that a Java thread uses each time it runs. A guess.
const FOOTPRINT: u32 = 128;
/// Cache lines of a message: those of its 100 bytes and of the socket, or of the Java monitor. A
/// guess.
const LINES: u32 = 12;

/// Builds the loopback test.
pub(crate) fn loopback(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let rooms = keys.number("rooms", 10, 1, 1000)?;
    let users = keys.number("users", 20, 2, 1000)?;
    let people = rooms * users;
    if people * 4 > MAX_TASKS {
        return Err(SpecError::VolanoThreads { rooms, users, threads: people * 4 });
    }
    let counts = Demand::new(4 * people, people * (2 * users + 16), 4 * people);
    keys.afford(&[("rooms", &rooms), ("users", &users)], counts)?;
    let allowed = keys.cpus()?;
    // Guesses of a JVM of 2005 on a core of 2009: a system call on a socket with Java's copying
    // around it, the server's work for a message, and its work for each user who gets the message.
    let socket = Op::Run(Dist::around(keys.number("socket_ns", 6000, 1, 1_000_000_000)?, 20));
    let parse = Op::Run(Dist::around(keys.number("parse_ns", 8000, 1, 1_000_000_000)?, 20));
    let notify = Op::Run(Dist::around(keys.number("notify_ns", 2000, 1, 1_000_000_000)?, 20));
    let send = |channel, sync| Op::Send { channel, lines: LINES, sync };
    let task = |program: Vec<Op>, space| TaskSpec {
        space: Some(space),
        ..TaskSpec::new(program, &allowed, FOOTPRINT, Some(Dist::Uniform(0, 10_000_000)))
    };
    let (client, server) = (0, 1);
    let mut tasks = Vec::with_capacity(4 * people as usize);
    for user in 0..people as u32 {
        let [up, queue, down, turn] = [0, 1, 2, 3].map(|i| 4 * user + i);
        let users = users as u32;
        let room = user / users * users..(user / users + 1) * users;
        let mut receiver = vec![Op::Receive { channel: up }, socket, parse];
        for other in room.filter(|&other| other != user) {
            receiver.extend([notify, send(4 * other + 1, false)]);
        }
        receiver.push(Op::Jump(0));
        let client_sender =
            vec![socket, send(up, true), Op::Receive { channel: turn }, Op::Jump(0)];
        let server_sender =
            vec![Op::Receive { channel: queue }, socket, send(down, true), Op::Jump(0)];
        let client_receiver = vec![
            Op::Receive { channel: down },
            socket,
            Op::Count,
            Op::Repeat { to: 0, times: u64::from(users) - 1 },
            send(turn, false),
            Op::Jump(0),
        ];
        tasks.extend([
            task(client_sender, client),
            task(client_receiver, client),
            task(receiver, server),
            task(server_sender, server),
        ]);
    }
    Ok(Workload {
        channels: 4 * people as usize,
        ..Workload::of(
            tasks,
            vec![Space::default(); 2],
            Measure::rate("messages", "messages/s", 1.0, 1.0),
        )
    })
}
