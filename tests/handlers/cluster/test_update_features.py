"""UpdateFeatures (KIP-584, KIP-778), with the error codes and texts of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.metadata.image.features import SUPPORTED_FEATURES
from pykafka_core.protocol.messages import (
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from pykafka_core.types import RESOURCE_BROKER
from tests.handlers.foreign_brokers import commit
from tests.support.simulated.broker import SimulatedBroker

UNKNOWN, UPGRADE, SAFE, UNSAFE = 0, 1, 2, 3
INVALID = 95
ALL_FAILED = "The update failed for all features since the following feature had an error: "
ELR, KRAFT, METADATA, TRANSACTION = (
    "eligible.leader.replicas.version", "kraft.version", "metadata.version", "transaction.version",
)  # fmt: skip
Update = tuple[str, int, int]


def ask(
    broker: SimulatedBroker, *updates: Update, version: int = 2, validate_only: bool = False
) -> UpdateFeaturesResponse:
    keys = [_key(*update, version) for update in updates]
    request = UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)
    response = broker.ask(request, version)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


def _key(name: str, level: int, kind: int, version: int) -> UpdateFeaturesRequest.FeatureUpdateKey:
    key = UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level)
    if version:
        key.upgrade_type = kind
    else:
        key.allow_downgrade = kind > UPGRADE
    return key


def refusal(broker: SimulatedBroker, *updates: Update, version: int = 2) -> str:
    before = dict(broker.image.features)
    response = ask(broker, *updates, version=version)
    assert response.error_code == INVALID
    assert response.error_message is not None
    assert response.error_message.startswith(ALL_FAILED)
    assert broker.image.features == before
    return response.error_message.removeprefix(ALL_FAILED)


def invalid(name: str, level: int, reason: str) -> str:
    return f"Invalid update version {level} for feature {name}. {reason}"


NO_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to "
    "either safe or unsafe downgrade."
)
NO_TYPE = "The controller does not support the given upgrade type."
NEGATIVE = "A feature version cannot be less than 0."


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        *(((name, -1, UNKNOWN), NO_TYPE) for name in (*SUPPORTED_FEATURES, "no.such", "")),
        *(((name, -1, kind), NEGATIVE) for name in (METADATA, "no.such") for kind in (1, 2, 3)),
        *(((TRANSACTION, 1, kind), NO_TYPE) for kind in (UNKNOWN, 4, -1)),
        (("no.such", 0, UPGRADE), "Feature no.such not found."),
        (("", 0, SAFE), "Feature  not found."),
        (("no.such", 1, UPGRADE), "Local controller 1 does not support this feature."),
        ((TRANSACTION, 3, UNSAFE), "Local controller 1 only supports versions 0-2"),
        ((METADATA, 6, SAFE), "Local controller 1 only supports versions 7-33"),
        ((METADATA, 34, UPGRADE), "Local controller 1 only supports versions 7-33"),
        ((TRANSACTION, 1, UPGRADE), NO_DOWNGRADE),
        ((METADATA, 28, UPGRADE), NO_DOWNGRADE),
        ((ELR, 0, UPGRADE), NO_DOWNGRADE),
    ],
    ids=str,
)
def test_invalid_change_is_rejected(broker: SimulatedBroker, update: Update, reason: str) -> None:
    name, level, _ = update
    assert refusal(broker, update) == invalid(name, level, reason)


def test_version_0_cannot_downgrade_even_with_its_flag(broker: SimulatedBroker) -> None:
    refused = refusal(broker, (TRANSACTION, 1, SAFE), version=0)
    assert refused == invalid(TRANSACTION, 1, NO_DOWNGRADE)


def test_levels_go_down_and_up(broker: SimulatedBroker) -> None:
    for level, kind in [(1, SAFE), (0, UNSAFE), (2, UPGRADE)]:
        response = ask(broker, (TRANSACTION, level, kind))
        assert (response.error_code, response.error_message) == (0, None)
        assert broker.image.features.get(TRANSACTION, 0) == level


def test_a_downgrade_type_does_not_upgrade(broker: SimulatedBroker) -> None:
    commit(broker, FeatureLevelRecord(name=TRANSACTION, feature_level=0))
    refused = refusal(broker, (TRANSACTION, 2, SAFE))
    assert refused == invalid(TRANSACTION, 2, "Can't downgrade to a newer version.")


@pytest.mark.parametrize("version", range(3))
def test_results_are_named_before_version_2(broker: SimulatedBroker, version: int) -> None:
    twice = [(TRANSACTION, 2, UPGRADE)] * 2
    response = ask(broker, *twice, version=version)
    assert (response.error_code, response.error_message) == (0, None)
    named = [
        (result.feature, result.error_code, result.error_message) for result in response.results
    ]
    assert named == ([(TRANSACTION, 0, "NONE")] * 2 if version < 2 else [])


def test_invalid_change_of_one_feature_rejects_all(broker: SimulatedBroker) -> None:
    refused = refusal(broker, (TRANSACTION, 1, SAFE), ("no.such", 1, UPGRADE))
    assert refused == invalid("no.such", 1, "Local controller 1 does not support this feature.")


def test_last_change_of_a_feature_wins(broker: SimulatedBroker) -> None:
    ask(broker, (TRANSACTION, 99, UPGRADE), (TRANSACTION, 1, SAFE))
    assert broker.image.features[TRANSACTION] == 1


def test_validation_changes_nothing(broker: SimulatedBroker) -> None:
    assert ask(broker, (TRANSACTION, 1, SAFE), validate_only=True).error_code == 0
    assert broker.image.features[TRANSACTION] == 2
    assert ask(broker).error_code == 0


@pytest.mark.parametrize("level", range(23, 30))
@pytest.mark.parametrize("kind", [SAFE, UNSAFE])
def test_the_metadata_version_goes_down_while_records_are_the_same(
    broker: SimulatedBroker, level: int, kind: int
) -> None:
    assert ask(broker, (METADATA, level, kind)).error_code == 0
    assert broker.image.features[METADATA] == level
    assert ask(broker, (METADATA, 29, UPGRADE)).error_code == 0


@pytest.mark.parametrize(
    ("current", "level", "kept"),
    [(30, 29, False), (31, 30, True), (32, 31, False), (33, 32, False), (33, 29, False)],
)
def test_metadata_version_cannot_be_downgraded_below_a_change_of_kafka_4_3_or_4_4(
    broker: SimulatedBroker, current: int, level: int, kept: bool
) -> None:
    assert ask(broker, (METADATA, current, UPGRADE)).error_code == 0
    assert (ask(broker, (METADATA, level, SAFE)).error_code == 0) == kept
    assert broker.image.features[METADATA] == (level if kept else current)


@pytest.mark.parametrize("level", [7, 22])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            SAFE,
            "Refusing to perform the requested downgrade because it might delete metadata "
            "information.",
        ),
        (UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    ],
    ids=["safe", "unsafe"],
)
def test_metadata_version_cannot_go_below_its_last_change(
    broker: SimulatedBroker, level: int, kind: int, reason: str
) -> None:
    refused = refusal(broker, (METADATA, level, kind))
    assert refused == f"Unsupported metadata.version downgrade from 29 to {level}. {reason}"


def test_feature_level_can_require_a_level_of_another_feature(broker: SimulatedBroker) -> None:
    commit(
        broker,
        FeatureLevelRecord(name=METADATA, feature_level=22),
        FeatureLevelRecord(name=ELR, feature_level=0),
    )
    needs = "eligible.leader.replicas.version could not be set to 1 because it depends on "
    refused = refusal(broker, (ELR, 1, UPGRADE))
    assert refused == invalid(ELR, 1, needs + "metadata.version level 23")
    assert ask(broker, (ELR, 1, UPGRADE), (METADATA, 23, UPGRADE)).error_code == 0


@pytest.mark.parametrize("others", [[], [(TRANSACTION, 1, SAFE)]], ids=["alone", "with another"])
def test_kraft_version_of_the_voters_can_only_be_raised(
    broker: SimulatedBroker, others: list[Update]
) -> None:
    assert ask(broker, (KRAFT, 0, UPGRADE)).error_code == 0
    assert ask(broker, (KRAFT, 0, SAFE)).error_code == 0
    assert ask(broker, (KRAFT, 1, UPGRADE), *others, validate_only=True).error_code == 0
    assert KRAFT not in offered(broker)
    assert ask(broker, (KRAFT, 1, UPGRADE), *others).error_code == 0
    assert offered(broker) == {**broker.image.features, KRAFT: 1}
    assert KRAFT not in broker.image.features, "it is in the quorum's own records"
    assert broker.image.features[TRANSACTION] == (1 if others else 2)
    steps = len(broker.core.applied)
    for kind in (UPGRADE, SAFE):
        assert ask(broker, (KRAFT, 1, kind)).error_code == 0
    assert len(broker.core.applied) == steps, "nothing was committed"
    assert refusal(broker, (KRAFT, 0, UPGRADE)) == invalid(KRAFT, 0, NO_DOWNGRADE)
    lowered = "Can't downgrade the version of this feature."
    assert refusal(broker, (KRAFT, 0, SAFE)) == invalid(KRAFT, 0, lowered)


def offered(broker: SimulatedBroker) -> dict[str, int]:
    """Return the finalized features as in ApiVersions."""
    steps = [step.finalized_features for step in broker.core.applied]
    _, levels = next(found for found in reversed(steps) if found is not None)
    return dict(levels)


def test_release_is_finalized_without_unsupported_features(
    broker: SimulatedBroker,
) -> None:
    """``kafka-features upgrade --release-version 4.4`` requests all of these or none."""
    release: dict[str, int] = {
        ELR: 1, "group.version": 1, KRAFT: 1, METADATA: 33, TRANSACTION: 2,
    }  # fmt: skip
    updates = [(name, level, UPGRADE) for name, level in release.items()]
    advice = " ".join(f"--feature {name}={level}" for name, level in release.items())
    for name, level, what in (("share.version", 2, "share"), ("streams.version", 1, "streams")):
        refused = refusal(broker, *updates, (name, level, UPGRADE))
        reason = (
            f"Local controller 1 does not support this feature. This version has no {what} groups; "
            f"leave it out: kafka-features.sh upgrade {advice}"
        )
        assert refused == invalid(name, level, reason)
    assert ask(broker, *updates).error_code == 0
    assert offered(broker) == release


def test_enabling_eligible_leader_replicas_sets_min_insync_replicas_for_the_cluster() -> None:
    broker = SimulatedBroker({"min.insync.replicas": "3"})

    def least(name: str, value: str | None) -> ConfigRecord:
        return ConfigRecord(
            resource_type=RESOURCE_BROKER,
            resource_name=name,
            name="min.insync.replicas",
            value=value,
        )

    assert ask(broker, (ELR, 0, SAFE)).error_code == 0
    commit(broker, least("", None), least("1", "2"), least("9", "4"))
    assert ask(broker, (ELR, 1, UPGRADE)).error_code == 0
    configs = broker.image.configs
    assert configs.of(RESOURCE_BROKER, "")["min.insync.replicas"] == "3"
    for name in ("1", "9"):
        assert "min.insync.replicas" not in configs.of(RESOURCE_BROKER, name)


def test_min_insync_replicas_of_the_cluster_is_kept(broker: SimulatedBroker) -> None:
    ask(broker, (ELR, 0, SAFE))
    record = ConfigRecord(
        resource_type=RESOURCE_BROKER, resource_name="", name="min.insync.replicas", value="2"
    )
    commit(broker, record)
    ask(broker, (ELR, 1, UPGRADE))
    assert broker.image.configs.of(RESOURCE_BROKER, "")["min.insync.replicas"] == "2"


def registered(*features: tuple[str, int, int]) -> RegisterBrokerRecord:
    of = RegisterBrokerRecord.BrokerFeature
    return RegisterBrokerRecord(
        broker_id=7,
        incarnation_id=bytes(15) + b"\3",
        broker_epoch=1,
        fenced=True,
        features=[
            of(name=name, min_supported_version=low, max_supported_version=high)
            for name, low, high in features
        ],
    )


def test_level_must_be_supported_by_every_registered_broker(
    broker: SimulatedBroker,
) -> None:
    """A broker that is down would not understand the metadata after its restart."""
    ask(broker, (METADATA, 25, SAFE), (ELR, 0, SAFE))
    commit(broker, registered((METADATA, 7, 25), (TRANSACTION, 0, 2)))
    refused = refusal(broker, (METADATA, 29, UPGRADE))
    assert refused == invalid(METADATA, 29, "Broker 7 only supports versions 7-25")
    refused = refusal(broker, (ELR, 1, UPGRADE))
    assert refused == invalid(ELR, 1, "Broker 7 does not support this feature.")
    assert ask(broker, (METADATA, 24, SAFE)).error_code == 0


def test_level_must_be_supported_by_every_registered_controller(
    broker: SimulatedBroker,
) -> None:
    ask(broker, (METADATA, 25, SAFE))
    feature = RegisterControllerRecord.ControllerFeature(
        name=METADATA, min_supported_version=7, max_supported_version=26
    )
    record = RegisterControllerRecord(
        controller_id=8, incarnation_id=bytes(15) + b"\3", features=[feature]
    )
    commit(broker, record)
    refused = refusal(broker, (METADATA, 29, UPGRADE))
    assert refused == invalid(METADATA, 29, "Controller 8 only supports versions 7-26")
    assert ask(broker, (METADATA, 26, UPGRADE)).error_code == 0
