"""What replicas say to each other, as Kafka's messages."""
