"""Metadata records as bytes, in the log and in snapshots."""
