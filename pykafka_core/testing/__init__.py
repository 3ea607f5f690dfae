"""The pytest plugin: a real broker in the test process, a fresh topic for each test, and clusters that may break.

Installed with the package and found by pytest through its entry point; nothing but pytest is
imported until a test asks
for a fixture. Under pytest-xdist every worker has a broker of its own, on a port of its own.

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
