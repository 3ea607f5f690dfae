//! 128-bit fingerprints of rows, to distinguish ids.

use super::column::{Column, NUMBER_SIZE_MAX};
use super::error::KernelError;
use crate::partitioner::murmur3_128;

/// Size of a fingerprint in bytes.
pub const FINGERPRINT_SIZE: usize = 16;

/// The digest of every row of `columns`, `FINGERPRINT_SIZE` bytes each.
///
/// For one column, it is the hash of the row's bytes; it is unspecified for a null row. Rows of
/// several columns are encoded first, like nullable byte strings in Kafka: the length of each value
/// as 4 bytes big-endian, −1 for null, then the value. So different rows have different bytes.
/// Without columns there are no rows.
pub fn fingerprints(columns: &[Column<'_>], seed: u32) -> Result<Vec<u8>, KernelError> {
    let Some(first) = columns.first() else { return Ok(Vec::new()) };
    let mut digests = Vec::with_capacity(first.len() * FINGERPRINT_SIZE);
    if columns.len() == 1 {
        first.for_each(|value| digests.extend_from_slice(&digest(value, seed)))?;
        return Ok(digests);
    }
    if let Some(other) = columns.iter().find(|column| column.len() != first.len()) {
        return Err(KernelError::Lengths(first.len(), other.len()));
    }
    let mut framed = Vec::new();
    for row in 0..first.len() {
        framed.clear();
        columns.iter().try_for_each(|column| frame(column, row, &mut framed))?;
        digests.extend_from_slice(&digest(&framed, seed));
    }
    Ok(digests)
}

fn frame(column: &Column<'_>, row: usize, framed: &mut Vec<u8>) -> Result<(), KernelError> {
    let mut scratch = [0; NUMBER_SIZE_MAX];
    let Some(value) = column.get(row, &mut scratch)? else {
        framed.extend_from_slice(&(-1_i32).to_be_bytes());
        return Ok(());
    };
    let size = i32::try_from(value.len()).map_err(|_| KernelError::TooLarge(row))?;
    framed.extend_from_slice(&size.to_be_bytes());
    framed.extend_from_slice(value);
    Ok(())
}

/// The hash in the usual byte order: both halves little-endian, the first one first.
#[expect(clippy::little_endian_bytes, reason = "the digest that the reference code gives")]
fn digest(bytes: &[u8], seed: u32) -> [u8; FINGERPRINT_SIZE] {
    murmur3_128(bytes, seed).rotate_left(64).to_le_bytes()
}
