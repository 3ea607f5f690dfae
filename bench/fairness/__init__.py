"""Latency of one client while others keep a broker busy, here and on Apache Kafka."""
