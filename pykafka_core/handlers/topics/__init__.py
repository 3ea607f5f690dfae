"""Topics and their partitions: made, extended, deleted."""
