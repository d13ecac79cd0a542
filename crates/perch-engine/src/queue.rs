// SPDX-License-Identifier: GPL-2.0-or-later
//! The event queue: the earliest event comes out first; equals come out in the order in which they
//! were pushed.
//!
//! A radix queue (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster Algorithms for the Shortest Path
//! Problem", 1990) with digits of six bits: an event waits at the highest digit in which its time
//! differs from now, and moves to lower digits as that time comes near. Such a queue needs only
//! that simulated time never goes back. A four-way heap took a sixth of a run at 64 CPUs, and more
//! with every doubling: each level of a heap is a comparison that the processor cannot predict.
//! This queue moves an event two or three times, however many events are pending.
//!
//! The queue's memory is proportional to the number of events that are pending at once, never to
//! the number of those that have passed.

/// Something that is going to happen. The owner of the queue chooses what `key`, `tag` and `kind`
/// mean; the fields say what the simulator uses them for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Simulated time at which the event happens, nanoseconds.
    pub at_ns: u64,
    /// The CPU or the task that the event is about.
    pub key: u32,
    /// Generation of the CPU's segment or of the task's timer. It tells an event that something has
    /// overtaken, such as the end of a segment that was preempted, from the current one.
    pub tag: u32,
    /// The kind of the event.
    pub kind: u8,
}

/// Bits of a digit: as many slots as a word has bits, so that one instruction finds the first
/// that is occupied.
const BITS: usize = 6;
/// Slots of a level.
const SLOTS: usize = 1 << BITS;
/// Levels that cover 64 bits of time.
const LEVELS: usize = 64usize.div_ceil(BITS);
/// End of a list.
const END: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    event: Event,
    next: u32,
}

/// The events of a slot in the order of their arrival; the list means nothing while the slot is
/// empty.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

/// The events that are pending.
pub struct EventQueue {
    /// Time of the event that was popped last; no pending event is earlier.
    now_ns: u64,
    /// Levels that have an occupied slot, a bit for each level.
    levels: u32,
    /// Occupied slots of each level, a bit for each slot.
    occupied: [u64; LEVELS],
    lists: Box<[[List; SLOTS]; LEVELS]>,
    nodes: Vec<Node>,
    /// First of the linked nodes that are not in use.
    free: u32,
}

/// The numbers of the bits that are set in a word, from the lowest.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    let rest = std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
    rest.take_while(|&word| word != 0).map(|word| word.trailing_zeros() as usize)
}

impl EventQueue {
    /// An empty queue with room for `capacity` events before it allocates again.
    pub fn with_capacity(capacity: usize) -> EventQueue {
        EventQueue {
            now_ns: 0,
            levels: 0,
            occupied: [0; LEVELS],
            lists: Box::new([[List { first: END, last: END }; SLOTS]; LEVELS]),
            nodes: Vec::with_capacity(capacity),
            free: END,
        }
    }

    /// Adds an event behind all others of the same time.
    ///
    /// # Panics
    /// When its time is before that of the last event popped: the past cannot be changed.
    #[inline]
    pub fn push(&mut self, event: Event) {
        assert!(event.at_ns >= self.now_ns, "an event of the past");
        let node = Node { event, next: END };
        let index = self.free;
        if index == END {
            self.nodes.push(node);
            self.link(self.nodes.len() as u32 - 1, event.at_ns);
        } else {
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            self.link(index, event.at_ns);
        }
    }

    /// Time of the earliest event: for tests, which stop there. A run looks at the time and takes
    /// the event in one step, see [`EventQueue::pop_until`].
    pub fn next_at(&self) -> Option<u64> {
        let level = (self.levels != 0).then(|| self.levels.trailing_zeros() as usize)?;
        let slot = self.occupied[level].trailing_zeros() as usize;
        self.list(level, slot).map(|event| event.at_ns).min()
    }

