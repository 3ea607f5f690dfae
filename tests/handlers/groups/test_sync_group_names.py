"""SyncGroup has the name of the protocol since version 5."""

import pytest

from pykafka_core.protocol.messages import JoinGroupResponse, SyncGroupRequest, SyncGroupResponse
from tests.handlers.group_requests import broker_with_coordinator, join_request

INCONSISTENT_GROUP_PROTOCOL = 23


@pytest.mark.parametrize(("version", "code"), [(3, 0), (4, 0), (5, INCONSISTENT_GROUP_PROTOCOL)])
@pytest.mark.parametrize("named", [{}, {"protocol_type": "consumer"}, {"protocol_name": "range"}])
def test_from_version_5_on_a_sync_without_its_protocol_is_rejected(
    version: int, code: int, named: dict[str, str]
) -> None:
    broker = broker_with_coordinator()
    joined = broker.ask(join_request(), 3)
    assert isinstance(joined, JoinGroupResponse)
    request = SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id
    )
    for name, value in named.items() if version >= 5 else ():
        setattr(request, name, value)
    response = broker.ask(request, version)
    assert isinstance(response, SyncGroupResponse)
    assert response.error_code == code
