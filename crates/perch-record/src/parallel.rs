// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader that spreads a recording's blocks over several threads.

use std::io::Read;
use std::sync::{Mutex, mpsc};

use crate::format::{Block, FormatError, Reader};

/// Hands every block of a recording to one of `jobs` threads, each with a state of its own that
/// `begin` makes and `step` changes; returns the states. Chance decides which thread gets which
/// block: the result that the caller makes of the states must not depend on it.
///
/// # Errors
/// Returns an error when the recording is damaged; of several damaged places the first.
pub(crate) fn in_parallel<R: Read, S: Send>(
    reader: &mut Reader<R>,
    jobs: usize,
    begin: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, &Block) -> Result<(), FormatError> + Sync,
) -> Result<Vec<S>, FormatError> {
    let (send, blocks) = mpsc::sync_channel::<Block>(jobs.max(1));
    let blocks = Mutex::new(blocks);
    let worker = || {
        let mut state = begin();
        let mut damage: Option<(u64, FormatError)> = None;
        loop {
            let block = blocks.lock().expect("nobody panics with it").recv();
            let Ok(block) = block else {
                return (state, damage);
            };
            // After a damaged block the thread still takes the other blocks: the reader waits to
            // send them.
            if damage.is_none() {
                damage = step(&mut state, &block).err().map(|e| (block.at, e));
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        let mut result = Ok(());
        while result.is_ok() {
            match reader.next_block() {
                Ok(Some(block)) => send.send(block).expect("the workers take all"),
                Ok(None) => break,
                Err(error) => result = Err(error),
            }
        }
        drop(send);
        let mut states = Vec::new();
        let mut damages = Vec::new();
        for worker in workers {
            let (state, damage) = worker.join().expect("a worker does not panic");
            states.push(state);
            damages.extend(damage);
        }
        // A damage that the reader itself met lies behind every block that the reader handed out.
        match damages.into_iter().min_by_key(|(at, _)| *at) {
            Some((_, error)) => Err(error),
            None => result.map(|()| states),
        }
    })
}
