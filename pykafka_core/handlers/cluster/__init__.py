"""The cluster, its quorum and its features."""
