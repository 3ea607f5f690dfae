"""Which partition of an internal topic coordinates a key."""


def coordinator_partition(key: str, partitions_count: int) -> int:
    """``Utils.abs(key.hashCode()) % n`` of Java, whose characters are UTF-16 code units (contract/kafka.md#36)."""
    units = key.encode("utf-16-be", "surrogatepass")
    number = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        number = (31 * number + (high << 8 | low)) & 0xFFFFFFFF
    # Utils.abs makes Integer.MIN_VALUE 0; of all others it is the absolute value.
    signed = number - (1 << 32) if number >= 1 << 31 else number
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions_count
