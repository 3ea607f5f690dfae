"""The partition of an internal topic that coordinates a key."""

from pykafka_core._strings import hash_code


def coordinator_partition(key: str, partitions_count: int) -> int:
    """``Utils.abs(key.hashCode()) % n`` of Java (contract/kafka.md#36)."""
    # Utils.abs returns 0 for Integer.MIN_VALUE, else the absolute value.
    number = abs(hash_code(key))
    return (0 if number == 1 << 31 else number) % partitions_count
