"""Translation of librdkafka's connection settings to those of the Java clients, used by Spark."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pykafka_core.errors import ConfigurationError

_SAME: Final = ("bootstrap.servers", "client.id", "security.protocol")
_SECURITY: Final = ("sasl.", "ssl.", "enable.sasl.", "enable.ssl.")
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PEM: Final = {
    "ssl.ca": "ssl.truststore.certificates",
    "ssl.certificate": "ssl.keystore.certificate.chain",
    "ssl.key": "ssl.keystore.key",
}
"""Each librdkafka name is used with ``.location``, a file, or ``.pem``, its content."""


def java_settings(given: Mapping[str, Any]) -> dict[str, str]:
    """Translate the librdkafka settings for broker addresses, client id and security.

    Other settings, such as timeouts, are ignored: each client has its own.

    Raises:
        ConfigurationError: TLS or SASL settings without a translation; all of them are named.
        OSError: A named file cannot be read.
    """
    known = {name: str(given[name]) for name in _SAME if name in given}
    known["security.protocol"] = known.get("security.protocol", "plaintext").upper()
    if known["security.protocol"] == "PLAINTEXT":
        del known["security.protocol"]
    used = {*_SAME}
    for translated in (_sasl, _tls):
        known |= translated(given, used.add)
    left = sorted(name for name in given if name.startswith(_SECURITY) and name not in used)
    if left:
        raise ConfigurationError(
            [
                f"{name} has no translation for Java: give Spark its own as kafka.NAME"
                for name in left
            ]
        )
    return known


def _sasl(given: Mapping[str, Any], use: Callable[[str], None]) -> dict[str, str]:
    for name in ("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"):
        use(name)
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms"))
    if mechanism is None:
        return {}
    if mechanism not in _MODULES:
        raise ConfigurationError(
            [
                f"sasl.mechanism {mechanism} has no translation for Java, only {', '.join(_MODULES)}: give Spark "
                "kafka.sasl.mechanism and kafka.sasl.jaas.config, and the sink its settings of librdkafka"
            ]
        )
    user, password = (_quoted(given.get(f"sasl.{name}", "")) for name in ("username", "password"))
    login = f"{_MODULES[mechanism]} required username={user} password={password};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": login}


def _quoted(value: object) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _tls(given: Mapping[str, Any], use: Callable[[str], None]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, java in _PEM.items():
        use(f"{name}.location")
        use(f"{name}.pem")
        if f"{name}.pem" in given:
            found[java] = str(given[f"{name}.pem"])
        elif f"{name}.location" in given:
            found[java] = Path(given[f"{name}.location"]).read_text()
    stores = {java.split(".")[1] for java in found}
    found |= {f"ssl.{store}.type": "PEM" for store in sorted(stores)}
    for name, java in (
        ("ssl.key.password", "ssl.key.password"),
        ("ssl.endpoint.identification.algorithm", "ssl.endpoint.identification.algorithm"),
    ):
        use(name)
        if name in given:
            found[java] = "" if given[name] == "none" else str(given[name])
    return found
