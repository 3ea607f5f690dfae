//! Zig-zag variable-length integers, as in records.
//!
//! As in Kafka, non-minimal encodings of at most 5 (10) bytes are accepted, and bits beyond 32 (64)
//! are dropped; longer ones are errors.

/// Bytes do not start with a variable-length integer: they are truncated, or it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VarintError;

/// Take a 32-bit integer off the front of `bytes`.
#[inline]
pub(crate) fn read_i32(bytes: &mut &[u8]) -> Result<i32, VarintError> {
    let raw = read_raw(bytes, 5)? as u32;
    Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

/// Take a 64-bit integer off the front of `bytes`.
#[inline]
pub(crate) fn read_i64(bytes: &mut &[u8]) -> Result<i64, VarintError> {
    let raw = read_raw(bytes, 10)?;
    Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

#[inline]
fn read_raw(bytes: &mut &[u8], size_max: usize) -> Result<u64, VarintError> {
    // One byte is by far the most common size: lengths below 64, and nulls.
    if let [first @ 0..=0x7f, rest @ ..] = *bytes {
        *bytes = rest;
        return Ok(u64::from(*first));
    }
    let mut raw = 0;
    for (at, byte) in bytes.iter().take(size_max).enumerate() {
        raw |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Ok(raw);
        }
    }
    Err(VarintError)
}

/// Append `value`; 32-bit integers are written the same way.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, value: i64) {
    let mut raw = zigzag(value);
    while raw > 0x7f {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

/// Encoded size of `value`: 1 to 10 bytes.
#[inline]
pub(crate) fn size(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

#[inline]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_round_trip_with_their_size(value: i64, short: i32) {
            let mut out = Vec::new();
            put(&mut out, value);
            prop_assert_eq!(out.len(), size(value));
            prop_assert_eq!(read_i64(&mut &out[..]), Ok(value));
            out.clear();
            put(&mut out, i64::from(short));
            prop_assert_eq!(read_i32(&mut &out[..]), Ok(short));
        }
    }

    #[test]
    fn varint_longer_than_its_type_is_an_error() {
        assert_eq!(read_i32(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0][..]), Err(VarintError));
        assert_eq!(read_i32(&mut &[0x80, 0x80, 0x80, 0x80, 0][..]), Ok(0));
        assert_eq!(read_i64(&mut &[0x80; 11][..]), Err(VarintError));
        assert_eq!(read_i32(&mut &[0x80][..]), Err(VarintError));
        assert_eq!(read_i32(&mut &[][..]), Err(VarintError));
    }
}
