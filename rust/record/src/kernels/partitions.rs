//! The partition of every key of a column.

use std::num::NonZero;
use std::str::FromStr;

use super::{Column, KernelError};
use crate::partitioner::{crc32, fnv1a, murmur2};

/// A client's way from a key to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioner {
    /// Java's default: murmur2 without its sign bit.
    Murmur2,
    /// librdkafka's `consistent`: CRC-32, unsigned.
    Crc32,
    /// Sarama's, and librdkafka's `fnv1a`: FNV-1a, of which they take the signed absolute value.
    Fnv1a,
}

/// A partitioner that there is not.
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

/// The partition of each row of `keys`; that of a null key means nothing.
pub fn partitions(
    keys: &Column<'_>,
    num_partitions: NonZero<u32>,
    partitioner: Partitioner,
) -> Result<Vec<i32>, KernelError> {
    match partitioner {
        Partitioner::Murmur2 => each(keys, num_partitions, |key| murmur2(key) & 0x7fff_ffff),
        Partitioner::Crc32 => each(keys, num_partitions, crc32),
        Partitioner::Fnv1a => each(keys, num_partitions, |key| (fnv1a(key) as i32).unsigned_abs()),
    }
}

#[inline]
fn each(
    keys: &Column<'_>,
    num_partitions: NonZero<u32>,
    hash: impl Fn(&[u8]) -> u32,
) -> Result<Vec<i32>, KernelError> {
    let remainder = Remainder::new(num_partitions);
    let mut found = Vec::with_capacity(keys.len());
    keys.for_each(|key| found.push(remainder.of(hash(key)) as i32))?;
    Ok(found)
}

/// The remainder by a fixed divisor without a division, which would cost more than the hash.
///
/// Lemire, Kaser, Kurz: "Faster remainder by direct computation" (2019), exact for all 32-bit
/// operands: the fraction of `value / divisor` in 64 bits, times the divisor, is the remainder.
#[derive(Clone, Copy, Debug)]
struct Remainder {
    divisor: u32,
    reciprocal: u64,
}

impl Remainder {
    fn new(divisor: NonZero<u32>) -> Self {
        let divisor = divisor.get();
        Self { divisor, reciprocal: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    #[inline]
    fn of(self, value: u32) -> u32 {
        let fraction = self.reciprocal.wrapping_mul(u64::from(value));
        ((u128::from(fraction) * u128::from(self.divisor)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainder_is_that_of_a_division() {
        let edges = [0, 1, 2, 3, 7, 12, 1000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, u32::MAX];
        for divisor in edges.into_iter().filter_map(NonZero::new) {
            for value in edges {
                assert_eq!(Remainder::new(divisor).of(value), value % divisor, "{value} {divisor}");
            }
        }
    }
}
