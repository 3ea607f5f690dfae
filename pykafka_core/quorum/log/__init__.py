"""The metadata log as a replica sees it: numbers of its batches, and the quorum's own records."""
