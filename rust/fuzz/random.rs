//! Random numbers for tests, always the same for a seed. The tests of record, wire and log include
//! this file.
#![allow(dead_code, reason = "each test program uses its own part")]

/// A small generator (`SplitMix64`).
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len().max(1) as u64) as usize)
    }

    /// Bytes that cannot be compressed.
    pub fn noise(&mut self, size: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            (0..size.div_ceil(8)).flat_map(|_| self.next().to_be_bytes()).collect();
        bytes.truncate(size);
        bytes
    }
}
