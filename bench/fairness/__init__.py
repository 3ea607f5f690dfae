"""How long one client waits while others keep a broker busy, on this broker and on Apache Kafka."""
