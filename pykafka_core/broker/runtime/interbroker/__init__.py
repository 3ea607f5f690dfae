"""Requests to other brokers: batched, with at most one in flight per node."""
