// SPDX-License-Identifier: GPL-2.0-or-later
//! Marks: instructions of a guest's program at which counting begins and ends (`plugin/code.h`).

/// Slots that a program can count into.
pub const SLOTS: u8 = 32;

/// The meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Counting into a slot begins, unless something is counted already.
    Start(u8),
    /// An operation of the program is done.
    Round,
    /// Counting into a slot ends.
    Stop(u8),
    /// Caches begin, empty, and modelled time where it was asked for. The first mark of any kind does
    /// this as well.
    Watch,
    /// Lines are not followed any more. Modelled time goes on, and a line costs nothing.
    Leave,
}

/// Executes a mark. It has no effect but where a plugin looks for it, and costs an instruction.
/// Returns false where there are no marks: on other CPUs than x86-64's, and for slots from
/// [`SLOTS`] on.
pub fn mark(mark: Mark) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        match mark {
            Mark::Start(slot) => x86::at(1, slot),
            Mark::Round => x86::at(3, 0),
            Mark::Stop(slot) => x86::at(2, slot),
            Mark::Watch => x86::at(4, 0),
            Mark::Leave => x86::at(5, 0),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = mark;
        false
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;

    /// `nopl 0x7065KKSS(%rax,%rax,1)`, in which KK is the kind of the mark and SS its slot.
    #[inline(never)]
    fn nop<const KIND: u8, const SLOT: u8>() {
        // SAFETY: the instruction does nothing. Other code is not moved across it, as asm! without
        // `nomem` may touch memory.
        unsafe {
            asm!(
                ".byte 0x0f, 0x1f, 0x84, 0x00, {slot}, {kind}, 0x65, 0x70",
                slot = const SLOT,
                kind = const KIND,
                options(nostack, preserves_flags)
            );
        }
    }

    /// The slot is a part of the instruction, so that each has its own.
    macro_rules! slots {
        ($kind:expr, $slot:expr; $($number:literal)*) => {
            match ($kind, $slot) {
                (3, _) => nop::<3, 0>(),
                (4, _) => nop::<4, 0>(),
                (5, _) => nop::<5, 0>(),
                $((1, $number) => nop::<1, $number>(), (2, $number) => nop::<2, $number>(),)*
                _ => return false,
            }
        };
    }

    pub fn at(kind: u8, slot: u8) -> bool {
        slots!(kind, slot; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
            28 29 30 31);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn every_slot_has_its_instruction() {
        for slot in 0..SLOTS {
            assert!(mark(Mark::Start(slot)) && mark(Mark::Stop(slot)));
        }
        assert!(mark(Mark::Round) && mark(Mark::Watch) && mark(Mark::Leave));
        assert!(!mark(Mark::Start(SLOTS)) && !mark(Mark::Stop(255)));
    }
}
