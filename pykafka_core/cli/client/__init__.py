"""Commands that are clients of a running broker, through confluent-kafka."""
