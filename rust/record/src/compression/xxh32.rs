//! xxHash, 32 bits, seed 0: the checksum of LZ4 frames. Headers and rare block checksums only.

const PRIME_1: u32 = 0x9e37_79b1;
const PRIME_2: u32 = 0x85eb_ca77;
const PRIME_3: u32 = 0xc2b2_ae3d;
const PRIME_4: u32 = 0x27d4_eb2f;
const PRIME_5: u32 = 0x1656_67b1;

/// The xxHash of `bytes`.
#[expect(clippy::little_endian_bytes, reason = "xxHash reads its input little-endian")]
pub(super) fn xxh32(bytes: &[u8]) -> u32 {
    let (stripes, rest) = bytes.as_chunks::<16>();
    let mut hash = if stripes.is_empty() { PRIME_5 } else { hash_stripes(stripes) };
    hash = hash.wrapping_add(bytes.len() as u32);
    let (words, tail) = rest.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(PRIME_3));
        hash = hash.rotate_left(17).wrapping_mul(PRIME_4);
    }
    for byte in tail {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(PRIME_5));
        hash = hash.rotate_left(11).wrapping_mul(PRIME_1);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(PRIME_2);
    hash = (hash ^ (hash >> 13)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 16)
}

#[expect(clippy::little_endian_bytes, reason = "xxHash reads its input little-endian")]
fn hash_stripes(stripes: &[[u8; 16]]) -> u32 {
    let mut lanes = [PRIME_1.wrapping_add(PRIME_2), PRIME_2, 0, 0_u32.wrapping_sub(PRIME_1)];
    for stripe in stripes {
        for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<4>().0) {
            *lane = lane.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(PRIME_2));
            *lane = lane.rotate_left(13).wrapping_mul(PRIME_1);
        }
    }
    let [a, b, c, d] = lanes;
    let sum = a.rotate_left(1).wrapping_add(b.rotate_left(7));
    sum.wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18))
}

#[cfg(test)]
mod tests {
    use super::xxh32;

    #[test]
    fn matches_the_published_check_values() {
        assert_eq!(xxh32(b""), 0x02cc_5d05);
        assert_eq!(xxh32(b"a"), 0x550d_7456);
        assert_eq!(xxh32(b"abc"), 0x32d1_53ff);
        assert_eq!(xxh32(b"Nobody inspects the spammish repetition"), 0xe229_3b2f);
    }
}
