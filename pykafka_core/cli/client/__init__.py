"""Commands that are clients of a running broker, by confluent-kafka."""
