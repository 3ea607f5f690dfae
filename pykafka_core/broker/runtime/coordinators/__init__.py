"""Shards of the coordinators, and what they ask of other nodes."""
