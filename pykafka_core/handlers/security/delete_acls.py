"""DeleteAcls (31): the response without an authorizer; no authorizer is implemented.

``AclApis.handleDeleteAcls`` in Kafka.
"""

from pykafka_core.errors import SecurityDisabledError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Work, collect
from pykafka_core.protocol.messages import DeleteAclsRequest, DeleteAclsResponse


def handle(_context: Context, request: DeleteAclsRequest) -> Work[DeleteAclsResponse]:
    """Refuse each filter: there is no authorizer."""
    refused = DeleteAclsResponse.DeleteAclsFilterResult(
        error_code=SecurityDisabledError.code,
        error_message="No Authorizer is configured.",
        matching_acls=[],
    )
    return DeleteAclsResponse(filter_results=(yield from collect(refused for _ in request.filters)))
