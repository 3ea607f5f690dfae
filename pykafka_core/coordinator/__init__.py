"""Coordinators: pure state machines over the partitions of internal topics.

`shard.py` defines the interface between a machine and the runtime
(`pykafka_core.broker.runtime.coordinators`) that drives it.
"""
