//! Hashes that clients use to choose a key's partition.
//!
//! Java's default is murmur2, masked to 31 bits (not `abs`, which differs for half of all keys);
//! librdkafka's is CRC-32, Sarama's is FNV-1a. `murmur3_128` is for message ids, not partitions.

pub(crate) const MURMUR2_SEED: u32 = 0x9747_b28c;
pub(crate) const MURMUR2_M: u32 = 0x5bd1_e995;

/// Kafka's murmur2 of `key`, 32 bits, with its fixed seed.
#[expect(clippy::little_endian_bytes, reason = "murmur2 reads its input little-endian")]
pub fn murmur2(key: &[u8]) -> u32 {
    let mut hash = MURMUR2_SEED ^ key.len() as u32;
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(MURMUR2_M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(MURMUR2_M) ^ k.wrapping_mul(MURMUR2_M);
    }
    if !tail.is_empty() {
        for (at, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(MURMUR2_M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MURMUR2_M);
    hash ^ (hash >> 15)
}

/// The partition of `key` among `partitions` (at least 1), as in Java's default partitioner.
pub fn partition_for_key(key: &[u8], partitions: i32) -> i32 {
    (murmur2(key) & 0x7fff_ffff) as i32 % partitions.max(1)
}

/// FNV-1a, 32 bits, used by Sarama and by librdkafka's `fnv1a` partitioners.
pub fn fnv1a(key: &[u8]) -> u32 {
    key.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

const MURMUR3_C1: u64 = 0x87c3_7b91_1142_53d5;
const MURMUR3_C2: u64 = 0x4cf5_ad43_2745_937f;

/// `MurmurHash3` x64 128 of `bytes`; the first 64 bits are the high half.
#[expect(clippy::little_endian_bytes, reason = "murmur3 reads its input little-endian")]
pub fn murmur3_128(bytes: &[u8], seed: u32) -> u128 {
    let (mut h1, mut h2) = (u64::from(seed), u64::from(seed));
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let block = u128::from_le_bytes(*block);
        h1 ^= scramble1(block as u64);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= scramble2((block >> 64) as u64);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let last = last_bytes(bytes, tail);
    // Scrambling 0 gives 0, so the absent halves of the tail change nothing.
    h1 ^= scramble1(last as u64) ^ bytes.len() as u64;
    h2 ^= scramble2((last >> 64) as u64) ^ bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (finish64(h1), finish64(h2));
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (u128::from(h1) << 64) | u128::from(h2)
}

/// `tail`, which ends `bytes`, as a little-endian number.
#[expect(clippy::little_endian_bytes, reason = "murmur3 reads its input little-endian")]
fn last_bytes(bytes: &[u8], tail: &[u8]) -> u128 {
    if let Some(last) = bytes.last_chunk::<16>() {
        // A read and a shift cost less than a copy of a variable size.
        let unwanted = 8 * (16 - tail.len() as u32);
        return u128::from_le_bytes(*last).checked_shr(unwanted).unwrap_or(0);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    u128::from_le_bytes(last)
}

fn scramble1(k: u64) -> u64 {
    k.wrapping_mul(MURMUR3_C1).rotate_left(31).wrapping_mul(MURMUR3_C2)
}

fn scramble2(k: u64) -> u64 {
    k.wrapping_mul(MURMUR3_C2).rotate_left(33).wrapping_mul(MURMUR3_C1)
}

fn finish64(mut k: u64) -> u64 {
    k = (k ^ (k >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ (k >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur2_equals_that_of_kafka() {
        for (key, hash) in [
            ("", 275_646_681),
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }

    #[test]
    fn partitions_use_31_bits_of_the_hash() {
        assert_eq!(partition_for_key(b"21", 1000), 1_173_551_340 % 1000); // not 973_932_308
        assert!((0..7).contains(&partition_for_key(b"foobar", 7)));
    }

    #[test]
    fn other_hashes_match_their_check_values() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn murmur3_matches_its_check_values() {
        assert_eq!(murmur3_128(b"", 0), 0);
        assert_eq!(murmur3_128(b"hello", 0), 0xcbd8_a7b3_41bd_9b02_5b1e_906a_48ae_1d19);
        assert_eq!(
            murmur3_128(b"The quick brown fox jumps over the lazy dog", 0),
            0xe34b_bc7b_bc07_1b6c_7a43_3ca9_c49a_9347
        );
    }
}
