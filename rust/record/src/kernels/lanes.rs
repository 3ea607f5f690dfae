//! murmur2 of many keys at once: the crate's only unsafe code.
//!
//! Theory of operation. If keys are hashed one after another, the processor mispredicts the end of
//! each key, which costs more than the hash itself. So `LANES` keys are hashed in parallel, for as
//! many words as the longest one has; the hash of a finished key stays unchanged. The code works on
//! arrays of `LANES` numbers, which the compiler turns into vector instructions: AVX2 if the
//! processor has it.
//!
//! Two differences to the plain loop make all lanes execute the same instructions:
//! - A key without further words reads its last four bytes again, and the result is dropped.
//! - The one to three bytes after the last word are the upper bytes of those last four, so the tail
//!   is the same read, shifted. For a key shorter than four bytes this also reads bytes before it;
//!   only keys that end within the first four bytes of the data are hashed one by one.
//!
//! Words are read one at a time, because gather instructions are slower on processors with
//! mitigations against Downfall.

#![expect(
    unsafe_code,
    reason = "words are read without bounds checks, by a feature found at run time"
)]
#![expect(clippy::inline_always, reason = "vector instructions of a feature span no call")]

use super::error::KernelError;
use crate::partitioner::{MURMUR2_M as M, MURMUR2_SEED as SEED, murmur2};

/// Number of keys that are hashed in parallel.
const LANES: usize = 8;

/// Maximum rows of a block, whose offsets and hashes fit into the L1 cache.
const BLOCK_ROWS: usize = 1024;

/// Rows with checked offsets.
///
/// Invariant: `ends[0..=rows]` ascend, and the last of them is at most `data.len()`.
struct Block<'a> {
    ends: [u32; BLOCK_ROWS + 1],
    rows: usize,
    data: &'a [u8],
}

impl<'a> Block<'a> {
    /// The rows between `offsets`, at most `BLOCK_ROWS`; `None` if the offsets do not ascend, are
    /// outside `data`, or span 2 GiB.
    #[inline(always)]
    fn new<const N: usize>(
        offsets: &[[u8; N]],
        read: impl Fn([u8; N]) -> usize,
        data: &'a [u8],
    ) -> Option<Self> {
        let rows = offsets.len().checked_sub(1).filter(|rows| *rows <= BLOCK_ROWS)?;
        let (first, last) = (read(offsets[0]), read(offsets[rows]));
        // Include four bytes before the first row, if there are any, so that no row is special.
        let base = first.saturating_sub(4);
        let data = data.get(base..last)?;
        i32::try_from(data.len()).ok()?;
        let mut ends = [0; BLOCK_ROWS + 1];
        for (end, at) in ends.iter_mut().zip(offsets) {
            *end = read(*at).wrapping_sub(base) as u32;
        }
        // Not `all`: a loop without early exit is compiled to vector instructions.
        let is_sorted =
            offsets.windows(2).fold(true, |is, pair| is & (read(pair[0]) <= read(pair[1])));
        is_sorted.then_some(Self { ends, rows, data })
    }

    /// The hash of each row.
    #[inline(always)]
    fn murmur2(&self, hashes: &mut [u32; BLOCK_ROWS]) {
        let (groups, _) = hashes[..self.rows].as_chunks_mut::<LANES>();
        let in_step = groups.len() * LANES;
        for (group, hashes) in groups.iter_mut().enumerate() {
            let row = group * LANES;
            let (Some(starts), Some(ends)) =
                (self.ends[row..].first_chunk(), self.ends[row + 1..].first_chunk())
            else {
                return;
            };
            if ends[0] < 4 {
                self.one_by_one(row, hashes);
            } else {
                self.group(starts, ends, hashes);
            }
        }
        self.one_by_one(in_step, &mut hashes[in_step..self.rows]);
    }

    fn one_by_one(&self, first: usize, hashes: &mut [u32]) {
        for (hash, key) in hashes.iter_mut().zip(self.ends[first..].windows(2)) {
            *hash = murmur2(&self.data[key[0] as usize..key[1] as usize]);
        }
    }

    /// Hash `LANES` keys that do not end within the first four bytes.
    #[inline(always)]
    fn group(&self, starts: &[u32; LANES], ends: &[u32; LANES], hashes: &mut [u32; LANES]) {
        let sizes: [u32; LANES] = each_lane(|lane| ends[lane] - starts[lane]);
        let last: [u32; LANES] = each_lane(|lane| ends[lane] - 4);
        let steps = sizes.iter().fold(0, |most, size| most.max(size / 4));
        let mut hash = each_lane(|lane| SEED ^ sizes[lane]);
        let mut at = *starts;
        for _ in 0..steps {
            let place = each_lane(|lane| at[lane].min(last[lane]));
            let words = self.words(&place);
            hash = each_lane(|lane| {
                let mixed = words[lane].wrapping_mul(M);
                let mixed = (mixed ^ (mixed >> 24)).wrapping_mul(M);
                let next = hash[lane].wrapping_mul(M) ^ mixed;
                if place[lane] == at[lane] { next } else { hash[lane] }
            });
            at = each_lane(|lane| at[lane].wrapping_add(4));
        }
        let words = self.words(&last);
        *hashes = each_lane(|lane| {
            let tail = sizes[lane] % 4;
            let bytes = words[lane].wrapping_shr(32 - 8 * tail);
            let next = (hash[lane] ^ bytes).wrapping_mul(M);
            let hash = if tail > 0 { next } else { hash[lane] };
            let hash = (hash ^ (hash >> 13)).wrapping_mul(M);
            hash ^ (hash >> 15)
        });
    }

