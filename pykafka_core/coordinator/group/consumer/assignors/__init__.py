"""The assignors, which distribute partitions among the members of a consumer group: pure functions,
one file for each assignor.
"""
