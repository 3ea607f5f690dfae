"""Access to coordinators: FindCoordinator, their topics, and operations in their shards."""
