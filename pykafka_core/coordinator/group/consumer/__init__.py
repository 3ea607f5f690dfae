"""Groups of the consumer protocol (KIP-848): the coordinator assigns partitions; a file for each request."""
