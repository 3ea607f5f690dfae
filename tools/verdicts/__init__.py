"""What Apache Kafka takes as settings, asked of Kafka itself."""
