"""Conversion of messages between replicas to and from Kafka's messages."""
