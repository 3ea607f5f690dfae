"""Validation of feature level changes: KIP-584, KIP-778; ``FeatureControlManager`` in Kafka."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from pykafka_core.errors import InvalidUpdateVersionError
from pykafka_core.metadata.image.features import (
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)

METADATA_CHANGES = (23, 30, 32, 33)
"""Levels of metadata.version that changed metadata records: 4.0-IV1, 4.3-IV0, 4.4-IV1, 4.4-IV2.

A cluster cannot return to a level before its last change, nor to one before 4.0-IV1.
"""

_NEEDS = {(ELIGIBLE_LEADER_REPLICAS, 1): (METADATA_VERSION, 23)}
"""Dependencies of feature levels: the required level of another feature."""


_NOT_BUILT = {"share.version": "share groups", "streams.version": "streams groups"}
"""Unsupported features of groups; ``kafka-features --release-version`` requests both."""


class UnsupportedFeatures(NamedTuple):
    """Finalized levels that this version does not support.

    Attributes:
        text: The features with their levels.
        advice: The command of Apache Kafka that lowers them.
    """

    text: str
    advice: str


def unsupported(finalized: Mapping[str, int]) -> UnsupportedFeatures | None:
    """Return the finalized levels that this version does not support; None if there are none."""
    highest = {name: SUPPORTED_FEATURES.get(name, (0, 0))[1] for name in sorted(finalized)}
    foreign = [name for name in highest if finalized[name] > highest[name]]
    if not foreign:
        return None
    levels = ", ".join(f"{name}={finalized[name]}" for name in foreign)
    lower = " ".join(f"--feature {name}={highest[name]}" for name in foreign)
    return UnsupportedFeatures(
        f"this version does not support {levels}",
        "lower them with Apache Kafka first: "
        f"kafka-features.sh --bootstrap-server HOST:PORT downgrade {lower}",
    )


class UpgradeType(Enum):
    """The change that a client allows, by the numbers in UpdateFeatures."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3

    @classmethod
    def of(cls, code: int) -> "UpgradeType":
        """Return the type of a number from a client; `UNKNOWN` if it is invalid."""
        return cls(code) if 0 <= code <= cls.UNSAFE_DOWNGRADE.value else cls.UNKNOWN


class Supporter(NamedTuple):
    """A node's name in errors, and its supported levels of each feature, both inclusive.

    ``features`` is None for a voter that has not registered.
    """

    name: str
    features: Mapping[str, tuple[int, int]] | None


class FeatureLevels:
    """The finalized levels, and the requested ones.

    Args:
        nodes: This controller first, then all nodes that must support a level.
        finalized: The finalized levels; a disabled feature has no entry.
        wanted: The requested levels of all features in the request.
    """

    def __init__(
        self,
        nodes: Iterable[Supporter],
        finalized: Mapping[str, int],
        wanted: Mapping[str, int],
    ) -> None:
        self._nodes = tuple(nodes)
        self._finalized = finalized
        self._wanted = wanted

    def check(self, name: str, upgrade_type: UpgradeType) -> None:
        """Check the requested change of one feature.

        Raises:
            InvalidUpdateVersionError: The change is not possible; the text is Kafka's.
        """
        level, current = self._wanted[name], self._finalized.get(name, 0)
        problem = self._problem(name, level, current, upgrade_type)
        if problem is not None:
            raise InvalidUpdateVersionError(
                f"Invalid update version {level} for feature {name}. {problem}{self._advice(name)}"
            )
        if name == METADATA_VERSION and level < current:
            _check_downgrade(level, current, upgrade_type)

    def _problem(
        self, name: str, level: int, current: int, upgrade_type: UpgradeType
    ) -> str | None:
        upgrades = upgrade_type is UpgradeType.UPGRADE
        if upgrade_type is UpgradeType.UNKNOWN:
            return "The controller does not support the given upgrade type."
        if level < 0:
            return "A feature version cannot be less than 0."
        problems = (_not_supported(node, name, level) for node in self._nodes)
        if (problem := next(filter(None, problems), None)) is not None:
            return problem
        if name not in SUPPORTED_FEATURES:
            return f"Feature {name} not found."
        if level < current and upgrades:
            return (
                "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade."
            )
        if level > current and not upgrades:
            return "Can't downgrade to a newer version."
        if name == KRAFT_VERSION:
            return "Can't downgrade the version of this feature." if level < current else None
        return self._missing(name, level)

    def _advice(self, name: str) -> str:
        """Return advice on how to change the other features without an unsupported one."""
        if name not in _NOT_BUILT:
            return ""
        supported = sorted(SUPPORTED_FEATURES.keys() & self._wanted.keys())
        others = "".join(f" --feature {other}={self._wanted[other]}" for other in supported)
        advice = f"; leave it out: kafka-features.sh upgrade{others}" if others else ""
        return f" This version has no {_NOT_BUILT[name]}{advice}"

    def _missing(self, name: str, level: int) -> str | None:
        other, needed = _NEEDS.get((name, level), (name, 0))
        if self._wanted.get(other, self._finalized.get(other, 0)) >= needed:
            return None
        return f"{name} could not be set to {level} because it depends on {other} level {needed}"


def _not_supported(node: Supporter, name: str, level: int) -> str | None:
    if node.features is None:
        return f"{node.name} has not registered, and may not support this feature"
    low, high = node.features.get(name, (0, 0))
    if low <= level <= high:
        return None
    reason = f"only supports versions {low}-{high}" if high else "does not support this feature."
    return f"{node.name} {reason}"


def _check_downgrade(level: int, current: int, upgrade_type: UpgradeType) -> None:
    if not any(level < change <= max(current, METADATA_CHANGES[0]) for change in METADATA_CHANGES):
        return
    reason = "Unsafe metadata downgrade is not supported in this version."
    if upgrade_type is not UpgradeType.UNSAFE_DOWNGRADE:
        reason = (
            "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
    raise InvalidUpdateVersionError(
        f"Unsupported metadata.version downgrade from {current} to {level}. {reason}"
    )
