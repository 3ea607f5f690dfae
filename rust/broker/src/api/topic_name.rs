//! Kafka's rules for topic names.

const NAME_LENGTH_MAX: usize = 249;
/// Permitted operations on a topic while there is no authorizer: read, write, create, delete,
/// alter, describe, describe configs and alter configs.
pub(crate) const TOPIC_OPERATIONS_ALL: i32 = 0b1101_1111_1000;
/// Permitted operations on the cluster: create, alter, describe, cluster action, describe configs,
/// alter configs and idempotent write.
pub(crate) const CLUSTER_OPERATIONS_ALL: i32 = 0b1_1111_1010_0000;
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const INVALID_TOPIC_EXCEPTION: i16 = 17;

/// True for `[A-Za-z0-9._-]{1,249}` except `.` and `..` (contract/kafka.md#34).
pub(crate) fn is_valid(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty()
        && name.len() <= NAME_LENGTH_MAX
        && !matches!(name, "." | "..")
        && name.bytes().all(allowed)
}

/// Error code for a name without a topic.
pub(crate) fn missing_code(name: &str) -> i16 {
    if is_valid(name) { UNKNOWN_TOPIC_OR_PARTITION } else { INVALID_TOPIC_EXCEPTION }
}

/// True for Kafka's internal topics, even before they exist.
pub(crate) fn is_internal(name: &str) -> bool {
    matches!(name, "__consumer_offsets" | "__transaction_state" | "__share_group_state")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_paths_or_are_too_long_are_invalid() {
        let longest = "a".repeat(NAME_LENGTH_MAX);
        for name in ["a", "a.b_c-9", "...", &longest] {
            assert!(is_valid(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a\0", "é", "a b", &"a".repeat(NAME_LENGTH_MAX + 1)] {
            assert!(!is_valid(name), "{name}");
        }
    }

    #[test]
    fn operation_bits_are_those_of_kafka() {
        let bits = |operations: &[u32]| operations.iter().fold(0, |sum, bit| sum | 1 << bit);
        assert_eq!(TOPIC_OPERATIONS_ALL, bits(&[3, 4, 5, 6, 7, 8, 10, 11]));
        assert_eq!(CLUSTER_OPERATIONS_ALL, bits(&[5, 7, 8, 9, 10, 11, 12]));
    }
}
