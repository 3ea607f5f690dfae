"""The registration of a broker: at its start, and after it binds another listener."""

from collections.abc import Callable, Mapping, Sequence

from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.handlers.cluster.broker_records import cordoned_directories, registration_change
from pykafka_core.handlers.context import Context, Node
from pykafka_core.handlers.outcome import MetadataWrite, Outcome
from pykafka_core.metadata.image.features import SUPPORTED_FEATURES
from pykafka_core.metadata.image.image import Endpoint, MetadataImage
from pykafka_core.protocol.messages import BrokerHeartbeatResponse, RegisterBrokerRecord


def registration(
    *,
    identity: Identity,
    incarnation_id: bytes,
    broker_epoch: int,
    endpoints: Sequence[Endpoint],
    rack: str | None,
) -> RegisterBrokerRecord:
    """Return a registration record; unfenced at once, because a single node has no controller to
    wait for.

    ``broker_epoch`` is the offset that the record will get.
    """
    return RegisterBrokerRecord(
        broker_id=identity.node_id,
        incarnation_id=incarnation_id,
        broker_epoch=broker_epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                security_protocol=endpoint.security_protocol,
            )
            for endpoint in endpoints
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        rack=rack,
        fenced=False,
        log_dirs=[identity.directory_id],
    )


def follow_cordoned(
    node: Node, publisher: Publisher, ask: Callable[[LocalRequest], object]
) -> None:
    """Register the cordoned directories of a single broker, now and after each change."""

    def decide(context: Context) -> Outcome:
        broker = context.image.brokers[node.node_id]
        found = cordoned_directories(context.image, context.settings, node.directory_id)
        is_news = found is not None and found != broker.cordoned
        records = [registration_change(broker, cordoned=found)] if is_news else []
        return MetadataWrite(records, lambda code: BrokerHeartbeatResponse(error_code=code))

    def follow(image: MetadataImage, _deleted: Mapping[str, bytes]) -> None:
        found = cordoned_directories(image, publisher.settings, node.directory_id)
        if (found or ()) != (image.brokers[node.node_id].cordoned or ()):
            ask(LocalRequest(decide))

    publisher.followers.append(follow)
    follow(publisher.image, {})


def register(identity: Identity, endpoints: Sequence[Endpoint]) -> LocalRequest:
    """Return a request that registers this broker again, with other endpoints."""
    from pykafka_core.protocol.messages import BrokerRegistrationResponse

    def decide(context: Context) -> Outcome:
        broker = context.image.brokers[identity.node_id]
        record = registration(
            identity=identity,
            incarnation_id=broker.incarnation_id,
            broker_epoch=context.next_offset,
            endpoints=endpoints,
            rack=broker.rack,
        )
        return MetadataWrite([record], lambda code: BrokerRegistrationResponse(error_code=code))

    return LocalRequest(decide)
