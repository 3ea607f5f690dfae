"""The record by which a broker makes itself known."""

from collections.abc import Sequence

from pykafka_core.broker.identity import Identity
from pykafka_core.metadata.features import SUPPORTED_FEATURES
from pykafka_core.metadata.image import Endpoint
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
