"""Settings of the brokers in librdkafka's form reach Java's clients in their form."""

from pathlib import Path

import pytest

from pykafka_core.errors import ConfigurationError
from spark_udfs.sink import KafkaBrokers
from spark_udfs.sink.java_settings import java_settings

SERVERS = {"bootstrap.servers": "broker.example:9093"}


def test_options_of_the_source_are_joined_to_the_brokers() -> None:
    options = KafkaBrokers("broker.example:9092").options(subscribe="orders", includeHeaders=True)
    assert options == {
        "kafka.bootstrap.servers": "broker.example:9092",
        "subscribe": "orders",
        "includeHeaders": "true",
    }


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"security.protocl": "SSL"}, "brokers: .*security.protocl"),
        ({"security.protocol": "SSLL"}, "brokers: .*SSLL"),
    ],
)
def test_setting_unknown_to_librdkafka_is_rejected(setting: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        KafkaBrokers({"bootstrap.servers": "127.0.0.1:1", **setting}).options(subscribe="orders")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("subscribe", ["a", "b"], "subscribe is text in Spark, such as 'a,b' .*not \\['a', 'b'\\]"),
        ("startingOffsets", {"a": {"0": 1}}, "startingOffsets is text .* JSON for offsets"),
        ("subscribe", None, "subscribe is text .* not None"),
        ("kafka.bootstrap.servers", "other:9092", "kafka.bootstrap.servers would read from other"),
        ("kafka.Bootstrap.Servers", "other:9092", "kafka.Bootstrap.Servers would read from other"),
    ],
)  # fmt: skip
def test_option_that_spark_would_misread_is_rejected_by_name(
    option: str, value: object, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        KafkaBrokers("127.0.0.1:1").options(**{option: value})


def test_a_password_is_quoted_in_the_login() -> None:
    found = java_settings(
        SERVERS
        | {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": 'a"b\\c',
        }
    )
    assert found == SERVERS | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="alice" password="a\\"b\\\\c";',
    }


def test_certificates_are_passed_as_text(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("AUTHORITY")
    given = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.certificate.pem": "CERTIFICATE",
        "ssl.key.pem": "KEY",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert java_settings(SERVERS | given) == SERVERS | {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "AUTHORITY",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CERTIFICATE",
        "ssl.keystore.key": "KEY",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("sasl.mechanism", "GSSAPI"),
        ("ssl.engine.location", "/engine"),
        ("sasl.oauthbearer.config", "x"),
        ("enable.ssl.certificate.verification", "false"),
    ],
)
def test_security_without_a_translation_is_rejected_by_name(setting: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=setting):
        java_settings(SERVERS | {setting: value})


def test_settings_only_for_librdkafka_are_omitted() -> None:
    assert java_settings(SERVERS | {"socket.timeout.ms": 1000, "debug": "all"}) == SERVERS


def test_password_is_not_shown_with_the_brokers() -> None:
    brokers = KafkaBrokers(SERVERS | {"sasl.password": "secret"})
    assert "secret" not in repr(brokers)
