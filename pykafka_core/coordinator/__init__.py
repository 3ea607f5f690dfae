"""Coordinators: pure state machines over the partitions of internal topics.

`shard.py` says what a machine is to the runtime (`pykafka_core.broker.runtime.coordinators`) that drives it.
"""
