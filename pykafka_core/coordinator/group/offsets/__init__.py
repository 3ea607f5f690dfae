"""Committed offsets of groups: commit, fetch, deletion and expiry. One file for each."""
