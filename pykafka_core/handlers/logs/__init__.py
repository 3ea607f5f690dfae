"""What partitions' logs hold, and where: records deleted, sizes and producers described."""
