//! The numbers of the descriptors that a forked child closes.
//!
//! The set is a bitmap by number. A bit is set after the open and cleared before the close, so in
//! the child no bit stands for another file: `fork` copies the descriptors before it copies the
//! memory.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const BITS: usize = u64::BITS as usize;
/// For a million descriptors: memory that is not touched costs nothing. The child keeps copies of
/// higher numbers.
const WORDS: usize = (1 << 20) / BITS;

static OPEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
/// Words up to the highest number that ever was in the set.
static USED: AtomicUsize = AtomicUsize::new(0);

fn place(descriptor: RawFd) -> Option<(usize, u64)> {
    let number = usize::try_from(descriptor).ok()?;
    (number / BITS < WORDS).then(|| (number / BITS, 1 << (number % BITS)))
}

pub(crate) fn insert(descriptor: RawFd) {
    let Some((word, bit)) = place(descriptor) else { return };
    USED.fetch_max(word + 1, Ordering::Relaxed);
    OPEN[word].fetch_or(bit, Ordering::Relaxed);
}

pub(crate) fn remove(descriptor: RawFd) {
    let Some((word, bit)) = place(descriptor) else { return };
    OPEN[word].fetch_and(!bit, Ordering::Relaxed);
}

/// Closes the descriptors of the parent and forgets them; in the child's only thread.
pub(crate) fn close_all() {
    let used = USED.swap(0, Ordering::Relaxed);
    for (index, word) in OPEN.iter().enumerate().take(used) {
        let mut bits = word.swap(0, Ordering::Relaxed);
        while bits != 0 {
            close(index * BITS + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

fn close(number: usize) {
    #[expect(unsafe_code, reason = "the owner is in memory that the child never drops")]
    // SAFETY: the number is of a `ForkClosed` of the parent. Those do not close it in the child,
    // whose generation is another one.
    unsafe {
        libc::close(number as RawFd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_beyond_the_bitmap_are_ignored() {
        for number in [-1, (WORDS * BITS) as RawFd, RawFd::MAX] {
            assert_eq!(place(number), None);
            insert(number);
            remove(number);
        }
        assert_eq!(place((WORDS * BITS) as RawFd - 1), Some((WORDS - 1, 1 << (BITS - 1))));
    }
}
