"""What partitions' logs hold: records deleted, sizes and producers described."""
