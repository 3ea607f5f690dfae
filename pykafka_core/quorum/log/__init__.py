"""The replica's view of the metadata log: offsets of batches, and the quorum's control records."""
