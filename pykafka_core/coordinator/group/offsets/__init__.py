"""Committed offsets of groups: committed, fetched, deleted and expired. A file for each."""
