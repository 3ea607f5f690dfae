"""The broker of the tests' own fixtures, which may be a cluster here.

Both fixtures are replaced: the plugin's second one, once made from this broker, would be every other folder's too.
"""

from collections.abc import Iterator

import pytest

from tests.support.brokers import Brokers, Serve


@pytest.fixture(scope="session")
def kafka_broker(serve: Serve) -> Iterator[Brokers]:
    """In place of the plugin's."""
    with serve() as brokers:
        yield brokers


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(kafka_broker: Brokers) -> str:
    """In place of the plugin's."""
    return kafka_broker.bootstrap_servers
