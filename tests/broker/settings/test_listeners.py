"""Warnings about listeners that other machines can reach, or cannot use."""

import logging

import pytest

from tests.support.simulated.broker import SimulatedBroker

Log = pytest.LogCaptureFixture


def warnings(caplog: Log, **settings: str) -> list[str]:
    with caplog.at_level(logging.WARNING):
        SimulatedBroker({name.replace("_", "."): value for name, value in settings.items()})
    return caplog.messages


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]", ""])
def test_a_loopback_listener_needs_no_warning(host: str, caplog: Log) -> None:
    assert warnings(caplog, listeners=f"PLAINTEXT://{host}:9092") == []


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_listener_on_every_interface_needs_advertised_listeners(host: str, caplog: Log) -> None:
    address, exposed = warnings(caplog, listeners=f"PLAINTEXT://{host}:9092")
    assert "makes clients connect to 127.0.0.1:9092" in address
    assert "set advertised.listeners=PLAINTEXT://HOST:9092" in address
    assert f"listener PLAINTEXT://{host}:9092 is open to the network" in exposed


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "kafka.example"])
def test_warning_of_a_public_listener_names_the_exposure(host: str, caplog: Log) -> None:
    (exposed,) = warnings(
        caplog,
        listeners=f"PLAINTEXT://{host}:9092",
        advertised_listeners="PLAINTEXT://kafka.example:9092",
    )
    assert "without encryption, authentication and authorization" in exposed
    assert "delete every topic" in exposed
