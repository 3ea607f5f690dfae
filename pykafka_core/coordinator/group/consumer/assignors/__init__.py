"""How partitions are shared among the members of a consumer group: pure functions, a file for each assignor."""
