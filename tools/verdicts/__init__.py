"""The settings that Apache Kafka accepts, from runs of Kafka itself."""
