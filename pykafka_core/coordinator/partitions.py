"""Which partition of an internal topic coordinates a key."""

from pykafka_core._strings import hash_code


def coordinator_partition(key: str, partitions_count: int) -> int:
    """``Utils.abs(key.hashCode()) % n`` of Java (contract/kafka.md#36)."""
    # Utils.abs makes Integer.MIN_VALUE 0; of all others it is the absolute value.
    number = abs(hash_code(key))
    return (0 if number == 1 << 31 else number) % partitions_count
