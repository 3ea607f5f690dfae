"""CreateAcls (30): the response without an authorizer; no authorizer is implemented.

``AclApis.handleCreateAcls`` in Kafka.
"""

from pykafka_core.errors import SecurityDisabledError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Work, collect
from pykafka_core.protocol.messages import CreateAclsRequest, CreateAclsResponse


def handle(_context: Context, request: CreateAclsRequest) -> Work[CreateAclsResponse]:
    """Refuse each creation: there is no authorizer."""
    refused = CreateAclsResponse.AclCreationResult(
        error_code=SecurityDisabledError.code, error_message="No Authorizer is configured."
    )
    return CreateAclsResponse(results=(yield from collect(refused for _ in request.creations)))
