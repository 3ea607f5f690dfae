"""Replacements for the plugin's broker fixtures, because the broker may be a cluster here.

Both fixtures are replaced: the plugin's second one, once created from this broker, would also be
used in all other folders.
"""

from collections.abc import Iterator

import pytest

from tests.support.brokers import Brokers, Serve


@pytest.fixture(scope="session")
def kafka_broker(serve: Serve) -> Iterator[Brokers]:
    """Replaces the plugin's fixture."""
    with serve() as brokers:
        yield brokers


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(kafka_broker: Brokers) -> str:
    """Replaces the plugin's fixture."""
    return kafka_broker.bootstrap_servers
