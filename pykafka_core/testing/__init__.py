"""The pytest plugin: a real broker in the test process, a new topic for each test, and clusters
whose nodes a test can stop.

pytest finds the plugin through the entry point of the package. Only pytest is imported until a test
uses a fixture. Under pytest-xdist each worker has its own broker on its own port.

    def test_orders_arrive(kafka_bootstrap_servers, kafka_topic):
        producer = Producer({"bootstrap.servers": kafka_bootstrap_servers})
        ...
"""

from .clients import (
    kafka_clients,
    kafka_consumer,
    kafka_producer,
    kafka_read_all,
    kafka_topic_factory,
    pytest_runtest_makereport,
)
from .plugin import (
    kafka_bootstrap_servers,
    kafka_broker,
    kafka_broker_options,
    kafka_cluster,
    kafka_cluster_options,
    kafka_topic,
)

__all__ = [
    "kafka_bootstrap_servers",
    "kafka_broker",
    "kafka_broker_options",
    "kafka_clients",
    "kafka_cluster",
    "kafka_cluster_options",
    "kafka_consumer",
    "kafka_producer",
    "kafka_read_all",
    "kafka_topic",
    "kafka_topic_factory",
    "pytest_runtest_makereport",
]
