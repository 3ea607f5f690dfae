"""CreateAcls (30): ``AclApis.handleCreateAcls`` in Kafka. Authorizers are not built: as in a broker without one."""

from pykafka_core.errors import SecurityDisabledError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Slices, collect
from pykafka_core.protocol.messages import CreateAclsRequest, CreateAclsResponse


def handle(_context: Context, request: CreateAclsRequest) -> Slices[CreateAclsResponse]:
    """Refuse each of them: there is no authorizer."""
    refused = CreateAclsResponse.AclCreationResult(
        error_code=SecurityDisabledError.code, error_message="No Authorizer is configured."
    )
    return CreateAclsResponse(results=(yield from collect(refused for _ in request.creations)))