    /// Read little-endian words at these positions, each at most some row's end minus 4.
    #[inline(always)]
    fn words(&self, at: &[u32; LANES]) -> [u32; LANES] {
        each_lane(|lane| {
            debug_assert!(at[lane] as usize + 4 <= self.data.len());
            // SAFETY: `group` calls this with positions that are at most some row's end minus 4,
            // and by the invariant of `Block` no end is above `data.len()`. The read needs no
            // alignment.
            let word =
                unsafe { self.data.as_ptr().add(at[lane] as usize).cast::<[u8; 4]>().read() };
            little_endian(word)
        })
    }
}

#[inline(always)]
fn each_lane(mut lane: impl FnMut(usize) -> u32) -> [u32; LANES] {
    // `array::from_fn` is not always inlined, and no vector instruction spans a call.
    let mut found = [0; LANES];
    for (at, found) in found.iter_mut().enumerate() {
        *found = lane(at);
    }
    found
}

#[inline(always)]
#[expect(clippy::little_endian_bytes, reason = "murmur2 reads its input little-endian")]
fn little_endian(word: [u8; 4]) -> u32 {
    u32::from_le_bytes(word)
}

/// Call `each` with the hashes of the rows between `offsets`, block by block.
pub(super) fn murmur2_blocks<const N: usize>(
    offsets: &[[u8; N]],
    read: impl Fn([u8; N]) -> usize,
    data: &[u8],
    each: impl FnMut(&[u32]),
) -> Result<(), KernelError> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        return unsafe { blocks_avx2(offsets, read, data, each) };
    }
    blocks(offsets, read, data, each)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn blocks_avx2<const N: usize>(
    offsets: &[[u8; N]],
    read: impl Fn([u8; N]) -> usize,
    data: &[u8],
    each: impl FnMut(&[u32]),
) -> Result<(), KernelError> {
    blocks(offsets, read, data, each)
}

#[inline(always)]
fn blocks<const N: usize>(
    offsets: &[[u8; N]],
    read: impl Fn([u8; N]) -> usize,
    data: &[u8],
    mut each: impl FnMut(&[u32]),
) -> Result<(), KernelError> {
    let mut hashes = [0; BLOCK_ROWS];
    let rows = offsets.len().saturating_sub(1);
    for first in (0..rows).step_by(BLOCK_ROWS) {
        let count = BLOCK_ROWS.min(rows - first);
        let offsets = &offsets[first..=first + count];
        if let Some(block) = Block::new(offsets, &read, data) {
            block.murmur2(&mut hashes);
        } else {
            // Keys of gigabytes, or an invalid offset, whose row is found here.
            for ((hash, key), row) in hashes.iter_mut().zip(offsets.windows(2)).zip(first..) {
                let key = data.get(read(key[0])..read(key[1])).ok_or(KernelError::Outside(row))?;
                *hash = murmur2(key);
            }
        }
        each(&hashes[..count]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: [u8; 2]) -> usize {
        usize::from(u16::from_be_bytes(bytes))
    }

    #[test]
    fn keys_of_every_size_hash_as_if_hashed_one_by_one() {
        // Sizes 0 to 40 in an order that mixes them, from every distance to the start of the data.
        let data: Vec<u8> = (0..2000_u32).map(|byte| ((byte * 167) >> 3) as u8).collect();
        for lead in 0..9 {
            let mut offsets = vec![lead];
            for row in 0..75_u16 {
                offsets.push(offsets[usize::from(row)] + row * 23 % 41);
            }
            let bytes: Vec<_> = offsets.iter().map(|at| at.to_be_bytes()).collect();
            let mut found = Vec::new();
            murmur2_blocks(&bytes, read, &data, |hashes| found.extend_from_slice(hashes)).unwrap();
            for (hash, key) in found.iter().zip(offsets.windows(2)) {
                assert_eq!(*hash, murmur2(&data[usize::from(key[0])..usize::from(key[1])]));
            }
            assert_eq!(found.len(), 75);
        }
    }

    #[test]
    fn without_vector_instructions_the_hashes_are_the_same() {
        let data: Vec<u8> = (0..200).collect();
        let offsets: Vec<_> = (0..67_u16).map(|row| (row * 3).to_be_bytes()).collect();
        let (mut plain, mut fast) = (Vec::new(), Vec::new());
        blocks(&offsets, read, &data, |hashes| plain.extend_from_slice(hashes)).unwrap();
        murmur2_blocks(&offsets, read, &data, |hashes| fast.extend_from_slice(hashes)).unwrap();
        assert_eq!(plain, fast);
        assert_eq!(plain[65], murmur2(&data[195..198]));
    }

    #[test]
    fn the_first_wrong_offset_is_reported_by_its_row() {
        let data = [0; 100];
        for wrong in [0, 1, 900, 1023, 1024, 1500, 2000] {
            let mut offsets: Vec<_> = (0..2002_u16).map(|row| (row / 25).to_be_bytes()).collect();
            offsets[wrong + 1] = [0xff; 2];
            let found = murmur2_blocks(&offsets, read, &data, |_| {});
            assert_eq!(found, Err(KernelError::Outside(wrong)));
        }
    }
}
