"""Membership of a node in a cluster: joins, heartbeats, and requests to the active controller."""
