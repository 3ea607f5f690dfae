"""The APIs of partitions' logs: they delete records, and describe sizes and producers."""
