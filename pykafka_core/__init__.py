"""Kafka in a Python wheel: an embedded broker, its log as a library, and the tools around them."""

__all__: list[str] = []
