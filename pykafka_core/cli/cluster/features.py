"""``features``: show and change a cluster's features (KIP-584).

A broker supports a range of levels of each feature, and a cluster has one finalized level. The
command does what ``kafka-features`` does. It also works with brokers of Apache Kafka.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum

from pykafka_core.cli.client import wire
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.cli.output import print_json, print_table
from pykafka_core.errors import error_of
from pykafka_core.protocol.messages import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPDATE_FEATURES, UPDATE_FEATURES_VERSION = 57, 2
TIMEOUT_MS = 30_000
LEVEL_MAX = 2**15 - 1

_CANNOT = "cannot read the features of the cluster"
_REFUSED = "cannot change features"


class Way(Enum):
    """The kind of a change, with the numbers of UpdateFeatures."""

    UPGRADE = 1
    DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """One feature; its levels are inclusive.

    Attributes:
        supported_min, supported_max: The levels that this broker supports; None if it does not
            support the feature.
        finalized: The level that the cluster uses; 0 if the feature is off.
    """

    name: str
    supported_min: int | None
    supported_max: int | None
    finalized: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One requested change."""

    name: str
    before: int
    after: int


def describe(bootstrap: str | None, *, as_json: bool) -> None:
    """Show all features.

    Raises:
        CliError: No broker answers.
    """
    with wire.cluster(bootstrap, _CANNOT) as cluster:
        epoch, found = look(cluster.any())
    if as_json:
        print_json({"epoch": epoch, "features": [asdict(one) for one in found]})
        return
    print_table([_row(one) for one in found], title=f"epoch {epoch}", empty="no features")


def _row(one: Feature) -> Mapping[str, object]:
    unknown = one.supported_min is None
    supported = "unknown" if unknown else f"{one.supported_min} to {one.supported_max}"
    return {"feature": one.name, "supported": supported, "finalized": one.finalized}


def change(
    bootstrap: str | None, wanted: Sequence[str], way: Way, *, as_json: bool, dry_run: bool
) -> None:
    """Change finalized levels through the controller, all of them or none.

    Controllers before Kafka 4.0 apply the changes that they accept and refuse the others.

    Args:
        wanted: ``NAME=LEVEL`` for each feature.
        dry_run: The controller only validates the changes.

    Raises:
        CliError: A change is invalid, or the controller refuses it.
    """
    levels = dict(map(_level, wanted))
    if len(levels) < len(wanted):
        raise CliError("a feature is named twice", "name each once", exit_code=USAGE)
    of = UpdateFeaturesRequest
    with wire.cluster(bootstrap, _CANNOT) as cluster:
        broker = cluster.any()
        before = {one.name: one.finalized for one in look(broker)[1]}
        updates = [
            of.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=way.value)
            for name, level in levels.items()
        ]
        request = of(timeout_ms=TIMEOUT_MS, feature_updates=updates, validate_only=dry_run)
        response = broker.ask_newest(
            UPDATE_FEATURES, UPDATE_FEATURES_VERSION, request, UpdateFeaturesResponse
        )
    if response.error_code:
        raise CliError(f"{_REFUSED}: {_text(response.error_code, response.error_message)}")
    refused = {
        one.feature: _text(one.error_code, one.error_message)
        for one in response.results
        if one.error_code
    }
    changes = [
        Change(name=name, before=before.get(name, 0), after=level)
        for name, level in levels.items()
        if name not in refused
    ]
    if changes:
        _report(changes, as_json=as_json, dry_run=dry_run)
    wire.check_all([f"{name}: {why}" for name, why in refused.items()], _REFUSED)


def _text(code: int, message: str | None) -> str:
    error = error_of(code)
    return f"{error.name}: {message or error.text}"


def _level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    is_number = level.isascii() and level.isdigit()
    if not (name and equals and is_number and len(level) < 6 and int(level) <= LEVEL_MAX):
        advice = (
            f"write it as NAME=LEVEL, a level of 0 to {LEVEL_MAX}, such as transaction.version=2"
        )
        raise CliError(f"{text!r} is not the level of a feature", advice, exit_code=USAGE)
    return name, int(level)


def _report(changes: Sequence[Change], *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        print_json({"changes": [asdict(one) for one in changes], "dry_run": dry_run})
        return
    done = "would change" if dry_run else "changed"
    for one in changes:
        print(f"{done} {one.name}: {one.before} -> {one.after}")


def look(broker: wire.Connection) -> tuple[int, list[Feature]]:
    """Return the features of a broker.

    Returns:
        The epoch of the finalized features, or -1 if there are none; and all supported or finalized
            features, sorted by name.
    """
    response = broker.describe_features()
    supported = {
        one.name: (one.min_version, one.max_version) for one in response.supported_features
    }
    finalized = {one.name: one.max_version_level for one in response.finalized_features}
    features = [
        Feature(
            name=name,
            supported_min=supported.get(name, (None, None))[0],
            supported_max=supported.get(name, (None, None))[1],
            finalized=finalized.get(name, 0),
        )
        for name in sorted(supported.keys() | finalized.keys())
    ]
    return response.finalized_features_epoch, features
