//! The partition of every key of a column.

use std::num::NonZero;
use std::str::FromStr;

use super::column::{Column, Values, offset32, offset64};
use super::error::KernelError;
use super::lanes::murmur2_blocks;
use crate::crc::crc32;
use crate::partitioner::{fnv1a, murmur2};

/// A client's function from a key to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioner {
    /// Java's default: murmur2 without its sign bit.
    Murmur2,
    /// librdkafka's `consistent`: CRC-32, unsigned.
    Crc32,
    /// Sarama's, and librdkafka's `fnv1a`: the absolute value of the signed FNV-1a.
    Fnv1a,
}

/// The name of an unknown partitioner.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown partitioner {0:?}; there are murmur2, crc32 and fnv1a")]
pub struct UnknownPartitioner(String);

impl FromStr for Partitioner {
    type Err = UnknownPartitioner;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "murmur2" => Ok(Self::Murmur2),
            "crc32" => Ok(Self::Crc32),
            "fnv1a" => Ok(Self::Fnv1a),
            _ => Err(UnknownPartitioner(name.to_owned())),
        }
    }
}

/// The partition of each row of `keys`; unspecified for a null key.
pub fn partitions(
    keys: &Column<'_>,
    num_partitions: NonZero<u32>,
    partitioner: Partitioner,
) -> Result<Vec<i32>, KernelError> {
    let remainder = Remainder::new(num_partitions);
    match partitioner {
        Partitioner::Murmur2 => by_murmur2(keys, remainder),
        Partitioner::Crc32 => each(keys, |key| remainder.of(crc32(key))),
        Partitioner::Fnv1a => each(keys, |key| remainder.of((fnv1a(key) as i32).unsigned_abs())),
    }
}

fn by_murmur2(keys: &Column<'_>, remainder: Remainder) -> Result<Vec<i32>, KernelError> {
    let of = |hash| remainder.of(hash & 0x7fff_ffff);
    let mut found = Vec::with_capacity(keys.len());
    let extend = |hashes: &[u32]| found.extend(hashes.iter().map(|hash| of(*hash) as i32));
    match keys.values() {
        Values::Offsets32(at, data) => murmur2_blocks(&at[..=keys.len()], offset32, data, extend)?,
        Values::Offsets64(at, data) => murmur2_blocks(&at[..=keys.len()], offset64, data, extend)?,
        _ => return each(keys, |key| of(murmur2(key))),
    }
    Ok(found)
}

#[inline]
fn each(keys: &Column<'_>, partition: impl Fn(&[u8]) -> u32) -> Result<Vec<i32>, KernelError> {
    let mut found = Vec::with_capacity(keys.len());
    keys.for_each(|key| found.push(partition(key) as i32))?;
    Ok(found)
}

/// The remainder by a constant divisor without a division, which would cost more than the hash.
///
/// With `reciprocal` = ⌊2³² / divisor⌋ (2³² − 1 for 1), `value * reciprocal / 2³²` is the quotient
/// or one less, so the result is the remainder, or the remainder plus the divisor.
#[derive(Clone, Copy, Debug)]
struct Remainder {
    divisor: u32,
    reciprocal: u32,
}

impl Remainder {
    fn new(divisor: NonZero<u32>) -> Self {
        let reciprocal = u32::try_from((1 << 32) / u64::from(divisor.get())).unwrap_or(u32::MAX);
        Self { divisor: divisor.get(), reciprocal }
    }

    #[inline]
    fn of(self, value: u32) -> u32 {
        let quotient = ((u64::from(value) * u64::from(self.reciprocal)) >> 32) as u32;
        let left = value.wrapping_sub(quotient.wrapping_mul(self.divisor));
        // If the divisor is not to be subtracted, the subtraction wraps to a larger number.
        left.min(left.wrapping_sub(self.divisor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainder_equals_that_of_a_division() {
        let edges = [0, 1, 2, 3, 7, 12, 1000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, u32::MAX];
        for divisor in edges.into_iter().filter_map(NonZero::new) {
            for value in edges {
                assert_eq!(Remainder::new(divisor).of(value), value % divisor, "{value} {divisor}");
            }
        }
    }
}
