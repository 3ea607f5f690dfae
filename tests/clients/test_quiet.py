"""A test run prints only pytest's own output."""

import socket

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.support.patience import exactly


@pytest.mark.parametrize("client", [Producer, Consumer, AdminClient])
def test_clients_without_a_broker_write_nothing_to_standard_error(
    client: type[Producer | Consumer | AdminClient], capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # without listening
        port = unused.getsockname()[1]
        one = client({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "unused"})
        with pytest.raises(KafkaException):
            one.list_topics(timeout=exactly(0.5, "no broker answers"))
        del one
    assert capfd.readouterr().err == ""
