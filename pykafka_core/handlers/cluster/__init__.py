"""The cluster and its quorum described."""
