// SPDX-License-Identifier: GPL-2.0-or-later
//! A batch answered by the native policy, in the very bytes that were laid out.

use crate::ffi;
use crate::question::Batch;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory of this process in which a batch can lie.
pub struct Here(Vec<Line>);

impl Here {
    /// So many bytes, rounded up to whole cache lines.
    pub fn new(len: usize) -> Here {
        Here(vec![Line([0; 64]); len.div_ceil(64)])
    }

    /// The address at which the batch must be laid out.
    pub fn base(&self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// Copies the batch here, has it answered, and shows what lies here then.
    ///
    /// # Panics
    /// When the batch was laid out for another address or is too long.
    pub fn answer(&mut self, batch: &Batch) -> &[u8] {
        let (image, len) = (batch.image(), self.0.len() * 64);
        assert!(image.len() <= len, "{} bytes in {len}", image.len());
        let begin = batch.questions_at().wrapping_sub(self.base()) as usize;
        let end = begin.checked_add(batch.len() * size_of::<ffi::Question>());
        assert!(end.is_some_and(|end| end <= image.len()), "a batch of another place");
        let memory = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: the image fits, as do the questions in it, on a cache line; what their pointers
        // lead to lies here too (Batch::add), and the C code keeps none.
        unsafe {
            memory.copy_from_nonoverlapping(image.as_ptr(), image.len());
            let questions = memory.add(begin).cast::<ffi::Question>();
            for index in 0..batch.len() {
                let q = questions.add(index);
                ffi::perch_native_select(
                    &raw mut (*q).host,
                    &raw const (*q).policy,
                    &raw const (*q).wake,
                    &raw mut (*q).waker,
                    &raw mut (*q).wakee,
                    &raw mut (*q).verdict,
                );
            }
            std::slice::from_raw_parts(memory, len)
        }
    }
}
