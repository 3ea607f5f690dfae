"""What a broker asks of other brokers: requests in batches, one under way to each node."""
