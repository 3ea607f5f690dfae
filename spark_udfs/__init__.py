"""Vectorised pandas UDFs for Spark on Kafka data."""
