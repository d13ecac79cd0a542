// SPDX-License-Identifier: GPL-2.0-only
//! The event queue: earliest first, arrival order among equals.
//!
//! A four-way heap: half the levels of a binary heap, and the four children of a node share a
//! cache line or two. Memory is proportional to what is pending, never to what has passed.

/// What is about to happen. `key` says to whom (a CPU or a task), `tag` tells an event that was
/// overtaken (a segment that was preempted) from the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, nanoseconds.
    pub at_ns: u64,
    /// Kind, chosen by the owner of the queue.
    pub kind: u8,
    /// CPU or task.
    pub key: u32,
    /// Generation of the CPU's segment or the task's timer.
    pub tag: u32,
}

#[derive(Clone, Copy)]
struct Node {
    /// Time, arrival number and kind in one number: a single comparison, without a branch,
    /// orders any two events.
    order: u128,
    key: u32,
    tag: u32,
}

/// Pending events.
#[derive(Default)]
pub struct EventQueue {
    heap: Vec<Node>,
    arrivals: u64,
}

const ARITY: usize = 4;

fn event_of(node: &Node) -> Event {
    Event {
        at_ns: (node.order >> 64) as u64,
        kind: node.order as u8,
        key: node.key,
        tag: node.tag,
    }
}

impl EventQueue {
    /// An empty queue with room for `capacity` events.
    pub fn with_capacity(capacity: usize) -> EventQueue {
        EventQueue { heap: Vec::with_capacity(capacity), arrivals: 0 }
    }

    /// Time of the earliest event.
    pub fn next_at(&self) -> Option<u64> {
        self.heap.first().map(|n| (n.order >> 64) as u64)
    }

    /// All pending events, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.heap.iter().map(event_of)
    }

    /// Adds an event behind all others of the same time.
    pub fn push(&mut self, event: Event) {
        self.arrivals += 1;
        let order = u128::from(event.at_ns) << 64
            | u128::from(self.arrivals) << 8
            | u128::from(event.kind);
        let node = Node { order, key: event.key, tag: event.tag };
        let mut hole = self.heap.len();
        self.heap.push(node);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent].order < node.order {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = node;
    }

    /// Takes the earliest event.
    pub fn pop(&mut self) -> Option<Event> {
        let last = self.heap.pop()?;
        let top = match self.heap.first() {
            None => last,
            Some(&top) => {
                self.sift_down(last);
                top
            }
        };
        Some(event_of(&top))
    }

    /// Puts `node` where it belongs, starting with the root as the hole.
    fn sift_down(&mut self, node: Node) {
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            if first >= heap.len() {
                break;
            }
            let end = (first + ARITY).min(heap.len());
            let mut least = first;
            for child in first + 1..end {
                least = if heap[child].order < heap[least].order { child } else { least };
            }
            if node.order < heap[least].order {
                break;
            }
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = node;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{RngCore, SeedableRng};

    #[test]
    fn pops_by_time_then_by_arrival() {
        for seed in 0..50 {
            let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut queue = EventQueue::default();
            let mut expected = Vec::new();
            let mut popped = Vec::new();
            for key in 0..500u32 {
                let at_ns = rng.next_u64() % 40;
                queue.push(Event { at_ns, kind: 3, key, tag: key });
                expected.push((at_ns, key));
            }
            expected.sort();
            while let Some(event) = queue.pop() {
                assert_eq!((event.kind, event.tag), (3, event.key));
                popped.push((event.at_ns, event.key));
            }
            assert_eq!(popped, expected, "seed {seed}");
        }
    }
}