    /// All pending events, in no particular order: for tests.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        bits(self.levels.into()).flat_map(move |level| {
            let slots = bits(self.occupied[level]);
            slots.flat_map(move |slot| self.list(level, slot))
        })
    }

    /// The events of an occupied slot, by arrival.
    fn list(&self, level: usize, slot: usize) -> impl Iterator<Item = Event> + '_ {
        let List { first, last } = self.lists[level][slot];
        let next = move |&at: &u32| (at != last).then(|| self.nodes[at as usize].next);
        std::iter::successors(Some(first), next).map(|at| self.nodes[at as usize].event)
    }

    /// Appends a node, whose `next` is [`END`], to the list of its slot. Events of one moment are
    /// always in one slot, and the queue moves lists from their beginning, so their order stays.
    #[inline]
    fn link(&mut self, index: u32, at_ns: u64) {
        let highest = 63 - ((at_ns ^ self.now_ns) | 1).leading_zeros() as usize;
        let level = highest / BITS;
        let slot = (at_ns >> (level * BITS)) as usize % SLOTS;
        let list = &mut self.lists[level][slot];
        if self.occupied[level] >> slot & 1 == 0 {
            self.occupied[level] |= 1 << slot;
            self.levels |= 1 << level;
            list.first = index;
        } else {
            self.nodes[list.last as usize].next = index;
        }
        list.last = index;
    }

    /// Takes the earliest event, if its time is at most `until_ns`.
    #[inline]
    pub fn pop_until(&mut self, until_ns: u64) -> Option<Event> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let slot = self.occupied[level].trailing_zeros() as usize;
        let List { first, last } = self.lists[level][slot];
        let Node { event, next } = self.nodes[first as usize];
        // The events of a slot on the lowest level are all of one moment.
        if level > 0 && first != last {
            return self.pop_among(level, slot, until_ns);
        }
        if event.at_ns > until_ns {
            return None;
        }
        if first == last {
            self.vacate(level, slot);
        } else {
            self.lists[level][slot].first = next;
        }
        self.release(first, event.at_ns);
        Some(event)
    }

    /// Exchanges the event that was popped last for the event of the least `rank` that is pending
    /// for the same moment, if that rank is lower. A caller so gets an order among equals that does
    /// not depend on when each was pushed.
    #[inline]
    pub fn exchange_for_least<R: Ord>(
        &mut self,
        event: Event,
        rank: impl Fn(&Event) -> R,
    ) -> Event {
        // All other events that are pending for this moment have come down to the lowest level.
        let slot = self.now_ns as usize % SLOTS;
        if self.occupied[0] >> slot & 1 == 0 {
            return event;
        }
        let List { first, last } = self.lists[0][slot];
        let (mut least, mut at) = (first, first);
        while at != last {
            at = self.nodes[at as usize].next;
            if rank(&self.nodes[at as usize].event) < rank(&self.nodes[least as usize].event) {
                least = at;
            }
        }
        let other = &mut self.nodes[least as usize].event;
        if other.at_ns == event.at_ns && rank(other) < rank(&event) {
            std::mem::replace(other, event)
        } else {
            event
        }
    }

    /// Takes the earliest event out of a slot with several, and moves the others to lower levels.
    fn pop_among(&mut self, level: usize, slot: usize, until_ns: u64) -> Option<Event> {
        let first = self.lists[level][slot].first;
        let mut earliest = first;
        let mut at = first;
        while at != END {
            let node = &self.nodes[at as usize];
            if node.event.at_ns < self.nodes[earliest as usize].event.at_ns {
                earliest = at;
            }
            at = node.next;
        }
        let event = self.nodes[earliest as usize].event;
        if event.at_ns > until_ns {
            return None;
        }
        self.vacate(level, slot);
        self.now_ns = event.at_ns;
        let mut at = first;
        while at != END {
            let node = &mut self.nodes[at as usize];
            let (at_ns, next) = (node.event.at_ns, std::mem::replace(&mut node.next, END));
            if at != earliest {
                self.link(at, at_ns);
            }
            at = next;
        }
        self.release(earliest, event.at_ns);
        Some(event)
    }

    /// Notes that a slot has become empty.
    #[inline]
    fn vacate(&mut self, level: usize, slot: usize) {
        self.occupied[level] &= !(1 << slot);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// Sets the time to that of a node's event, and frees the node.
    #[inline]
    fn release(&mut self, index: u32, at_ns: u64) {
        self.now_ns = at_ns;
        self.nodes[index as usize].next = self.free;
        self.free = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{RngCore, SeedableRng};

    fn event(at_ns: u64, key: u32) -> Event {
        Event { at_ns, kind: 3, key, tag: key }
    }

    /// Random pushes and pops, held against a list sorted by time and arrival.
    #[test]
    fn pops_by_time_then_by_arrival() {
        for seed in 0..200 {
            let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut queue = EventQueue::with_capacity(4);
            let mut model = std::collections::BTreeMap::<(u64, u32), ()>::new();
            let mut now_ns = 0;
            // The times range from many equal ones to some that differ in their highest digits.
            let spread = 1u64 << (seed % 60);
            for key in 0..1000u32 {
                let first = model.first_key_value().map(|(first, ())| first.0);
                assert_eq!(queue.next_at(), first, "seed {seed}");
                assert_eq!(queue.iter().count(), model.len(), "seed {seed}");
                if rng.next_u64() % 5 < 3 {
                    let at_ns = now_ns + rng.next_u64() % spread;
                    queue.push(event(at_ns, key));
                    model.insert((at_ns, key), ());
                } else {
                    let until_ns = now_ns + rng.next_u64() % spread;
                    let expected = model.first_key_value().map(|(&first, ())| first);
                    let expected = expected.filter(|&(at_ns, _)| at_ns <= until_ns);
                    let popped = queue.pop_until(until_ns);
                    assert_eq!(popped, expected.map(|(at, key)| event(at, key)), "seed {seed}");
                    if let Some(first) = expected {
                        now_ns = first.0;
                        model.remove(&first);
                    }
                }
            }
            let left: Vec<_> = std::iter::from_fn(|| queue.pop_until(u64::MAX)).collect();
            let expected: Vec<_> = model.keys().map(|&(at, key)| event(at, key)).collect();
            assert_eq!(left, expected, "seed {seed}");
        }
    }

    #[test]
    fn equals_can_be_had_by_rank() {
        for seed in 0..50 {
            let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut queue = EventQueue::with_capacity(0);
            let mut expected: Vec<(u64, u32)> =
                (0..200).map(|_| (rng.next_u64() % 40, (rng.next_u64() % 1000) as u32)).collect();
            for &(at_ns, key) in &expected {
                queue.push(event(at_ns * 1000, key));
            }
            expected.sort_unstable();
            let popped: Vec<_> = std::iter::from_fn(|| {
                queue.pop_until(u64::MAX).map(|e| queue.exchange_for_least(e, |e| e.key))
            })
            .map(|e| (e.at_ns / 1000, e.key))
            .collect();
            assert_eq!(popped, expected, "seed {seed}");
        }
    }

    #[test]
    fn memory_is_that_of_what_is_pending() {
        let mut queue = EventQueue::with_capacity(0);
        for i in 0..100 {
            queue.push(event(i, i as u32));
        }
        for i in 100..100_000 {
            assert_eq!(queue.pop_until(u64::MAX).map(|e| e.at_ns), Some(i - 100));
            queue.push(event(i, i as u32));
        }
        assert_eq!(queue.nodes.len(), 100);
    }

    #[test]
    #[should_panic(expected = "an event of the past")]
    fn refuses_an_event_of_the_past() {
        let mut queue = EventQueue::with_capacity(0);
        queue.push(event(5, 0));
        queue.pop_until(5);
        queue.push(event(4, 0));
    }
}
