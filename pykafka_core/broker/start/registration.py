"""How a broker makes itself known: the record at its start, and again when it binds a listener."""

from collections.abc import Sequence

from pykafka_core.broker.runtime.requests.requests import LocalRequest
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Outcome, Propose
from pykafka_core.metadata.image.features import SUPPORTED_FEATURES
from pykafka_core.metadata.image.image import Endpoint
from pykafka_core.protocol.messages import RegisterBrokerRecord


def registration(
    *,
    identity: Identity,
    incarnation_id: bytes,
    broker_epoch: int,
    endpoints: Sequence[Endpoint],
    rack: str | None,
) -> RegisterBrokerRecord:
    """A registration; alive at once: a single node has nobody to wait for.

    ``broker_epoch`` is the offset the record will get.
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


def register(identity: Identity, endpoints: Sequence[Endpoint]) -> LocalRequest:
    """Register this broker again, with other endpoints."""
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
        return Propose([record], lambda code: BrokerRegistrationResponse(error_code=code))

    return LocalRequest(decide)
