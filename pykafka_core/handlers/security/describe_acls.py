"""DescribeAcls (29): ``AclApis.handleDescribeAcls`` in Kafka. Authorizers are not built: as in a broker without one."""

from pykafka_core.errors import SecurityDisabledError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import DescribeAclsRequest, DescribeAclsResponse


def handle(_context: Context, _request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Say that there is no authorizer."""
    return DescribeAclsResponse(
        error_code=SecurityDisabledError.code,
        error_message="No Authorizer is configured on the broker",
        resources=[],
    )
