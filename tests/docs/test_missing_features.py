"""Each feature that a page calls missing does not exist."""

import re
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from pykafka_core import Broker
from pykafka_core.errors import ConfigurationError
from pykafka_core.handlers.registry import API_VERSIONS
from tests.handlers.quotas.quota_requests import CLIENT, INVALID_REQUEST, Entity, limit
from tests.support.examples import PAGES, ROOT
from tests.support.patience import PATIENCE_S
from tests.support.simulated.broker import SimulatedBroker

CLAIM = re.compile(r"\b[Nn]ot (?:built|offered|yet)\b|\bNo\b[^.|]* yet\b")
OTHER_PAGES = (
    *("docs/design/", "docs/contract/"),  # decisions at their date, Kafka's own contracts
    *("docs/SETTINGS.md", "docs/SEEDS.md", "docs/guides/clients.md"),  # compared by other tests
)

SHARE_KEYS = {76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92}
STREAMS_KEYS = {88, 89}
INIT_PRODUCER_ID, TWO_PHASE_VERSION = 22, 6


def has_settings(**settings: str) -> bool:
    try:
        Broker(config={name.replace("_", "."): value for name, value in settings.items()}).close()
    except ConfigurationError:
        return False
    return True


def has_acls() -> bool:
    everyone = ("User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW)
    binding = AclBinding(ResourceType.TOPIC, "*", ResourcePatternType.LITERAL, *everyone)
    with Broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        (result,) = admin.create_acls([binding]).values()
        try:
            result.result(PATIENCE_S)
        except KafkaException as error:
            return bool(error.args[0].code() != KafkaError.SECURITY_DISABLED)
    return True


def has_quota(name: str, entity: Entity = CLIENT) -> bool:
    code, _ = limit(SimulatedBroker(), entity, {name: 1.0})
    return code != INVALID_REQUEST


FEATURES: dict[str, Callable[[], bool]] = {
    "TLS": lambda: has_settings(listeners="SSL://127.0.0.1:0"),
    "SASL": lambda: has_settings(listeners="SASL_PLAINTEXT://127.0.0.1:0"),
    "ACL": has_acls,
    "share groups": lambda: not SHARE_KEYS.isdisjoint(API_VERSIONS),
    "Streams": lambda: not STREAMS_KEYS.isdisjoint(API_VERSIONS),
    "two-phase commit": lambda: API_VERSIONS[INIT_PRODUCER_ID][1] >= TWO_PHASE_VERSION,
    "request time": lambda: has_quota("request_percentage"),
    "request_percentage": lambda: has_quota("request_percentage"),
    "mutation rate": lambda: has_quota("controller_mutation_rate"),
    "controller_mutation_rate": lambda: has_quota("controller_mutation_rate"),
    "connection rate": lambda: has_quota("connection_creation_rate", {"ip": "127.0.0.1"}),
    "several log directories": lambda: has_settings(log_dirs="/nonexistent/a,/nonexistent/b"),
}
"""The features that pages call missing, by their names there, and whether each exists."""


def claims() -> list[tuple[str, str]]:
    """Return each paragraph, list item or table row that calls something missing, with its page."""
    found = []
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        if not name.startswith(OTHER_PAGES):
            parts = re.split(r"\n\n|\n(?=- |\| |#)", page.read_text())
            found += [(name, " ".join(part.split())) for part in parts if CLAIM.search(part)]
    return found


def named_features(text: str) -> set[str]:
    return {feature for feature in FEATURES if feature.lower() in text.lower()}


@pytest.mark.parametrize("feature", FEATURES)
def test_the_feature_is_missing(feature: str) -> None:
    assert not FEATURES[feature]()


def test_each_claim_names_features_that_are_checked() -> None:
    found = claims()
    assert len(found) > 4
    assert [claim for claim in found if not named_features(claim[1])] == []


@pytest.mark.parametrize("feature", FEATURES)
def test_a_page_names_the_feature(feature: str) -> None:
    assert any(feature in named_features(text) for _, text in claims())
