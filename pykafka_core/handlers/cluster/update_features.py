"""UpdateFeatures (57): KIP-584, KIP-778; ``FeatureControlManager.updateFeatures`` in Kafka."""

from collections.abc import Iterator, Mapping

from pykafka_core.errors import InvalidUpdateVersionError, error_of
from pykafka_core.handlers.cluster.controller_registration import LEVEL_MIN
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome, Work, collect
from pykafka_core.metadata.feature_levels import FeatureLevels, Supporter, UpgradeType
from pykafka_core.metadata.image.features import (
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from pykafka_core.protocol.messages import (
    ConfigRecord,
    FeatureLevelRecord,
    Message,
    NoOpRecord,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from pykafka_core.types import RESOURCE_BROKER

VERSION_WITHOUT_RESULTS = 2

_MIN_ISR = "min.insync.replicas"

_Key = UpdateFeaturesRequest.FeatureUpdateKey
_Result = UpdateFeaturesResponse.UpdatableFeatureResult


def handle(context: Context, request: UpdateFeaturesRequest) -> Work[Outcome]:
    """Change levels, all of them or none; the last of several changes of a feature counts."""
    updates: dict[str, _Key] = {}
    for update in request.feature_updates:
        yield
        updates[update.feature] = update
    wanted = {name: update.max_version_level for name, update in updates.items()}
    finalized = {**context.image.features, KRAFT_VERSION: context.quorum.kraft_version}
    levels = FeatureLevels(_supporters(context), finalized, wanted)
    try:
        for name, update in updates.items():
            yield
            # Version 0 has a flag for downgrades instead. Kafka ignores it: its updates are
            # upgrades.
            levels.check(name, UpgradeType.of(update.upgrade_type))
        raised = _raised(context, wanted)
    except InvalidUpdateVersionError as error:
        return _failed(error)
    if request.validate_only:
        return MetadataWrite([], lambda code: _response(context, request, code))
    records = _records(context, wanted)
    if raised is not None:
        records.append(NoOpRecord())  # as in Kafka: committed after the quorum's own records
    return MetadataWrite(records, lambda code: _response(context, request, code), raised)


def _raised(context: Context, wanted: Mapping[str, int]) -> int | None:
    """Return the new level of ``kraft.version``, or None if it does not change.

    Raises:
        InvalidUpdateVersionError: A voter does not support it, or has not reported its support.
    """
    level = wanted.get(KRAFT_VERSION, 0)
    if level <= context.quorum.kraft_version:
        return None
    problem = context.quorum.kraft_version_problem(level)
    if problem is not None:
        raise InvalidUpdateVersionError(problem)
    return level


def _supporters(context: Context) -> Iterator[Supporter]:
    """Yield this controller and every node that must understand records of a new level.

    A node counts whether it runs or not.
    """
    image, own = context.image, context.node.node_id
    yield Supporter(f"Local controller {own}", SUPPORTED_FEATURES)
    for broker in image.brokers.values():
        yield Supporter(f"Broker {broker.node_id}", broker.features)
    if image.features.get(METADATA_VERSION, 0) < LEVEL_MIN:
        return  # no controller can be registered
    for controller in image.controllers.values():
        if controller.node_id != own:
            yield Supporter(f"Controller {controller.node_id}", controller.features)
    for voter in context.quorum.other_voters:
        if voter.node_id not in image.controllers:
            yield Supporter(f"controller {voter.node_id}", None)


def _records(context: Context, wanted: Mapping[str, int]) -> list[Message]:
    records = _elr_safety(context) if wanted.get(ELIGIBLE_LEADER_REPLICAS, 0) else []
    records += [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in wanted.items()
        if name != KRAFT_VERSION  # its level is in control records of the metadata log
    ]
    return records


def _elr_safety(context: Context) -> list[Message]:
    """Return records that make ``min.insync.replicas`` a setting of the cluster only (KIP-966).

    Eligible leader replicas require it.
    """
    configs = context.image.configs
    records: list[Message] = []
    if _MIN_ISR not in configs.of(RESOURCE_BROKER, ""):
        value = str(context.settings.int(_MIN_ISR))
        records.append(_min_isr("", context.settings.static.get(_MIN_ISR, value)))
    records += [
        _min_isr(name, None)
        for name in configs.names(RESOURCE_BROKER)
        if name and _MIN_ISR in configs.of(RESOURCE_BROKER, name)
    ]
    return records


def _min_isr(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=RESOURCE_BROKER, resource_name=broker, name=_MIN_ISR, value=value
    )


def _response(
    context: Context, request: UpdateFeaturesRequest, code: int
) -> Work[UpdateFeaturesResponse]:
    if code:
        return UpdateFeaturesResponse(error_code=code, error_message=str(error_of(code)()))
    results = []
    if context.caller.api_version < VERSION_WITHOUT_RESULTS:
        results = yield from collect(
            _Result(feature=update.feature, error_message="NONE")
            for update in request.feature_updates
        )
    return UpdateFeaturesResponse(error_message=None, results=results)


def _failed(error: InvalidUpdateVersionError) -> UpdateFeaturesResponse:
    text = "The update failed for all features since the following feature had an error"
    error = InvalidUpdateVersionError(f"{text}: {error}")
    return UpdateFeaturesResponse(error_code=error.code, error_message=str(error))
